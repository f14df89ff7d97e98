"""One part of a corpus: its lines to translations, in order, whole or not at all."""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from tfformer.corpora.engines import Engine
from tfformer.corpora.parts import Part
from tfformer.files import whole_file, write_text

CHUNK = 8192  # lines in memory, of which those of like length are translated together
PORTION = 64  # sentences that are translated together


class Counts(NamedTuple):
    """Figures of what has been done.

    Attributes:
        lines: Lines read.
        tokens: Tokens of the source.
        size: Bytes of the files read, as they lie on the disk.
        bad: Lines that were set aside.
        truncated: Sentences that were too long for the model.
    """

    lines: int = 0
    tokens: int = 0
    size: int = 0
    bad: int = 0
    truncated: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sums.

        Example:
            >>> Counts(lines=1).plus(Counts(lines=2, bad=1))
            Counts(lines=3, tokens=0, size=0, bad=1, truncated=0)
        """
        return Counts(*map(sum, zip(self, other, strict=True)))


Advance = Callable[[Counts], None]  # takes what has been done since the last call


def translate_part(engine: Engine, part: Part, advance: Advance) -> Counts:
    """Translate a part and write it.

    A line that is no UTF-8 is set aside: its translation is blank, and its number stands in
    `part.bad_lines`.

    Args:
        engine: A loaded model.
        part: The files.
        advance: Called after every few sentences.

    Returns:
        The figures of the whole part.

    Raises:
        ValueError: The source is not a whole gzip file.
        OSError: A file cannot be read or written; nothing appears under the part's name.
    """
    total = Counts()
    read = 0  # bytes
    bad: list[str] = []
    with _numbered_lines(part.source) as lines, _opened_output(part.output) as output:
        while chunk := list(itertools.islice(lines, CHUNK)):
            bad += [f"{line.number}\t{line.reason}" for line in chunk if line.reason]
            for counts in _write_chunk(engine, chunk, chunk[-1].end - read, output):
                total = total.plus(counts)
                advance(counts)
            read = chunk[-1].end
        if bad:
            write_text(part.bad_lines, "".join(f"{line}\n" for line in bad))
    return total


class Line(NamedTuple):
    """A line of a part.

    Attributes:
        number: Its number, from 1 on.
        text: The sentence; empty if the line is bad.
        reason: The fault of a bad line, otherwise empty.
        end: The place in the file behind it, in bytes as they lie on the disk.
    """

    number: int
    text: str
    reason: str
    end: int


def _write_chunk(
    engine: Engine, chunk: Sequence[Line], size: int, output: TextIO
) -> Iterator[Counts]:
    """Translate lines of like length together, then write all in their order.

    Args:
        engine: A loaded model.
        chunk: The lines.
        size: Their bytes as they lie on the disk.
        output: Takes the translations.

    Yields:
        The figures of each portion; together they are those of the chunk.
    """
    sentences = [line.text for line in chunk]
    lengths = [len(ids) for ids in engine.tokenizer.encode(sentences)]
    order = sorted(range(len(chunk)), key=lengths.__getitem__)
    full = [index for index in order if lengths[index]]
    translations = [""] * len(chunk)
    for start in range(0, len(full), PORTION):
        portion = full[start : start + PORTION]
        found = engine.translate([sentences[index] for index in portion])
        for index, translation in zip(portion, found, strict=True):
            translations[index] = translation.replace("\n", " ")
        of_portion = [lengths[index] for index in portion]
        truncated = sum(length > engine.max_tokens for length in of_portion)
        yield Counts(len(portion), sum(of_portion), truncated=truncated)
    output.writelines(f"{translation}\n" for translation in translations)
    bad = sum(bool(line.reason) for line in chunk)
    yield Counts(len(chunk) - len(full), size=size, bad=bad)


@contextmanager
def _numbered_lines(path: Path) -> Iterator[Iterator[Line]]:
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        packed = path.suffix == ".gz"
        stream = stack.enter_context(gzip.open(raw)) if packed else raw
        yield _lines(stream, raw, path)


def _lines(stream: BinaryIO | gzip.GzipFile, raw: BinaryIO, path: Path) -> Iterator[Line]:
    try:
        for number, line in enumerate(stream, start=1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            content = content.removesuffix(b"\n").removesuffix(b"\r")
            text, reason = _decoded(content)
            yield Line(number, text, reason, raw.tell())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: not a whole gzip file; fetch or compress it again ({error})"
        ) from None


def _decoded(content: bytes) -> tuple[str, str]:
    """Return a line's text and an empty reason, or no text and the reason."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return "", f"not UTF-8 at byte {error.start + 1}"
    return ("", "a NUL character") if "\0" in text else (text, "")


@contextmanager
def _opened_output(path: Path) -> Iterator[TextIO]:
    """Yield a stream whose file appears under its name when the block ends well."""
    with whole_file(path) as temporary, ExitStack() as stack:
        stream: BinaryIO | gzip.GzipFile = stack.enter_context(temporary.open("wb"))
        if path.suffix == ".gz":  # the same bytes whenever and wherever they are written
            stream = stack.enter_context(gzip.GzipFile("", "wb", fileobj=stream, mtime=0))
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")  # type: ignore[type-var]
        yield stack.enter_context(text)
