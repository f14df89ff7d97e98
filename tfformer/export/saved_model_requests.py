"""Requests to the signatures of a SavedModel.

The answers are texts with scores.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfformer.export.other_process import ask
from tfformer.export.parity import Hypotheses
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID

Inputs = dict[str, Any]  # the values of each input, with the batch first
Read = Callable[[dict[str, Any]], Hypotheses]  # the outputs of a signature -> texts
Requests = Mapping[str, tuple[Inputs, Read]]  # by signature; the one over ids comes first


def run(folder: Path, requests: Requests, with_text: bool) -> list[dict[str, Hypotheses]]:
    """Ask the SavedModel in `folder` in another process, through each of TensorFlow's loaders.

    Args:
        folder: The version's folder.
        requests: The requests that `of_translator` or `of_generator` returns.
        with_text: Whether there are signatures over text; otherwise the first request counts.

    Returns:
        The hypotheses by signature, for each loader.
    """
    modules = ["tensorflow_text"] if with_text else []
    asked = list(requests) if with_text else list(requests)[:1]
    sent = [[name, requests[name][0]] for name in asked]
    hypotheses = []
    for answers in ask("saved_model", [folder.resolve(), *modules], sent):
        pairs = zip(asked, answers, strict=True)
        hypotheses.append({name: requests[name][1](outputs) for name, outputs in pairs})
    return hypotheses


def of_translator(translator: Translator, samples: Sequence[str]) -> Requests:
    """Return requests that translate the samples and score the run's translations of them."""
    target = translator.tokenizers.target
    text = {"text": samples}
    translations = [best.text for best, *_ in translator.n_best(samples, 1)]
    pairs = {"source": samples, "target": translations}

    def read_beam(outputs: dict[str, Any]) -> Hypotheses:
        rows = zip(outputs["translations"], outputs["scores"], strict=True)
        best = [(texts[0], scores[0]) for texts, scores in rows]
        return Hypotheses(translator.decoding.beam_size, best)

    return {
        "translate_ids": (_ids(translator, samples), lambda found: _decoded(target.decode, found)),
        "serving_default": (text, lambda found: _one_best(found["translation"], found["score"])),
        "translate_beam": (text, read_beam),
        "score": (pairs, lambda found: _one_best(translations, found["log_prob"])),
    }


def of_generator(generator: Generator, samples: Sequence[str]) -> Requests:
    """Return requests that continue the samples, and score them."""
    decode = generator.tokenizer.decode
    text = {"text": samples}
    return {
        "continue_ids": (_ids(generator, samples), lambda found: _decoded(decode, found)),
        "serving_default": (text, lambda found: _one_best(found["generated_text"], found["score"])),
        "score": (text, lambda found: _one_best(samples, found["log_prob"])),
    }


def _ids(model: Translator | Generator, samples: Sequence[str]) -> Inputs:
    """Ids (B, S) and lengths (B,); past its length a row may hold anything."""
    rows = model.tokenizers.source.encode(samples)
    longest = max(map(len, rows))
    padded = [row + [END_ID] * (longest - len(row)) for row in rows]
    return {"ids": padded, "lengths": list(map(len, rows))}


def _decoded(
    decode: Callable[[Sequence[Sequence[int]]], list[str]], outputs: dict[str, Any]
) -> Hypotheses:
    return _one_best(decode(outputs["ids"]), outputs["score"])


def _one_best(texts: Sequence[str], scores: Sequence[float]) -> Hypotheses:
    return Hypotheses(1, list(zip(texts, scores, strict=True)))
