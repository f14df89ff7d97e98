"""The built-in English-German parallel corpus.

The grammar in `scripts/phrasebook` generated it as `phrasebook/*.tsv.gz`, one pair per line.
"""

from __future__ import annotations

import gzip
import random
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tfformer.storage.whole_files import write_text

SPLITS = ("train", "valid", "test")
LANGUAGES = {"en": "source", "de": "target"}
SEED = 20170612
REPETITIONS = 16  # copies of each fixed phrase in train; with fewer, the model does not learn it
FOLDER = Path(__file__).with_suffix("")


@dataclass(frozen=True)
class Pair:
    """One sentence in both languages. Words are numbered from 0, as `str.split()` returns them."""

    source: str  # the English sentence
    target: str  # the German sentence
    family: str  # the kind of sentence, such as "question" or "coreference"
    alignment: tuple[tuple[int, int], ...]  # pairs of a source word and its target word, in order
    antecedent: tuple[int, ...] = ()  # the source words that "it" refers to; coreference only
    distractor: tuple[int, ...] = ()  # the source words of the other noun phrase; coreference only
    # The source word "it" and its target word; coreference only
    pronoun: tuple[int, int] | None = None
    familiar: str = ""  # `target` with "du" instead of "Sie"; empty if it addresses nobody


def pairs(split: str) -> list[Pair]:
    """Return all pairs of a split, "train", "valid" or "test", in a fixed shuffled order.

    The combinations of content words in valid and test do not occur in train. Only train contains
    the fixed phrases of small talk ("How are you?"), each of them 16 times.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; the phrasebook has {', '.join(SPLITS)}")
    return list(_shuffled(split))


def formality(split: str) -> list[tuple[str, str, str]]:
    """Return (source, target, tag) of the pairs that address somebody, twice each.

    The target with the tag "<Sie>" is the pair's own; with "<du>" it says "du".

    Example:
        >>> rows = [row for row in formality("train") if row[0] == "Please sit down."]
        >>> sorted(set(rows))[0]
        ('Please sit down.', 'Bitte setz dich.', '<du>')
    """
    rows = []
    for pair in pairs(split):
        if pair.familiar:
            rows.append((pair.source, pair.target, "<Sie>"))
            rows.append((pair.source, pair.familiar, "<du>"))
    return rows


@cache
def _shuffled(split: str) -> tuple[Pair, ...]:
    text = gzip.decompress((FOLDER / f"{split}.tsv.gz").read_bytes()).decode("utf-8")
    read = []
    for line in text.splitlines():
        source, target, family, alignment, antecedent, distractor, pronoun, du = line.split("\t")
        links = _links(alignment)
        (pronoun_link,) = _links(pronoun) or (None,)
        roles = _words(antecedent), _words(distractor), pronoun_link
        read.append(Pair(source, target, family, links, *roles, du))
    read += [pair for pair in read if pair.family == "small talk"] * (REPETITIONS - 1)
    return tuple(random.Random(f"{SEED} {split}").sample(read, len(read)))


def _words(column: str) -> tuple[int, ...]:
    return tuple(map(int, column.split()))


def _links(column: str) -> tuple[tuple[int, int], ...]:
    links = (link.split("-") for link in column.split())
    return tuple((int(source), int(target)) for source, target in links)


def write(output: str | Path) -> list[Path]:
    """Write {train,valid,test}.{en,de} into a folder, one sentence per line; return the paths.

    Files from an interrupted call are kept, and the missing files are written. It raises
    FileExistsError if a file with one of these names has other content, or if all six files exist
    already.
    """
    output = Path(output)
    texts = {
        output / f"{split}.{language}": _text(split, side)
        for split in SPLITS
        for language, side in LANGUAGES.items()
    }
    missing = {}
    for path, text in texts.items():
        if not path.exists():
            missing[path] = text
        elif not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            raise FileExistsError(
                f"{path} already exists and was not overwritten; choose another folder, or delete "
                "the file"
            )
    if not missing:
        raise FileExistsError(
            f"{output} already contains the complete phrasebook; choose another folder, or delete "
            "this one"
        )
    if existing := len(texts) - len(missing):
        warnings.warn(
            f"{output} already contained {existing} of the phrasebook's {len(texts)} files; only "
            "the missing files are written",
            stacklevel=2,
        )
    output.mkdir(parents=True, exist_ok=True)
    for path, text in missing.items():
        write_text(path, text)
    return list(texts)


def _text(split: str, side: str) -> str:
    return "".join(f"{getattr(pair, side)}\n" for pair in pairs(split))
