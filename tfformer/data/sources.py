"""Sentences and their pairs from text files, TSV, TFDS or the phrasebook.

A data source has one of the forms listed in `read_pairs`, or is a list of data sources.
"""

from __future__ import annotations

import glob
import gzip
import itertools
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TypeVar

from tfformer.config.corpora import SELF_CONTAINED, TSV, Corpus, corpora_of

SentencePair = tuple[str, str]
MAX_LINE = 2**24  # bytes; an endless line, such as from /dev/zero, would fill the memory
Row = tuple[str, ...]  # a sentence pair, or (sentence,) for a language model
LinkedPair = tuple[str, str, str]  # source, target and the links of their words, such as "0-0 1-2"
LINK = re.compile(r"(\d{1,9})-(\d{1,9})")  # numbers of a source word and a target word, from 0 on
R = TypeVar("R", bound=Row)
Bytes = BinaryIO | gzip.GzipFile  # a plain file, or a decompressed one


def read_pairs(
    source: str | Path | Sequence[Any],
    folder: str | Path = ".",
    languages: tuple[str, ...] | None = None,
    split: str = "train",
    tags: Sequence[str] = (),
) -> Iterator[SentencePair]:
    """Yield the sentence pairs (source, target) of a data source.

    A data source has one of four forms:

    - `[train.en, train.de]`: two text files, line by line; `.gz` too. A third file may contain the
      links between the words of each pair, see `read_linked_pairs`.
    - `train.tsv`: one file of source, tab, target lines; `.tsv.gz` too. With `tags`, a third column
      may name the tag of a line.
    - `tfds:NAME` or `tfds:NAME@SPLIT`: TensorFlow Datasets.
    - `phrasebook:SPLIT`: the sentences that come with the package; `phrasebook:SPLIT-formality`,
      those that address somebody, with the tags `<du>` and `<Sie>`.

    A `*` in a file name matches any number of parts: `[part-*.en.gz, part-*.de.gz]`. A list of such
    sources, or of `{text: source, weight: number, tag: <de>, languages: [en, de]}`, is read in
    order. A tag, one of `tags`, is put before each source: "<de> A dog.".

    Relative paths start from `folder`. `languages` are the keys of source and target in TensorFlow
    Datasets, by default those that the data set declares; ("de", "en") reverses the phrasebook.
    `split` applies to a `tfds:NAME` without `@SPLIT`.

    Raises:
        FileNotFoundError: A file does not exist.
        ValueError: The form is unknown, the sides differ in length, or the text is not UTF-8 or
            contains a NUL byte, a tag or an unknown tag.

    Example:
        >>> next(read_pairs("phrasebook:test"))[0].endswith((".", "?", "!"))
        True
    """
    linked = read_linked_pairs(source, folder, languages, split, tags)
    return ((text, translation) for text, translation, _ in linked)


def read_linked_pairs(
    source: str | Path | Sequence[Any],
    folder: str | Path = ".",
    languages: tuple[str, ...] | None = None,
    split: str = "train",
    tags: Sequence[str] = (),
) -> Iterator[LinkedPair]:
    """Yield the pairs of `read_pairs` and the links between their words, "" without links.

    Links are in Pharaoh's format, which eflomal and fast_align write: "0-0 1-2" links word 1 of the
    source to word 2 of the target, counted from 0. Words are separated by spaces; a tag is a word.

    Example:
        >>> next(read_linked_pairs("phrasebook:train"))[2].split()[0]
        '0-0'
    """
    readers = [
        _corpus_rows(corpus, folder, corpus.languages or languages, split, tags)
        for corpus in corpora_of(source)
    ]
    return itertools.chain.from_iterable(readers)


