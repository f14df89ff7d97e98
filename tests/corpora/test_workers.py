"""Whole corpora: the engines, several processes, a Ray cluster, deaths on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfformer import export
from tfformer.cli import terminal
from tfformer.cli.verbs import main
from tfformer.corpora import engines, processes
from tfformer.corpora.parts import find_parts
from tfformer.corpora.translation import Counts
from tfformer.data.sources import read_pairs
from tfformer.inference.translator import Translator

SENTENCES = [source for source, _ in read_pairs("phrasebook:valid")][:60]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The sentences in three files, and the pattern of these."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        lines = SENTENCES[20 * number : 20 * number + 20]
        (folder / f"part-{number}.en").write_text("".join(f"{line}\n" for line in lines))
    return f"{folder}/part-*.en"


@pytest.fixture(scope="module")
def expected(tiny_run):
    return Translator.load(tiny_run).translate(SENTENCES, beam_size=1)


def lines_of(folder: Path) -> list[str]:
    files = sorted(folder.glob("part-*.en"))
    return [line for file in files for line in file.read_text().splitlines()]


def command(run, corpus, output, *options) -> list[str]:
    words = ["translate", run, "--input", corpus, "--output", output, "--beam-size", 1, *options]
    return list(map(str, words))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["saved_model", "tflite", "ctranslate2"])
def test_an_export_translates_as_its_run(tiny_run, expected, tmp_path, format):
    pytest.importorskip({"tflite": "ai_edge_litert"}.get(format, "tensorflow"))
    getattr(export, format)(tiny_run, tmp_path, samples=SENTENCES[:4])
    engine = engines.load_engine(tmp_path, beam_size=1)
    assert engine.translate(SENTENCES) == expected
    assert engine.max_tokens == Translator.load(tiny_run).max_length - 1


@pytest.mark.slow
def test_a_static_export_takes_sentences_one_by_one(tiny_run, expected, tmp_path):
    pytest.importorskip("ai_edge_litert")
    export.tflite(tiny_run, tmp_path, static=True, samples=SENTENCES[:4])
    with pytest.raises(ValueError, match="has a search with --beam-size 1, and with 1"):
        engines.load_engine(tmp_path, beam_size=7)
    assert engines.load_engine(tmp_path).translate(SENTENCES[:9]) == expected[:9]


@pytest.mark.slow
def test_two_processes_translate_as_one_and_go_on_after_kills(
    tiny_run, corpus, expected, tmp_path, capsys
):
    output = tmp_path / "out"
    whole = command(tiny_run, corpus, output, "--workers", 2)
    process = subprocess.Popen([sys.executable, "-m", "tfformer", *whole])
    end = time.monotonic() + 300
    while not list(output.glob("part-*.en")) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    assert main(whole) == 0
    assert lines_of(output) == expected
    captured = capsys.readouterr()
    assert "3 files, of which" in captured.err
    assert json.loads(captured.out)["bad"] == 0
    assert main(whole) == 0  # nothing is left to be done
    assert "3 files, of which 3 are done" in capsys.readouterr().err


class Deadly:
    """Takes reports; kills a process at the first."""

    def __init__(self):
        self.killed = []

    def __call__(self, counts):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        workers = [child for child in children if "spawn_main" in cmdline(child)]
        if workers and not self.killed:
            self.killed.append(int(workers[0]))
            os.kill(self.killed[0], signal.SIGKILL)


def cmdline(process: str) -> str:
    return Path(f"/proc/{process}/cmdline").read_text(errors="replace")


@pytest.mark.slow
def test_a_process_that_dies_is_replaced(tiny_run, corpus, expected, tmp_path):
    deadly = Deadly()
    parts = find_parts(corpus, tmp_path)
    counts = processes.translate_parts(tiny_run, parts, 1, beam_size=1, report=deadly)
    assert deadly.killed
    assert lines_of(tmp_path) == expected
    assert counts.lines == len(SENTENCES)


def test_processes_that_die_three_times_in_a_row_end_the_work(monkeypatch, corpus, tmp_path):
    begun = []

    @contextmanager
    def pool(*arguments):
        begun.append(arguments)
        yield ThreadPoolExecutor(1)

    monkeypatch.setattr(processes, "_pool", pool)
    monkeypatch.setattr(processes, "_translate", lambda *arguments: None)
    monkeypatch.setattr(processes, "_watch", lambda work, sums, report: ({}, False))
    with pytest.raises(processes.WorkersError, match="3 times a process died before it had ended"):
        processes.translate_parts("run", find_parts(corpus, tmp_path), 1)
    assert len(begun) == 3


def test_the_progress_of_a_corpus_is_a_share_with_rates_and_the_time_left(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / "a").write_bytes(b"x" * 400)
    clock = iter([0.0, 30.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    terminal.CorpusProgress([tmp_path / "a"]).show(Counts(lines=60, tokens=900, size=100))
    shown = capsys.readouterr().err.strip()
    assert shown == " 25% of the corpus, 60 lines, 2 lines/s, 30 tokens/s, 0:01:30 left".strip()


@pytest.mark.slow
def test_a_cluster_translates_as_the_processes_do(tiny_run, corpus, expected, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tfformer[ray]'")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tfformer"),
            *command(tiny_run, corpus, tmp_path / "out", "--ray", "local", "--workers", 2),
        ],
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert lines_of(tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", 4], "--workers 4 is more than the 3 files"),
        (["--workers", 2, "--scores"], "--scores is not for --workers and --ray"),
        (["--workers", 2, "--format", "html"], "--format is not for --workers and --ray"),
        (["--ray", "nowhere"], "--ray nowhere must be HOST:PORT, or local"),
        (["--ray", "127.0.0.1:1"], "there is no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_a_mistake_is_one_line(tiny_run, corpus, tmp_path, capsys, options, message):
    if options[0] == "--ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'tfformer[ray]'")
    assert main(command(tiny_run, corpus, tmp_path / "out", *options)) == 2
    assert message in capsys.readouterr().err


def test_without_files_there_is_no_corpus(tiny_run, tmp_path, capsys):
    assert main(command(tiny_run, tmp_path / "*.en", tmp_path / "out", "--workers", 1)) == 2
    assert f"{tmp_path}/*.en: no file has such a name" in capsys.readouterr().err
    assert main(["translate", str(tiny_run), "--workers", "1"]) == 2
    assert "give --input PATTERN --output DIR" in capsys.readouterr().err
    assert main(command(tmp_path, "x", tmp_path / "out", "--workers", 1)) == 2
    assert "is neither a run directory nor an export" in capsys.readouterr().err
