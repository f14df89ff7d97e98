"""What an exported model answers in a process of its own, beside what the run itself says. Writes no file."""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tfformer.export.litert import writer as litert_writer
from tfformer.inference.generator import Generator
from tfformer.inference.graphs import EXTRA_LENGTH
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID

SCORE_TOLERANCE = 1e-3  # of the score, or in nats below 1; a sum over 60 tokens in another order differs by about 1e-5

Found = dict[
    str, tuple[int, list[tuple[str, float]]]
]  # who translated -> its beam size, translations and scores


def run_saved_model(
    folder: Path, own: Translator | Generator, samples: Sequence[str], with_text: bool
) -> Found:
    """What every signature of the SavedModel in `folder` makes of the samples; without text there is only one."""
    pieces = own.tokenizers.source.encode(samples)
    longest = max(map(len, pieces))
    padded = [
        row + [END_ID] * (longest - len(row)) for row in pieces
    ]  # past its length a row may hold anything
    ids, text = {"ids": padded, "lengths": list(map(len, pieces))}, {"text": samples}
    if isinstance(own, Generator):
        read, requests = (
            _continuations,
            {"continue_ids": ids, "serving_default": text, "score": text},
        )
    else:
        pairs = {
            "source": samples,
            "target": samples,
        }  # any text has a probability as a translation
        over_text = {"serving_default": text, "translate_beam": text, "score": pairs}
        read, requests = _translations, {"translate_ids": ids} | over_text
    modules = ["tensorflow_text"] if with_text else []
    asked = list(requests.items()) if with_text else list(requests.items())[:1]
    return read(own, samples, *ask("saved_model", [folder.resolve(), *modules], asked))


def run_litert(
    file: Path, translator: Translator, samples: Sequence[str], static: bool, with_text: bool
) -> Found:
    """What every signature of the LiteRT file makes of the samples, sentence by sentence."""
    target, beam_size = translator.tokenizers.target, translator.decoding.beam_size
    ids, scores = litert_greedy(file, translator, samples, static)
    found = {"translate": (1, list(zip(target.decode(ids), scores, strict=True)))}
    if beam_size > 1:
        answers = ask(
            "litert",
            [file.resolve()],
            litert_requests("translate_beam", translator, samples, static),
        )
        texts = target.decode([answer["ids"][0][0] for answer in answers])
        found["translate_beam"] = (
            beam_size,
            list(zip(texts, [a["scores"][0][0] for a in answers], strict=True)),
        )
    if with_text:
        requests = [["translate_text", {"text": [sentence]}] for sentence in samples]
        answers = ask("litert", [file.resolve(), "tensorflow_text"], requests)
        found["translate_text"] = (
            1,
            [(answer["translation"][0], answer["score"][0]) for answer in answers],
        )
        check_text(found)
    return found


def run_ctranslate2(folder: Path, translator: Translator, samples: Sequence[str]) -> Found:
    """What the CTranslate2 model in `folder` makes of the samples, greedily and with the translator's beams."""
    source, target = translator.tokenizers.source, translator.tokenizers.target
    number_of = {
        piece: number for number, piece in enumerate(target.pieces(range(target.vocab_size)))
    }
    rows = [row[: translator.max_length - 1] for row in source.encode(samples)]
    limits = [min(len(row) + 1 + EXTRA_LENGTH, translator.max_length) for row in rows]

    def best(beam_size: int) -> list[tuple[str, float]]:
        requests = [
            [source.pieces(row), beam_size, limit] for row, limit in zip(rows, limits, strict=True)
        ]
        answers = ask("ctranslate2", [folder.resolve()], requests)
        texts = target.decode([[number_of[piece] for piece in pieces] for pieces, _ in answers])
        return [(text, score) for text, (_, score) in zip(texts, answers, strict=True)]

    beam_size = translator.decoding.beam_size
    return {"greedy": (1, best(1)), "beam": (beam_size, best(beam_size))}


def compare(own: Translator | Generator, samples: Sequence[str], found: Found) -> dict[str, dict]:
    """How many of the samples have the run's own translation, and the largest difference of their scores."""
    measured = {}
    for name, (beam_size, translations) in found.items():
        pairs = zip(own_texts(own, name, samples, beam_size), translations, strict=True)
        differences = [
            abs(score - its_score) / max(1.0, abs(score))
            for (text, score), (its_text, its_score) in pairs
            if text == its_text
        ]
        measured[name] = {
            "beam_size": beam_size,
            "sentences": len(translations),
            "identical": len(differences),
            "largest_score_difference": max(differences, default=0.0),
        }
    return measured


