"""Requests to the signatures of a LiteRT file.

The answers are texts with scores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfformer.export.litert import writer
from tfformer.export.other_process import ask
from tfformer.export.parity import Hypotheses, Scored
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID


def run(
    file: Path, translator: Translator, samples: Sequence[str], static: bool, with_text: bool
) -> dict[str, Hypotheses]:
    """Ask every signature of a file in a process of its own, sentence by sentence.

    Args:
        file: The LiteRT file.
        translator: The translator of the run.
        samples: Sentences to translate.
        static: Whether all shapes of the file are fixed.
        with_text: Whether it has a signature over text.

    Raises:
        ValueError: The signature over text translates otherwise than the one over ids.
    """
    ids, scores = greedy(file, translator, samples, static)
    texts = translator.tokenizers.target.decode(ids)
    hypotheses = {"translate": Hypotheses(1, list(zip(texts, scores, strict=True)))}
    beam_size = translator.decoding.beam_size
    if beam_size > 1:
        best = _beam(file, translator, samples, static)
        hypotheses["translate_beam"] = Hypotheses(beam_size, best)
    if with_text:
        hypotheses["translate_text"] = Hypotheses(1, _over_text(file, samples))
        check_text(hypotheses)
    return hypotheses


def greedy(
    file: Path, translator: Translator, sentences: Sequence[str], static: bool
) -> tuple[list[list[int]], list[float]]:
    """Return the ids of a file's greedy translations and their scores.

    The ids have their end tokens.
    """
    requests = _over_ids("translate", translator, sentences, static)
    answers = ask("litert", [file.resolve()], requests)
    ids = [answer["ids"][0][: answer["lengths"][0]] for answer in answers]
    return ids, [answer["score"][0] for answer in answers]


def check_text(hypotheses: Mapping[str, Hypotheses]) -> None:
    """Check that the signature over text translates as the one over ids.

    It raises ValueError unless all texts are the same.
    """
    by_ids = [text for text, _ in hypotheses["translate"].texts]
    by_text = [text for text, _ in hypotheses["translate_text"].texts]
    other = sum(text != same for text, same in zip(by_ids, by_text, strict=True))
    if other:
        raise ValueError(
            f"{other} of {len(by_ids)} samples come out otherwise with TF Text's tokenizer than by "
            "SentencePiece, as they do with some vocabularies; leave out --text and use the "
            "tokenizer beside the model"
        )


def _beam(file: Path, translator: Translator, samples: Sequence[str], static: bool) -> list[Scored]:
    requests = _over_ids("translate_beam", translator, samples, static)
    answers = ask("litert", [file.resolve()], requests)
    texts = translator.tokenizers.target.decode([answer["ids"][0][0] for answer in answers])
    scores = [answer["scores"][0][0] for answer in answers]
    return list(zip(texts, scores, strict=True))


def _over_text(file: Path, samples: Sequence[str]) -> list[Scored]:
    requests = [["translate_text", {"text": [sentence]}] for sentence in samples]
    answers = ask("litert", [file.resolve(), "tensorflow_text"], requests)
    return [(answer["translation"][0], answer["score"][0]) for answer in answers]


def _over_ids(
    signature: str, translator: Translator, sentences: Sequence[str], static: bool
) -> list[list[Any]]:
    """A request for each sentence.

    Of a static file it has the narrowest signature that the sentence fits in.
    """
    rows = translator.tokenizers.source.encode(sentences)
    if not static:
        return [[signature, {"ids": [row or [END_ID]], "lengths": [len(row)]}] for row in rows]
    longest = translator.max_length
    requests = []
    for row in rows:
        fitting = (width for width in writer.widths(longest) if len(row) < width)
        width = next(fitting, longest)
        padded = [*row, *[END_ID] * width][:width]  # past its length a row may hold anything
        name = writer.static_name(signature, width, longest)
        requests.append([name, {"ids": [padded], "lengths": [len(row)]}])
    return requests
