"""The prompt, the progress and the output files of the command line."""

import contextlib
import gzip
import io
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from tfformer.cli.terminal import Progress, check_new_file, output_file, typed_lines
from tfformer.runtime.devices import device_line

HINT = "Enter a number. To finish, press Ctrl-D or enter an empty line.\n"


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def typed(text: str, monkeypatch) -> list[str]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return list(typed_lines("Enter a number."))


def test_typing_ends_with_an_empty_line(monkeypatch, capsys):
    assert typed("one\ntwo\n  \nthree\n", monkeypatch) == ["one", "two"]
    assert capsys.readouterr() == ("", f"{HINT}> > > ")


def test_typing_ends_with_the_end_of_the_input(monkeypatch, capsys):
    assert typed("one\ntwo", monkeypatch) == ["one", "two"]
    assert capsys.readouterr() == ("", f"{HINT}> > > \n")


def test_progress_counts_lines(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(output=io.StringIO()) as progress:
        for count in (600, 600, 50):
            progress.advance(count)
    last = sys.stderr.getvalue().split("\r")[-1]
    assert re.fullmatch(r"1,250 lines, +[\d.]+ lines/s\s*\n", last)


@pytest.mark.parametrize(
    ("error_stream", "output"),
    [(io.StringIO(), io.StringIO()), (Terminal(), Terminal())],
    ids=["no terminal", "the output goes to the terminal"],
)
def test_progress_is_silent(error_stream, output, monkeypatch):
    monkeypatch.setattr(sys, "stderr", error_stream)
    with Progress(output) as progress:
        progress.advance(1000)
    assert error_stream.getvalue() == ""


def test_an_output_file_appears_when_everything_is_written(tmp_path):
    path = tmp_path / "out"
    with output_file(str(path)) as output:
        output.write("text")
        assert not path.exists()
    assert path.read_text() == "text"
    with pytest.raises(FileExistsError, match="choose another --output, or delete it"):
        check_new_file(str(path))


def test_an_output_file_named_gz_is_compressed(tmp_path):
    path = tmp_path / "out.de.gz"
    with output_file(str(path)) as output:
        output.write("Grüße\n")
    assert gzip.decompress(path.read_bytes()).decode() == "Grüße\n"


def read_until(terminal: int, end: bytes, seconds: float = 120) -> bytes:
    """Return all output of a terminal up to `end`."""
    shown = b""
    stop = time.monotonic() + seconds
    while not shown.endswith(end):
        assert time.monotonic() < stop, shown
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 1024)
    return shown


@contextlib.contextmanager
def on_a_terminal(*words: str):
    """Run a Python program on a pseudo-terminal; yield the program and the terminal's keyboard."""
    keyboard, screen = pty.openpty()
    process = subprocess.Popen([sys.executable, *words], stdin=screen, stdout=screen, stderr=screen)
    os.close(screen)
    try:
        yield process, keyboard
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)


@pytest.mark.slow
def test_translate_answers_line_by_line_on_a_terminal(dynamic_litert, translator):
    sentences = ["The animal is tired.", "The man sleeps."]
    translations = translator.translate(sentences)
    with on_a_terminal("-m", "tfformer", "translate", str(dynamic_litert)) as (process, keyboard):
        start = read_until(keyboard, b"> ")
        loading, *lines = start.splitlines()
        assert re.fullmatch(rb"loading .* \.\.\. [\d.]+ s", loading)
        assert lines == [
            f"translating on {device_line()}".encode(),
            b"Enter one line of text at a time. To finish, press Ctrl-D or enter an empty line.",
            b"> ",
        ]
        for sentence, expected in zip(sentences, translations, strict=True):
            os.write(keyboard, sentence.encode() + b"\n")
            answer = read_until(keyboard, b"> ").decode().splitlines()
            assert answer == [sentence, expected, "> "]
        os.write(keyboard, b"\x04")
        assert process.wait(30) == 0
