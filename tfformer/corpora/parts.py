"""The parts of a corpus, the translation of one part, and the folder of the translations.

A part is a file with one sentence per line. Its translation has the same name in another folder and
is written completely or not at all, so a translation that exists is complete.
"""

from __future__ import annotations

import codecs
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from tfformer.config.corpora import TSV
from tfformer.corpora.teachers import Program
from tfformer.data.encoding import in_batches
from tfformer.data.sources import Bytes, lines_of_bytes, matching_files, unpacked
from tfformer.engines import Engine
from tfformer.storage.folders import local_path
from tfformer.storage.whole_files import (
    LOCK,
    OWN_BYTES,
    TEMPORARY,
    check_regular,
    locked,
    parse_json,
    read_text,
    whole_text,
    write_text,
)

CHUNK = 8192  # lines in memory; lines of similar length form a batch
PORTION = 64  # sentences that are translated together
TRIAL = 8  # sentences
JOB = "translation.json"  # in the folder of the translations: the model and its settings
BAD_LINES = ".bad.tsv"  # suffix of the file that lists the untranslatable lines


class Part(NamedTuple):
    """A file to translate, and the file of its translations.

    Both have one sentence per line, in UTF-8, and are compressed by gzip if the name ends in `.gz`.
    A part that `makes_pairs` may have a reference after a tab in each line of a TSV file; its
    output has lines of source, tab, translation, without the lines that have no translation.
    """

    source: Path
    output: Path
    makes_pairs: bool = False

    @property
    def bad_lines(self) -> Path:
        """The file with the numbers of the lines that could not be translated."""
        return self.output.with_name(self.output.name + BAD_LINES)

    @property
    def is_done(self) -> bool:
        """Whether its translation exists, and therefore is complete."""
        return self.output.is_file()


def find_parts(pattern: str, folder: str | Path, makes_pairs: bool = False) -> list[Part]:
    """Find the files of a pattern, such as `corpus/part-*.en.gz`, in the order of their names.

    `folder` is the folder of the translations; see `matching_files` for patterns. Pairs are stored
    as `.tsv.gz` files.

    Raises:
        FileNotFoundError: There is no such file, or a link is broken.
        ValueError: A file is a device, two files have the same name, a file would be its own
            translation, a file has a name that the job itself uses, or `folder` is an address.
    """
    folder = local_path(folder)
    matches = [source for (source,) in matching_files([Path(pattern)])]
    sources = [source for source in matches if not source.is_dir()]
    if not sources:
        raise FileNotFoundError(f"{pattern} is a folder; use a file name pattern, in quotes")
    names: dict[str, Path] = {}
    for source in sources:
        check_regular(source)
        if not source.exists():
            raise FileNotFoundError(f"{source} does not exist, or its link is broken")
        if source.name in (JOB, LOCK) or source.name.endswith(BAD_LINES):
            raise ValueError(
                f"{source} has the name of a file that a job writes beside its translations; "
                "rename it, or use a pattern that leaves it out"
            )
        name = source.name
        if makes_pairs:
            name = name.removesuffix(".gz").removesuffix(".tsv") + ".tsv.gz"
        if name in names:
            raise ValueError(
                f"{names[name]} and {source} have the same name, which their translations "
                "would share; rename one of them"
            )
        names[name] = source
    parts = [Part(source, folder / name, makes_pairs) for name, source in names.items()]
    if any(part.source.resolve() == part.output.resolve() for part in parts):
        raise ValueError(f"{folder} is the folder of the corpus itself; choose another folder")
    return parts


@contextmanager
def job_folder(folder: str | Path, settings: Mapping[str, Any]) -> Iterator[None]:
    """Lock the folder of the translations for the block; create it if it is missing.

    `settings` are everything that determines a translation, as plain JSON values; those of a job
    that has not translated anything are replaced.

    Raises:
        BlockingIOError: Another command translates into the folder.
        FileExistsError: The folder has other content.
        ValueError: The folder has translations with other settings.
    """
    job = Path(folder)
    if job.exists() and not job.is_dir():
        raise FileExistsError(f"{job} is a file, not a folder; choose another folder")
    job.mkdir(parents=True, exist_ok=True)
    _check_own(job)  # before the lock, which would delete the file of that name
    with locked(job / LOCK, f"another command is translating into {job}; wait until it ends"):
        _begin_job(job, dict(settings))
        yield


def _check_own(folder: Path) -> None:
    """Raise FileExistsError if the folder contains other files than a job's."""
    if _has_content(folder) and not (folder / JOB).is_file():
        raise FileExistsError(
            f"{folder} is not empty and has no {JOB} of an earlier job; choose another folder"
        )


def _has_content(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()} - {JOB, LOCK}
    return not all(map(TEMPORARY.fullmatch, names))


def _begin_job(folder: Path, settings: dict[str, Any]) -> None:
    job = folder / JOB
    _check_own(folder)
    if not _has_content(folder):
        write_text(job, json.dumps(settings, indent=2) + "\n")
        return
    try:
        earlier = parse_json(read_text(job, OWN_BYTES))
        if not isinstance(earlier, dict):
            raise ValueError("it contains no object")
    except ValueError as error:
        raise ValueError(
            f"{job} is damaged ({error}), so the model of the translations beside it is unknown; "
            "choose another folder"
        ) from None
    if earlier != settings:
        changed = [key for key in {**earlier, **settings} if earlier.get(key) != settings.get(key)]
        raise ValueError(
            f"{folder} has translations with another {' and '.join(changed)}; restore it, or "
            "choose another folder"
        )


# --- The translation of one part ----------------------------------------------------------------