def check(parity: dict[str, dict]) -> None:
    for name, measured in parity.items():
        if (
            measured["identical"] < measured["sentences"]
            or measured["largest_score_difference"] > SCORE_TOLERANCE
        ):
            raise ValueError(
                f"{name} gave the run's translation for {measured['identical']} of {measured['sentences']} samples, "
                f"with scores up to {measured['largest_score_difference']:.2g} apart; what was written is not kept"
            )


def litert_greedy(
    file: Path, translator: Translator, sentences: Sequence[str], static: bool
) -> tuple[list[list[int]], list[float]]:
    """The ids of the file's greedy translations of the sentences, with their end tokens, and their scores."""
    requests = litert_requests("translate", translator, sentences, static)
    answers = ask("litert", [file.resolve()], requests)
    return [answer["ids"][0][: answer["lengths"][0]] for answer in answers], [
        answer["score"][0] for answer in answers
    ]


def ask(program: str, arguments: Sequence[str | Path], requests: list) -> list:
    """The answers of `programs/<program>.py`, in a new process that does not import tfformer."""
    file = Path(__file__).parent / "programs" / f"{program}.py"
    command = [
        sys.executable,
        "-P",
        str(file),
        *map(str, arguments),
    ]  # -P: no module is looked for beside the file
    done = subprocess.run(
        command, input=json.dumps(requests), capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ValueError(
            f"what was written cannot be run by another process, so it is not kept: {reason}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def own_texts(
    own: Translator | Generator, name: str, samples: Sequence[str], beam_size: int
) -> Sequence[tuple[str, float]]:
    """What the signature of this name should give."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # that some samples are cut: they are meant to be
        if name == "score":
            return list(zip(samples, _own_log_probs(own, samples), strict=True))
        if isinstance(own, Translator):
            return [translations[0] for translations in own.n_best(samples, beam_size)]
        return own.complete(samples)


def _continuations(
    generator: Generator, samples: Sequence[str], by_ids: dict, *by_text: dict
) -> Found:
    found = {
        "continue_ids": (
            1,
            list(zip(generator.tokenizer.decode(by_ids["ids"]), by_ids["score"], strict=True)),
        )
    }
    if by_text:
        greedy, scored = by_text
        found["serving_default"] = (
            1,
            list(zip(greedy["generated_text"], greedy["score"], strict=True)),
        )
        found["score"] = (1, list(zip(samples, scored["log_prob"], strict=True)))
    return found


def _translations(
    translator: Translator, samples: Sequence[str], by_ids: dict, *by_text: dict
) -> Found:
    target = translator.tokenizers.target
    found = {
        "translate_ids": (1, list(zip(target.decode(by_ids["ids"]), by_ids["score"], strict=True)))
    }
    if by_text:
        greedy, beam, scored = by_text
        best = [
            (texts[0], scores[0])
            for texts, scores in zip(beam["translations"], beam["scores"], strict=True)
        ]
        found["serving_default"] = (
            1,
            list(zip(greedy["translation"], greedy["score"], strict=True)),
        )
        found["translate_beam"] = (translator.decoding.beam_size, best)
        found["score"] = (1, list(zip(samples, scored["log_prob"], strict=True)))
    return found


def litert_requests(
    signature: str, translator: Translator, sentences: Sequence[str], static: bool
) -> list:
    """One for each sentence; of a static file the narrowest signature that it fits in."""
    longest, requests = translator.max_length, []
    for pieces in translator.tokenizers.source.encode(sentences):
        lengths = [len(pieces)]
        if static:
            width = next(
                (width for width in litert_writer.widths(longest) if len(pieces) < width), longest
            )
            pieces = [*pieces, *[END_ID] * width][:width]  # past its length a row may hold anything
            requests.append(
                [
                    litert_writer.name(signature, width, longest),
                    {"ids": [pieces], "lengths": lengths},
                ]
            )
        else:
            requests.append([signature, {"ids": [pieces or [END_ID]], "lengths": lengths}])
    return requests


def check_text(found: Found) -> None:
    """ValueError unless the signature over text translates as the one over ids does."""
    (_, by_ids), (_, by_text) = found["translate"], found["translate_text"]
    other = sum(text != its_text for (text, _), (its_text, _) in zip(by_ids, by_text, strict=True))
    if other:
        raise ValueError(
            f"{other} of {len(by_ids)} samples come out otherwise with TF Text's tokenizer than by SentencePiece, as "
            "they do with some vocabularies; leave out --text and use the tokenizer beside the model"
        )


def _own_log_probs(own: Translator | Generator, samples: Sequence[str]) -> Sequence[float]:
    if isinstance(own, Translator):
        return [found.log_prob for found in own.score(samples, samples)]
    return own.log_prob(samples)
