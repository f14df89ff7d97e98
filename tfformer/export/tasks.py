"""The parts of an export that differ between the tasks.

There is a row of functions for each task.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfformer.config import Architecture
from tfformer.export import saved_model_requests, saved_model_signatures
from tfformer.export.parity import Scored
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run

Subject = Translator | Generator  # a run's model with its tokenizers: the subject of an export


class SearchOptions(NamedTuple):
    """Settings of the search in an artefact; None is the run's own."""

    max_length: int | None = None
    beam_size: int | None = None
    length_penalty: float | None = None
    is_plain: bool = False  # without Marian's narrowing beam and its ban on the unknown token


@dataclass(frozen=True)
class Task:
    """The functions of a task; `Any` stands for its own kind of subject."""

    load: Callable[[Run, int, SearchOptions], Any]
    decoding: Callable[[Any], dict[str, Any]]  # the manifest's settings of the search
    texts: Callable[[Any, str, Sequence[str], int], Sequence[Scored]]  # the run's own
    signatures: Callable[..., saved_model_signatures.Signatures]  # of a SavedModel
    requests: Callable[[Any, Sequence[str]], saved_model_requests.Requests]
    examples: Callable[[Any, Mapping[str, str]], list[str]]  # those that the model gets right


def load(run: Run, options: SearchOptions) -> tuple[Task, Any]:
    """Return the task of a finished run, and the run's translator or generator.

    Args:
        run: The opened run.
        options: The search of the artefact.

    Raises:
        ValueError: The run is not finished, or an option is invalid.
    """
    run.check_finished()
    max_length = options.max_length
    if max_length is None:
        max_length = run.config.data.max_length
    if max_length < 2:
        raise ValueError(f"max_length={max_length} must be at least 2: a token and the end token")
    task = TASKS[run.config.model.architecture]
    return task, task.load(run, max_length, options)


def _load_translator(run: Run, max_length: int, options: SearchOptions) -> Translator:
    defaults = run.config.decoding
    beam_size = defaults.beam_size if options.beam_size is None else options.beam_size
    alpha = defaults.length_penalty if options.length_penalty is None else options.length_penalty
    if beam_size < 1:
        raise ValueError(f"beam_size={beam_size} must be at least 1")
    if not 0 <= alpha < math.inf:
        raise ValueError(f"length_penalty={alpha} must be a number from 0 on")
    decoding = defaults.replace(beam_size=beam_size, length_penalty=alpha)
    if options.is_plain:
        decoding = decoding.replace(narrowing=False, allow_unknown=True)
    return Translator.of(run).with_search(decoding, max_length)


def _load_generator(run: Run, max_length: int, options: SearchOptions) -> Generator:
    if options.beam_size is not None or options.length_penalty is not None:
        raise ValueError(
            f"{run.path} is a language model, which has no choice of beam size and length penalty"
        )
    return Generator(run.load_model(), run.tokenizers.target, max_length=max_length)


def _translations(
    translator: Translator, name: str, samples: Sequence[str], beam_size: int
) -> Sequence[Scored]:
    with _ignore_truncation_warnings():
        best = [best for best, *_ in translator.n_best(samples, beam_size)]
        if name == "score":
            translations = [translation.text for translation in best]
            scored = translator.score(samples, translations)
            return [(text, one.log_prob) for text, one in zip(translations, scored, strict=True)]
        return best


def _translation_requests(
    translator: Translator, samples: Sequence[str]
) -> saved_model_requests.Requests:
    with _ignore_truncation_warnings():
        return saved_model_requests.of_translator(translator, samples)


def _continuations(
    generator: Generator, name: str, samples: Sequence[str], beam_size: int
) -> Sequence[Scored]:
    with _ignore_truncation_warnings():
        if name == "score":
            return list(zip(samples, generator.log_prob(samples), strict=True))
        return generator.complete(samples)


def right_examples(translator: Translator, known: Mapping[str, str]) -> list[str]:
    """Return the sentences of `known` that the model translates as given."""
    with _ignore_truncation_warnings():
        translations = translator.translate(list(known)) if known else []
    pairs = zip(known.items(), translations, strict=True)
    return [source for (source, target), translation in pairs if translation == target]


@contextmanager
def _ignore_truncation_warnings() -> Iterator[None]:
    """Ignore warnings of truncated samples: some are meant to be too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _translator_decoding(translator: Translator) -> dict[str, Any]:
    return {"max_length": translator.max_length} | translator.decoding.to_dict()


TASKS: Mapping[Architecture, Task] = {
    "encoder-decoder": Task(
        load=_load_translator,
        decoding=_translator_decoding,
        texts=_translations,
        signatures=saved_model_signatures.translating,
        requests=_translation_requests,
        examples=right_examples,
    ),
    "decoder": Task(
        load=_load_generator,
        decoding=lambda own: {"max_length": own.max_length},
        texts=_continuations,
        signatures=saved_model_signatures.continuing,
        requests=saved_model_requests.of_generator,
        examples=lambda own, known: [],
    ),
}
