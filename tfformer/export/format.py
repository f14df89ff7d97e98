"""The interface of a format: its options, and the steps that `pipeline` runs."""

from __future__ import annotations

import importlib.util
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.runtime.progress_lines import Steps
from tfformer.storage.whole_files import digest_of_values

if TYPE_CHECKING:
    from tfformer.config import DecodingConfig, Dialect
    from tfformer.data.sources import SentencePair
    from tfformer.export.parity import Question
    from tfformer.inference.text_model import TextModel
    from tfformer.run_directory import Run


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """A format with its options, which are the fields of the class.

    Args:
        max_length: Maximum number of tokens per sentence, including the end token; by default the
            run's.
        samples: Sentences to compare; by default random pieces from the vocabulary.
        source_language: The source language of a multilingual model; by default the run's.
        target_language: The target language of a multilingual model; by default the run's.
    """

    max_length: int | None = None
    samples: Sequence[str] | None = None
    source_language: str | None = None
    target_language: str | None = None

    title: ClassVar[str]  # the artifact's name in progress lines
    extras: ClassVar[tuple[str, ...]] = ("tensorflow",)  # what `pip install` needs for an export
    subfolder: ClassVar[str] = "."  # the folder of the artifact within the version
    aligns: ClassVar[bool] = True  # whether the artifact returns alignments and confidences

    @abstractmethod
    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        """Return the artifact's search, given the run's search."""

    def dialect(self, of_run: Dialect) -> Dialect:
        """Return the artifact's dialect, which may differ from the run's in the search."""
        return of_run

    @abstractmethod
    def prepare(self, run: Run, step: Steps) -> None:
        """Raise ValueError, before loading the model, if the format cannot represent the run."""

    @abstractmethod
    def write(self, folder: Path, model: TextModel) -> None:
        """Write the artifact into an empty folder."""

    @abstractmethod
    def description(self, folder: Path) -> dict[str, Any]:
        """Return the keys of the manifest that describe the written artifact."""

    @abstractmethod
    def questions(self, model: TextModel, samples: Sequence[str]) -> list[Question]:
        """Return the questions that the artifact must answer as the model does."""

    def check(self, measured: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse an artifact whose answers, measured by `parity.compare`, differ from the run's."""
        from tfformer.export import parity

        parity.check(measured)

    def measured(self, folder: Path, run: Run, model: TextModel, step: Steps) -> dict[str, Any]:
        """Return further keys for the manifest, measured on the artifact after the comparison."""
        return {}

    def finish(self, version: Path) -> None:  # noqa: B027  most formats have no other files
        """Add the files around the artifact to the version, before it is published."""


def with_search(
    of_run: DecodingConfig, beam_size: int | None, length_penalty: float | None
) -> DecodingConfig:
    """Return a search with its number of beams and alpha replaced unless they are None."""
    changes = {"beam_size": beam_size, "length_penalty": length_penalty}
    return of_run.replace(**{name: value for name, value in changes.items() if value is not None})


def validation_pairs(run: Run, count: int) -> list[SentencePair]:
    """Return up to `count` pairs of the run's validation text, equally many from each corpus.

    If the run's languages choose a tag, only pairs with this tag are returned, without the tag,
    which the tokenizer adds.

    Raises:
        OSError: The text cannot be read.
        ValueError: The text is damaged, or no pair has the tag.
    """
    tag = run.tokenizers.source.tag
    begin = f"{tag} " if tag else ""
    readers = _validation_corpora(run)
    rows = filter(None, itertools.chain.from_iterable(itertools.zip_longest(*readers)))
    pairs = (
        (source.removeprefix(begin), target) for source, target in rows if source.startswith(begin)
    )
    chosen = list(itertools.islice(pairs, count))
    if not chosen:
        raise ValueError(
            f"no row of data.valid has the tag {tag}; add text with the tag, or leave out "
            "--languages"
        )
    return chosen


def check_validation_text(run: Run) -> None:
    """Check that the validation text is the one that the run was trained with.

    Raises:
        OSError: The text cannot be read.
        ValueError: It is another text.
    """
    digest = run.digests.get("valid")
    if not digest:  # an imported run
        return
    rows = list(itertools.chain.from_iterable(_validation_corpora(run)))
    if digest_of_values(rows) != digest:
        raise ValueError(
            f"data.valid is not the validation text that {run.folder} was trained with; restore "
            "it, or correct data.folder in config.json"
        )


def _validation_corpora(run: Run) -> list[Iterator[SentencePair]]:
    from tfformer.config import corpora_of
    from tfformer.data.sources import read_pairs

    data = run.config.data
    languages = (data.languages[0], data.languages[1]) if data.languages else None
    return [
        read_pairs([corpus], data.folder, languages, "validation", data.tags)
        for corpus in corpora_of(data.valid, "data.valid")
    ]


def check_installed(module: str, library: str, extra: str) -> None:
    """Raise ValueError if the library of a format is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ValueError(
            f"this format needs {library}; install it with: pip install -e '.[{extra}]'"
        )