def _corpus_rows(
    corpus: Corpus,
    folder: str | Path,
    languages: tuple[str, ...] | None,
    split: str,
    tags: Sequence[str],
) -> Iterator[LinkedPair]:
    source = corpus.text
    name = str(source)
    rows: Iterator[Row]
    if not isinstance(source, str | Path) and len(source) in (2, 3):
        parts = matching_files([Path(folder, path) for path in source])
        rows = itertools.chain.from_iterable(map(_linked_rows, parts))
    elif name.startswith("tfds:"):
        rows = _tfds_rows(name.removeprefix("tfds:"), languages, split, sides=2)
    elif name.startswith("phrasebook:"):
        rows = _phrasebook_rows(name.removeprefix("phrasebook:"), languages)
    elif name.endswith(TSV):
        parts = matching_files([Path(folder, name)])
        known = () if corpus.tag else tags
        rows = itertools.chain.from_iterable(_tsv_rows(path, known) for (path,) in parts)
    else:
        raise ValueError(
            f"data source {source!r} has an unknown form; use [SOURCE_FILE, TARGET_FILE], "
            "FILE.tsv, tfds:NAME@SPLIT or phrasebook:SPLIT"
        )
    return _at_least_one(_tagged(rows, corpus, tags), source, "sentence pair")


def _tagged(rows: Iterator[Row], corpus: Corpus, tags: Sequence[str]) -> Iterator[LinkedPair]:
    """Put the corpus' tag, or the tag of a row's third column, before each source.

    The fourth column has the links. A tag is a word, so the numbers of the source words grow by 1.
    """
    for number, row in enumerate(rows, start=1):
        source, target, tag, links = (*row, "", "")[:4]
        for unwanted in tags:
            if unwanted in source or unwanted in target:
                raise ValueError(
                    f"{corpus.text}, row {number}: the text contains {unwanted}, which is one of "
                    "data.tags; remove it from the text, or choose another tag"
                )
        if tag and corpus.tag:
            raise ValueError(
                f"{corpus.text} has tags in its rows, and the corpus has the tag {corpus.tag}; "
                "leave out the tag of the corpus"
            )
        tag = tag or corpus.tag
        if tag and tag not in tags:
            raise ValueError(f"{corpus.text} has the tag {tag}; add it to data.tags")
        if tag:
            source = f"{tag} {source}"
            links = LINK.sub(lambda link: f"{int(link[1]) + 1}-{link[2]}", links)
        yield source, target, links


def without_tag(source: str, tags: Sequence[str]) -> str:
    """Return a source without the tag and the space that `read_pairs` put before it.

    Example:
        >>> without_tag("<de> A dog.", ["<de>"]), without_tag("A dog.", ["<de>"])
        ('A dog.', 'A dog.')
    """
    for tag in tags:
        if source.startswith(f"{tag} "):
            return source.removeprefix(f"{tag} ")
    return source


def read_aligned(source: str | Path, target: str | Path) -> Iterator[SentencePair]:
    """Yield (source, target) from two text files, line by line; names are not patterns here."""
    pairs = _aligned_rows(Path(source), Path(target))
    return _at_least_one(pairs, str(source), "sentence pair")


def read_sentences(
    source: str | Path | Sequence[Any],
    folder: str | Path = ".",
    languages: tuple[str] | None = None,
    split: str = "train",
) -> Iterator[tuple[str]]:
    """Yield (sentence,) from a monolingual data source, for a language model.

    The forms are those of `read_pairs`, with one text file `train.txt`; [en] or [de] in `languages`
    chooses a side of the phrasebook.
    """
    corpora = corpora_of(source)
    if corpora[0].text is not source:
        readers = [read_sentences(corpus.text, folder, languages, split) for corpus in corpora]
        return itertools.chain.from_iterable(readers)
    name = str(source)
    if not isinstance(source, str | Path) or name.endswith(TSV):
        raise ValueError(
            f"data source {source!r} has two sides, but a language model reads one text; use "
            "FILE, [{text: FILE}, {text: FILE}], tfds:NAME@SPLIT or phrasebook:SPLIT"
        )
    if name.startswith("tfds:"):
        texts = _tfds_rows(name.removeprefix("tfds:"), languages, split, sides=1)
        rows: Iterator[tuple[str]] = ((text,) for (text,) in texts)
    elif name.startswith("phrasebook:"):
        rows = _phrasebook_sentences(name.removeprefix("phrasebook:"), languages)
    else:
        parts = matching_files([Path(folder, name)])
        rows = ((line,) for (path,) in parts for line in read_lines(path))
    return _at_least_one(rows, source, "sentence")


