"""Whole corpora: the engines, several processes, a Ray cluster, deaths on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from tfformer import export
from tfformer.cli import terminal
from tfformer.cli.verbs import main
from tfformer.corpora import engines, processes
from tfformer.corpora.parts import Part, find_parts
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
    engine = engines.load_engine(engines.find_model(tmp_path, 1))
    assert engine.translate(SENTENCES) == expected
    assert engine.max_tokens == Translator.load(tiny_run).max_length - 1


@pytest.mark.slow
def test_a_static_export_takes_sentences_one_by_one(tiny_run, expected, tmp_path):
    pytest.importorskip("ai_edge_litert")
    export.tflite(tiny_run, tmp_path, static=True, samples=SENTENCES[:4])
    with pytest.raises(ValueError, match="has greedy search alone; leave out --beam-size 7"):
        engines.find_model(tmp_path, 7)
    assert (
        engines.load_engine(engines.find_model(tmp_path)).translate(SENTENCES[:9]) == expected[:9]
    )


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
    counts = processes.translate_parts(engines.find_model(tiny_run, 1), parts, 1, report=deadly)
    assert deadly.killed
    assert lines_of(tmp_path) == expected
    assert counts.lines == len(SENTENCES)


MODEL = engines.Model("keras", "run", 1, "digest")


@pytest.fixture
def scripted(monkeypatch):
    """Threads in place of processes; they die at files whose names begin with "bad"."""
    begun = []

    def translate(model, part):
        begun.append(part.source.name)
        if part.source.name.startswith("bad"):
            raise BrokenProcessPool
        if part.source.name.startswith("strange"):
            raise KeyError("beam_size")
        if part.source.name == "model":
            raise engines.ModelError("the model was changed")
        return Counts(lines=1)

    monkeypatch.setattr(
        processes, "_new_process", lambda: ([0] * len(Counts()), ThreadPoolExecutor(1))
    )
    monkeypatch.setattr(processes, "_translate", translate)
    return begun


def scripted_parts(*names):
    return [Part(Path(name), Path("out", name)) for name in names]


def test_a_file_at_which_three_processes_die_is_named_and_the_others_are_done(scripted):
    parts = scripted_parts("a", "bad", "b", "c")
    with pytest.raises(ValueError, match="1 of 4 files were left out: bad: 3 processes died"):
        processes.translate_parts(MODEL, parts, 1)
    assert scripted == ["a", "bad", "bad", "bad", "b", "c"]


def test_deaths_at_three_files_in_a_row_end_the_work(scripted):
    parts = scripted_parts("bad1", "a", "bad2", "bad3", "bad4", "b")
    with pytest.raises(processes.WorkersError, match="died 3 times at each of 3 files"):
        processes.translate_parts(MODEL, parts, 1)
    assert "b" not in scripted


def test_a_fault_of_the_model_ends_the_work_at_once(scripted):
    with pytest.raises(engines.ModelError, match="the model was changed"):
        processes.translate_parts(MODEL, scripted_parts("model", "a"), 1)
    assert scripted == ["model"]


def test_an_error_of_a_library_names_the_file(scripted):
    with pytest.raises(processes.WorkersError, match=r"strange: KeyError\('beam_size'\)"):
        processes.translate_parts(MODEL, scripted_parts("strange"), 1)


def test_without_progress_the_work_ends(scripted, monkeypatch):
    monkeypatch.setattr(processes, "MAX_SILENCE", -1)
    monkeypatch.setattr(processes, "SECONDS_A_REPORT", 0)
    monkeypatch.setattr(processes, "_translate", lambda model, part: time.sleep(0.3) or Counts())
    with pytest.raises(processes.WorkersError, match="no sentence was translated for"):
        processes.translate_parts(MODEL, scripted_parts("a"), 1)


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
