"""The questions for the signatures of a SavedModel; the question about ids is first."""

from collections.abc import Sequence

from tfformer.export.parity import Inputs, Outputs, Question, Scored
from tfformer.export.questions import beam, greedy
from tfformer.inference.generator import Generator
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID


def of_model(model: TextModel, samples: Sequence[str]) -> list[Question]:
    """Return the questions for each signature of a model, about these sentences."""
    if isinstance(model, Translator):
        return _of_translator(model, samples)
    assert isinstance(model, Generator)
    return _of_generator(model, samples)


def _of_translator(translator: Translator, samples: Sequence[str]) -> list[Question]:
    over_text = greedy("serving_default", translator, samples)
    translations = [text for text, _ in over_text.expected]
    sources, targets = translator.encode(samples), translator.encode_targets(translations)
    log_probs = [one.log_prob for one in translator.score(sources, targets)]
    return [
        _over_ids("translate_ids", translator, samples, over_text.expected),
        over_text,
        beam("translate_beam", translator, samples),
        _score({"source": samples, "target": translations}, translations, log_probs),
    ]


def _of_generator(generator: Generator, samples: Sequence[str]) -> list[Question]:
    encoded = generator.encode(samples)
    expected = generator.complete(encoded)

    def read(outputs: Outputs) -> list[Scored]:
        return list(zip(outputs["generated_text"], outputs["score"], strict=True))

    text: Inputs = {"text": samples}
    return [
        _over_ids("continue_ids", generator, samples, expected),
        Question("serving_default", 1, "serving_default", [text], read, expected),
        _score(text, samples, generator.log_prob(encoded)),
    ]


def _over_ids(
    signature: str, model: TextModel, samples: Sequence[str], expected: Sequence[Scored]
) -> Question:
    """Ask with ids (B, S) and lengths (B,); a row may contain any ids after its length."""
    tokenizers = model.tokenizers
    rows = tokenizers.source.encode(samples)
    longest = max(map(len, rows))
    padded = [row + [END_ID] * (longest - len(row)) for row in rows]

    def read(outputs: Outputs) -> list[Scored]:
        texts = tokenizers.target.decode(outputs["ids"])
        return list(zip(texts, outputs["score"], strict=True))

    inputs = {"ids": padded, "lengths": list(map(len, rows))}
    return Question(signature, 1, signature, [inputs], read, expected)


def _score(inputs: Inputs, texts: Sequence[str], log_probs: Sequence[float]) -> Question:
    """The probabilities of given texts."""

    def read(outputs: Outputs) -> list[Scored]:
        return list(zip(texts, outputs["log_prob"], strict=True))

    expected = list(zip(texts, log_probs, strict=True))
    return Question("score", 1, "score", [inputs], read, expected)
