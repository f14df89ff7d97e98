"""The corpora that `data.train` and `data.valid` name."""

import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SELF_CONTAINED = ("tfds:", "phrasebook:")  # prefixes of a data source that has both languages
TSV = (".tsv", ".tsv.gz")  # suffixes of a file that has both languages
KEYS = {"text", "weight", "tag", "languages"}


@dataclass(frozen=True)
class Corpus:
    """One corpus of a training or validation text."""

    text: str | list[str]  # a data source, as in `tfformer.data.sources.read_pairs`
    # Share of an epoch relative to the other corpora; None for a share proportional to size
    weight: float | None = None
    tag: str = ""  # a symbol before each source, such as `<de>`; one of `data.tags`
    languages: tuple[str, ...] | None = None  # source and target; None for `data.languages`


def corpora_of(source: Any, setting: str = "data.train") -> list[Corpus]:
    """Divide `data.train` or `data.valid` of a recipe into its corpora.

    `setting` names the key in messages. A `source` that is not a list of corpora is a single
    corpus. An item that is not a corpus raises ValueError.

    Example:
        >>> [corpus.text for corpus in corpora_of([["a.en", "a.de"], "tfds:b"])]
        [['a.en', 'a.de'], 'tfds:b']
    """
    if source in ("", []):  # not set
        return [Corpus(source)]
    if isinstance(source, list) and not _names_one_corpus(source):
        return [_corpus(item, setting) for item in source]
    return [_corpus(source, setting)]


def _names_one_corpus(items: list[Any]) -> bool:
    """Whether the items are the files of one corpus: of both sides, and of links."""
    if not all(isinstance(item, str | Path) for item in items):
        return False
    return not all(map(_has_both_languages, items))


def _has_both_languages(source: str | Path) -> bool:
    return str(source).startswith(SELF_CONTAINED) or str(source).endswith(TSV)


def _corpus(item: Any, setting: str) -> Corpus:
    if isinstance(item, Corpus):
        return item
    values = item if isinstance(item, dict) else {"text": item}
    text: Any = values.get("text")
    weight = values.get("weight")
    files = text if isinstance(text, list) else [text]
    names_files = bool(files) and all(isinstance(file, str | Path) for file in files)
    if not values.keys() <= KEYS or not names_files:
        raise ValueError(
            f"{setting} has the corpus {reprlib.repr(item)}; use a file, a list of its files, "
            "or {text: ..., weight: ..., tag: ..., languages: ...}"
        )
    if isinstance(text, list) and any(map(_has_both_languages, text)):
        raise ValueError(
            f"{setting} has the corpus {reprlib.repr(item)}, in which a file contains both "
            "languages; make that file a separate corpus"
        )
    if weight is not None and (type(weight) not in (int, float) or not 0 < weight <= 10**9):
        raise ValueError(
            f"{setting} has the weight {reprlib.repr(weight)}; use a number above 0, up to 1e9"
        )
    tag, languages = values.get("tag", ""), values.get("languages")
    if not isinstance(tag, str):
        raise ValueError(f"{setting} has the tag {reprlib.repr(tag)}; use one of data.tags")
    if languages is None:
        return Corpus(text, weight and float(weight), tag)
    if not (
        isinstance(languages, list)
        and len(languages) == 2
        and all(isinstance(language, str) for language in languages)
    ):
        raise ValueError(
            f"{setting} has the languages {reprlib.repr(languages)}; name source and target, for "
            "example [en, de]"
        )
    return Corpus(text, weight and float(weight), tag, tuple(languages))