def source_files(
    source: str | Path | Sequence[Any], folder: str | Path = "."
) -> list[tuple[Path, ...]]:
    """Return the files of a data source, one per side for each part.

    TensorFlow Datasets and the phrasebook have none.
    """
    parts = []
    for corpus in corpora_of(source):
        names = [corpus.text] if isinstance(corpus.text, str | Path) else corpus.text
        if not str(names[0] if names else "").startswith(SELF_CONTAINED):
            parts += matching_files([Path(folder, name) for name in names])
    return parts


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, `.gz` too, without their ends."""
    with open_unpacked(Path(path)) as stream:
        yield from lines(stream, str(path))


@contextmanager
def open_unpacked(path: Path) -> Iterator[Bytes]:
    """Open a file for reading bytes, decompressed if its name ends in `.gz`."""
    check_exists(path)
    with path.open("rb") as raw, unpacked(raw, path) as stream:
        yield stream


def check_exists(path: Path) -> None:
    """Raise FileNotFoundError unless a file exists."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: there is no such file; correct the path or fetch the data first"
        )


@contextmanager
def unpacked(raw: BinaryIO, path: Path) -> Iterator[Bytes]:
    """Yield the bytes of an open file, decompressed if its name ends in `.gz`."""
    if path.suffix != ".gz":
        yield raw
        return
    try:
        with gzip.open(raw) as stream:
            if not raw.seek(0, os.SEEK_END):  # Python reads an empty file as a valid archive
                raise EOFError("it is empty")
            raw.seek(0)
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is not a complete gzip file ({error}); fetch or compress it again"
        ) from error


def lines(stream: Bytes, name: str) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 stream without "\r\n" or "\n"; `name` names it in errors.

    Only a newline ends a line, unlike U+2028. A byte order mark is left out.
    """
    for number, line in enumerate(decoded(lines_of_bytes(stream, name), name)):
        text = line.removeprefix("\ufeff") if number == 0 else line
        yield text.removesuffix("\n").removesuffix("\r")


def decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield lines of UTF-8 text with their ends and the byte order mark."""
    for number, line in enumerate(lines, start=1):
        yield _text(line, f"{name}, line {number}")


def lines_of_bytes(stream: Bytes, name: str) -> Iterator[bytes]:
    """Yield the lines of a binary file with their ends; a line may have up to `MAX_LINE` bytes."""
    for number in itertools.count(1):
        line = stream.readline(MAX_LINE + 1)
        if not line:
            return
        if len(line) > MAX_LINE:
            raise ValueError(
                f"{name}, line {number} has more than {MAX_LINE:,} bytes; use a text file with "
                "line ends"
            )
        yield line


