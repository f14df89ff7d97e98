"""The prompt, the progress lines and the output files of the commands."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO

from tfformer.runtime.devices import unused_gpu
from tfformer.storage.folders import local_path
from tfformer.storage.whole_files import whole_text

if TYPE_CHECKING:
    from tfformer.corpora.parts import Counts

PROMPT = "> "
LINES = "{n:,} lines, {rate_fmt}"
SHARE = "{percentage:3.0f}% of the corpus{postfix}, {remaining} left"


def load_tensorflow() -> None:
    """Import TensorFlow, and warn if it does not see the GPU of this machine."""
    from tfformer.runtime.tensorflow import import_tensorflow

    import_tensorflow()
    if warning := unused_gpu():
        warnings.warn(warning, stacklevel=2)


def open_closed_streams() -> None:
    """Open standard streams that the caller has closed, as some daemons do, on os.devnull."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def input_lines(path: str | None) -> Iterator[str]:
    """The lines of a text file, or of standard input for None."""
    from tfformer.data.sources import lines, read_lines

    return read_lines(path) if path else lines(sys.stdin.buffer, "standard input")


@contextlib.contextmanager
def input_document(path: str | None, format: str) -> Iterator[tuple[Iterator[str], str]]:
    """Open a document; yield its text, decoded as it declares, and the encoding to write.

    Raises:
        ValueError: The document is not in that encoding.
    """
    from tfformer.data.sources import decoded, lines_of_bytes, open_unpacked
    from tfformer.text.encodings import declared_encoding, head_size

    name = path or "standard input"
    file = open_unpacked(Path(path)) if path else contextlib.nullcontext(sys.stdin.buffer)
    with file as stream:
        rest = lines_of_bytes(stream, name)
        head: list[bytes] = []
        while sum(map(len, head)) < head_size(format) and (line := next(rest, b"")):
            head.append(line)
        encoding = declared_encoding(b"".join(head), format)
        lines = itertools.chain(head, rest)
        if encoding.read == "utf-8":
            yield decoded(lines, name), encoding.read
            return
        content = b"".join(lines)
    try:
        text = content.decode(encoding.read)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} declares {encoding.label}, but byte {error.start + 1} is not valid in this "
            "encoding; correct the declaration"
        ) from None
    yield iter([text]), encoding.codec_for(text)


def typed_lines(wanted: str) -> Iterator[str]:
    """Ask for input, and yield the lines that a user types until an empty line or Ctrl-D."""
    from tfformer.data.sources import lines

    print(f"{wanted} To finish, press Ctrl-D or enter an empty line.", file=sys.stderr)
    typed = lines(sys.stdin.buffer, "standard input")
    while True:
        print(PROMPT, end="", file=sys.stderr, flush=True)
        line = next(typed, None)
        if line is None:
            print(file=sys.stderr)  # Ctrl-D leaves the cursor after the prompt
        if not line or line.isspace():
            return
        yield line


def check_new_file(path: str | None) -> None:
    """Raise FileExistsError if `path` exists, and ValueError if it is an address.

    None is standard output.
    """
    if path is None:
        return
    file = local_path(path)
    if file.is_dir():
        raise FileExistsError(f"{path} exists already and is a folder; choose another --output")
    if file.exists():
        raise FileExistsError(f"{path} exists already; choose another --output, or delete it")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist; create it first")


@contextlib.contextmanager
def output_file(path: str | None) -> Iterator[TextIO]:
    """Yield a file that appears only if the block succeeds, or standard output.

    A file whose name ends in `.gz` is compressed.
    """
    if path is None:
        yield sys.stdout
        return
    with whole_text(Path(path)) as file:
        yield file


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 file" and "2,000 files"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class _Bar:
    """A terminal line that the end of the `with` block closes."""

    def __init__(self, **options: Any) -> None:
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no monitor thread, because workers are forked
        self._bar: tqdm[NoReturn] = tqdm(file=sys.stderr, smoothing=0, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


class Progress(_Bar):
    """The number of lines done and their rate, in one line of the terminal.

    Nothing is shown if standard error is not a terminal, or if the output goes to the terminal,
    where the two would mix.
    """

    def __init__(self, output: TextIO | None = None) -> None:
        is_shown = sys.stderr.isatty() and not (output is not None and output.isatty())
        super().__init__(unit=" lines", disable=not is_shown, bar_format=LINES)

    def advance(self, count: int) -> None:
        """Count `count` more lines as done."""
        self._bar.update(count)


class CorpusProgress(_Bar):
    """One line with the share of a corpus that is done, rates and the time left.

    It is shown only if standard error is a terminal.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._size = sum(file.stat().st_size for file in files)
        is_hidden = not sys.stderr.isatty()
        super().__init__(total=self._size, disable=is_hidden, bar_format=SHARE)

    def show(self, counts: Counts) -> None:
        """Show the progress so far."""
        seconds = max(self._bar.format_dict["elapsed"], 1e-9)
        rates = f"{counts.lines / seconds:,.0f} lines/s, {counts.tokens / seconds:,.0f} tokens/s"
        self._bar.set_postfix_str(f"{counts.lines:,} lines, {rates}", refresh=False)
        self._bar.update(min(counts.size, self._size) - self._bar.n)