class Counts(NamedTuple):
    """Counts of finished work."""

    lines: int = 0
    tokens: int = 0  # source tokens
    size: int = 0  # bytes read, as stored on disk
    bad: int = 0  # lines that were skipped
    truncated: int = 0  # sentences that were too long for the model

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*map(sum, zip(self, other, strict=True)))


Advance = Callable[[Counts], None]  # called with the counts since the last call


def translate_part(engine: Engine, part: Part, advance: Advance) -> Counts:
    """Translate a part and write it completely or not at all.

    A line that is not UTF-8, or that the tokenizer rejects, gets a blank translation, and its
    number is written to `part.bad_lines`. For a line with a reference, the candidate closest to it
    is written (sequence-level interpolation; Kim and Rush 2016). `advance` is called after every
    few sentences.
    """
    total = Counts()
    read = 0  # bytes
    bad: list[str] = []
    with (
        part.source.open("rb") as raw,
        unpacked(raw, part.source) as stream,
        whole_text(part.output) as output,
    ):
        for read_lines in in_batches(_lines(stream, raw, part), CHUNK):
            chunk, lengths = _counted(engine, read_lines)
            bad += [f"{line.number}\t{line.reason}" for line in chunk if line.reason]
            size = chunk[-1].end - read
            for counts in _write_chunk(engine, part, chunk, lengths, size, output):
                total = total.plus(counts)
                advance(counts)
            read = chunk[-1].end
        if bad:
            write_text(part.bad_lines, "".join(f"{line}\n" for line in bad))
        else:
            part.bad_lines.unlink(missing_ok=True)  # of an earlier source
    return total


class Line(NamedTuple):
    """A line of a part."""

    number: int  # counted from 1
    text: str  # the sentence; empty if the line is bad
    reason: str  # why the line is bad, otherwise empty
    end: int  # the file offset after the line, in bytes as stored on disk
    reference: str | None = None  # a human translation


def _counted(engine: Engine, lines: list[Line]) -> tuple[list[Line], list[int]]:
    """Return the lines and their token counts.

    Lines that the tokenizer rejects, for example because of an unknown language code, are marked
    bad; bisection finds them.
    """
    texts = [line.text for line in lines]
    try:
        return lines, engine.count_tokens(texts)
    except ValueError as error:
        if len(lines) == 1:
            reason = " ".join(str(error).split())
            return [lines[0]._replace(text="", reason=reason)], [0]
    middle = len(lines) // 2
    first, lengths = _counted(engine, lines[:middle])
    second, more = _counted(engine, lines[middle:])
    return first + second, lengths + more


def _write_chunk(
    engine: Engine,
    part: Part,
    chunk: Sequence[Line],
    lengths: Sequence[int],
    size: int,
    output: TextIO,
) -> Iterator[Counts]:
    """Translate lines of similar length together, and write all lines in their order.

    Yields counts. `size` is the size of the lines in bytes, as stored on disk.
    """
    order = sorted(range(len(chunk)), key=lengths.__getitem__)
    full = [index for index in order if lengths[index]]
    translations = [""] * len(chunk)
    translated = _translated(engine, [chunk[index] for index in full])
    for portion in in_batches(full, PORTION):
        for index in portion:
            translations[index] = next(translated).replace("\n", " ")
        of_portion = [lengths[index] for index in portion]
        truncated = sum(length > engine.max_tokens for length in of_portion)
        yield Counts(len(portion), sum(of_portion), truncated=truncated)
    next(translated, None)  # waits for the end of a program, whose exit code may be an error
    if part.makes_pairs:
        pairs = zip(chunk, translations, strict=True)
        rows = [(line.text, text.replace("\t", " ")) for line, text in pairs if text.strip()]
        output.writelines(f"{source}\t{target}\n" for source, target in rows)
    else:
        output.writelines(f"{translation}\n" for translation in translations)
    bad = sum(bool(line.reason) for line in chunk)
    yield Counts(len(chunk) - len(full), size=size, bad=bad)


def _translated(engine: Engine, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the translation of each line."""
    if isinstance(engine, Program):  # started once, it answers line by line
        yield from engine.answers([line.text for line in lines])
        return
    for portion in in_batches(lines, PORTION):
        sentences = [line.text for line in portion]
        references = [line.reference for line in portion]
        if None in references:  # then no line has one
            yield from engine.translate(sentences)
            continue
        from sacrebleu import sentence_chrf

        for candidates, reference in zip(engine.n_best(sentences), references, strict=True):
            texts = [candidate.text for candidate in candidates]
            scores = [sentence_chrf(text, [str(reference)]).score for text in texts]
            yield texts[scores.index(max(scores))]


def first_sentences(part: Part) -> list[str]:
    """Return up to `TRIAL` sentences, on which a teacher is tried before the work begins."""
    with part.source.open("rb") as raw, unpacked(raw, part.source) as stream:
        texts = (line.text for line in _lines(stream, raw, part))
        return list(itertools.islice(filter(str.strip, texts), TRIAL))


def _lines(stream: Bytes, raw: BinaryIO, part: Part) -> Iterator[Line]:
    has_references = part.makes_pairs and part.source.name.endswith(TSV)
    for number, line in enumerate(lines_of_bytes(stream, str(part.source)), start=1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        content = content.removesuffix(b"\n").removesuffix(b"\r")
        text = reason = ""
        reference = None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 at byte {error.start + 1}"
        if "\0" in text:
            text, reason = "", "a NUL character"
        if has_references and text:
            text, *columns = text.split("\t")
            if len(columns) != 1:
                text, reason = "", f"{1 + len(columns)} columns, not 2"
            reference = "".join(columns)
        elif part.makes_pairs:
            text = text.replace("\t", " ")
        yield Line(number, text, reason, raw.tell(), reference)