def _text(line: bytes, origin: str) -> str:
    if b"\0" in line:
        raise ValueError(
            f"{origin} contains a NUL byte, so it is not text; save the file as UTF-8 text"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{origin}: byte {error.start + 1}, {line[error.start]:#04x}, is not UTF-8; "
            "convert the text to UTF-8"
        ) from error


def _at_least_one(rows: Iterator[R], source: object, unit: str) -> Iterator[R]:
    first = next(rows, None)
    if first is None:
        raise ValueError(f"data source {source!r} is empty; it needs at least one {unit}")
    yield first
    yield from rows


def _aligned_rows(*paths: Path) -> Iterator[Any]:
    counts = [0] * len(paths)
    for row in itertools.zip_longest(*map(read_lines, paths)):
        counts = [count + (line is not None) for count, line in zip(counts, row, strict=True)]
        if min(counts) == max(counts):
            yield row
    for path, count in zip(paths, counts, strict=True):
        if count != counts[0]:
            raise ValueError(
                f"{paths[0]} has {counts[0]:,} lines and {path} {count:,}, but line n of one must "
                "belong to line n of the other; use files of the same length"
            )


def _linked_rows(paths: tuple[Path, ...]) -> Iterator[Row]:
    """Yield (source, target, "") or, from three files, (source, target, "", links)."""
    for number, (source, target, *links) in enumerate(_aligned_rows(*paths), start=1):
        sizes = len(source.split()), len(target.split())
        for link in " ".join(links).split():
            numbers = LINK.fullmatch(link)
            if not numbers or int(numbers[1]) >= sizes[0] or int(numbers[2]) >= sizes[1]:
                raise ValueError(
                    f"{paths[2]}, line {number}: {link[:40]!r} must be a source word and a target "
                    f"word, counted from 0, such as 0-0, of {sizes[0]} and {sizes[1]} words; align "
                    "these files, divided at spaces"
                )
        yield source, target, "", *links


def _tsv_rows(path: Path, tags: Sequence[str]) -> Iterator[Row]:
    """Yield (source, target), or (source, target, tag) where a line has a third column."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = tuple(line.split("\t"))
        if len(columns) == 3 and tags:
            if columns[2] and columns[2] not in tags:
                raise ValueError(
                    f"{path}, line {number}: the third column is {columns[2][:40]!r}, which is not "
                    f"in data.tags ({', '.join(tags)}); correct it, or add it there"
                )
        elif len(columns) != 2:
            rule = "2 or 3, source, target and tag" if tags else "2, source and target"
            raise ValueError(
                f"{path}, line {number}: {len(columns)} columns, but a line must have {rule}; put "
                "exactly one tab between them"
            )
        yield columns


def _tfds_rows(
    name: str, languages: tuple[str, ...] | None, split: str, sides: int
) -> Iterator[Row]:
    name, _, named_split = name.partition("@")
    tfds, builder = _tfds_builder(name)
    keys = _tfds_languages(builder.info, languages, sides)
    try:
        builder.download_and_prepare()  # unless the data set is already here
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise OSError(
            f"TFDS cannot fetch {name!r} ({reason}); check network and disk, and try again"
        ) from error
    try:
        dataset = builder.as_dataset(split=named_split or split)
    except ValueError as error:
        raise ValueError(
            f"TFDS dataset {name!r} has no split {named_split or split!r}; choose one of "
            f"{', '.join(builder.info.splits)}"
        ) from error
    for number, row in enumerate(tfds.as_numpy(dataset), start=1):
        origin = f"tfds:{name}, row {number}"
        yield tuple(_text(row[key], origin) for key in keys)


def tfds_version(name: str) -> str:
    """Return the full name of a TFDS data set, with its version."""
    return str(_tfds_builder(name)[1].info.full_name)


def _tfds_builder(name: str) -> tuple[ModuleType, Any]:
    try:
        import tensorflow_datasets as tfds
    except ModuleNotFoundError as error:
        raise ValueError(
            f"data source 'tfds:{name}' needs TensorFlow Datasets; pip install -e '.[tfds]'"
        ) from error
    try:
        return tfds, tfds.builder(name)
    except ValueError as error:
        raise ValueError(
            f"TensorFlow Datasets has no data set {name!r}; choose one from "
            "https://www.tensorflow.org/datasets/catalog"
        ) from error


def _tfds_languages(info: Any, languages: tuple[str, ...] | None, sides: int) -> tuple[str, ...]:
    chosen = languages or info.supervised_keys
    known = list(info.features)
    count = {1: "one", 2: "two"}[sides]
    if chosen is None:
        raise ValueError(
            f"TFDS dataset {info.name!r} declares no source and target; set languages to {count} "
            f"of {known}"
        )
    if len(chosen) != sides or not set(chosen) <= set(known):
        raise ValueError(
            f"languages {list(chosen)} do not fit TFDS dataset {info.name!r}; choose {count} of "
            f"{known}"
        )
    return tuple(chosen)


def _phrasebook_rows(split: str, languages: tuple[str, ...] | None = None) -> Iterator[Row]:
    from tfformer.data import phrasebook

    chosen = list(languages or ["en", "de"])
    if chosen not in (["en", "de"], ["de", "en"]):
        raise ValueError(
            f"languages {chosen} do not choose the sides of the phrasebook; set those of the "
            f"corpus: {{text: phrasebook:{split}, languages: [en, de]}}, or [de, en]"
        )
    if split.endswith("-formality"):
        if chosen == ["de", "en"]:
            raise ValueError(
                f"phrasebook:{split} translates from English to German only; set languages to "
                "[en, de], or use another corpus"
            )
        return iter(phrasebook.formality(split.removesuffix("-formality")))
    rows = (
        (pair.source, pair.target, "", " ".join(f"{i}-{j}" for i, j in pair.alignment))
        for pair in phrasebook.pairs(split)
    )
    if chosen == ["de", "en"]:
        return ((de, en, tag, LINK.sub(r"\2-\1", links)) for en, de, tag, links in rows)
    return rows


def _phrasebook_sentences(split: str, languages: tuple[str] | None) -> Iterator[tuple[str]]:
    chosen = list(languages or [])
    if chosen not in (["en"], ["de"]):
        raise ValueError(
            f"languages {chosen} do not choose a side of the phrasebook; use [en] or [de]"
        )
    return ((pair[chosen == ["de"]],) for pair in _phrasebook_rows(split))


def matching_files(names: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Return the files of each part of a text, one file per side, in the order of the parts' names.

    A `*` in a name matches any text within a file name, the same text on all sides. Names without a
    `*` form one part, whether or not the files exist. FileNotFoundError: no file matches, or a part
    lacks a side.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("part-1.en", "part-1.de", "part-2.en", "part-2.de"):
        ...     folder.joinpath(name).touch()
        >>> parts = matching_files([folder / "part-*.en", folder / "part-*.de"])
        >>> [[file.name for file in part] for part in parts]
        [['part-1.en', 'part-1.de'], ['part-2.en', 'part-2.de']]
    """
    stars = {str(name).count("*") for name in names}
    if stars == {0}:
        return [tuple(names)]
    if len(stars) > 1:
        raise ValueError(
            f"{' and '.join(map(str, names))} must contain the same number of *, because each * "
            "stands for the same text on both sides"
        )
    matches = [_files_by_wildcards(str(name)) for name in names]
    for number, name in enumerate(names):
        if not matches[number]:
            raise FileNotFoundError(
                f"{name}: no file matches; correct the pattern or fetch the data first"
            )
        for wildcards, file in sorted(item for side in matches for item in side.items()):
            if wildcards not in matches[number]:
                raise FileNotFoundError(
                    f"{_filled(str(name), wildcards)}: no such file, but it is the other side of "
                    f"{file}"
                )

    def files_of(wildcards: tuple[str, ...]) -> tuple[Path, ...]:
        return tuple(side[wildcards] for side in matches)

    return list(map(files_of, sorted(matches[0])))


def _files_by_wildcards(pattern: str) -> dict[tuple[str, ...], Path]:
    """Return (the texts that the stars match) -> file, for every file that matches the pattern."""
    pieces = pattern.split("*")
    regex = re.compile("([^/]*)".join(map(re.escape, pieces)))
    matches = map(regex.fullmatch, glob.iglob("*".join(map(glob.escape, pieces))))
    return {match.groups(): Path(match[0]) for match in matches if match}


def _filled(pattern: str, wildcards: tuple[str, ...]) -> str:
    pieces = pattern.split("*")
    return "".join(piece + text for piece, text in zip(pieces, (*wildcards, ""), strict=True))
