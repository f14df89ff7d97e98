"""Translate whole corpora with each engine. Processes and nodes of a Ray cluster die on the way."""

import contextlib
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
from support.process_tree import children, command_line, descendants

from tfformer.cli import terminal
from tfformer.cli.main import main
from tfformer.corpora import workers
from tfformer.corpora.parts import Counts, Part, find_parts
from tfformer.corpora.workers import Worker
from tfformer.data.sources import read_pairs
from tfformer.engines import ArtifactError, find_artifact

SENTENCES = [source for source, _ in read_pairs("phrasebook:valid")][:60]
PARTS_OF_A_CLUSTER = 30


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Write the sentences to three files, and return their pattern."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        lines = SENTENCES[20 * number : 20 * number + 20]
        (folder / f"part-{number}.en").write_text("".join(f"{line}\n" for line in lines))
    return f"{folder}/part-*.en"


@pytest.fixture(scope="module")
def expected(translator):
    return translator.translate(SENTENCES, beam_size=1)


def lines_of(folder: Path) -> list[str]:
    files = sorted(folder.glob("part-*.en"))
    return [line for file in files for line in file.read_text().splitlines()]


def command(run, corpus, output, *options) -> list[str]:
    words = ["translate", run, "--input", corpus, "--output", output, "--beam-size", 1, *options]
    return list(map(str, words))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["saved_model", "ctranslate2"])
def test_an_export_translates_as_its_run(translator, expected, request, format):
    """tests/engines tests the same for LiteRT."""
    version = request.getfixturevalue(f"{format}_export")
    engine = find_artifact(version, 1).open(threads=1)
    assert engine.translate(SENTENCES) == expected
    assert engine.max_tokens == translator.max_length - 1


@pytest.mark.nightly
def test_a_static_export_takes_sentences_one_by_one(static_litert, expected):
    with pytest.raises(ValueError, match="supports only greedy search; omit --beam-size 7"):
        find_artifact(static_litert, 7)
    engine = find_artifact(static_litert, 1).open(threads=1)
    assert engine.translate(SENTENCES[:9]) == expected[:9]


@pytest.mark.slow
def test_two_processes_translate_as_one_and_go_on_after_kills(
    ctranslate2_export, corpus, expected, tmp_path, capsys
):
    output = tmp_path / "out"
    arguments = command(ctranslate2_export, corpus, output, "--workers", 2)
    process = subprocess.Popen([sys.executable, "-m", "tfformer", *arguments])
    end = time.monotonic() + 300
    while not list(output.glob("part-*.en")) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    assert main(arguments) == 0
    assert lines_of(output) == expected
    captured = capsys.readouterr()
    assert "3 files, of which" in captured.err
    assert json.loads(captured.out)["bad"] == 0
    assert main(arguments) == 0  # nothing is left to be done
    assert "3 files, of which 3 are done" in capsys.readouterr().err


class Deadly:
    """A report that kills a process when it is first called."""

    def __init__(self):
        self.killed = []

    def __call__(self, counts):
        workers = [child for child in children(os.getpid()) if "spawn_main" in command_line(child)]
        if workers and not self.killed:
            self.killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_dies_is_replaced(ctranslate2_export, corpus, expected, tmp_path):
    deadly = Deadly()
    parts = find_parts(corpus, tmp_path)
    model = find_artifact(ctranslate2_export, 1)
    counts = workers.translate_parts(model, parts, 1, report=deadly)
    assert deadly.killed
    assert lines_of(tmp_path) == expected
    assert counts.lines == len(SENTENCES)


class Scripted(Worker):
    """A worker of threads that dies at files whose names begin with "bad"."""

    def __init__(self):
        self.begun, self.restarts = [], -1
        self.threads = ThreadPoolExecutor(1)
        super().__init__(model=None)

    def _start(self):
        self.restarts += 1

    def counts(self):
        return Counts()

    def begin(self, part):
        self.part = part
        self.begun.append(part.source.name)
        self.future = self.threads.submit(self.translate, part.source.name)

    def translate(self, name):
        if name.startswith("bad"):
            raise BrokenProcessPool("dead")
        if name == "strange":
            raise KeyError("beam_size")
        if name == "unreadable":
            raise ValueError("not a whole gzip file")
        if name == "model":
            raise ArtifactError("the model was changed")
        if name == "slow":
            time.sleep(0.3)
        return Counts(lines=1)


def scripted_parts(*names):
    return [Part(Path(name), Path("out", name)) for name in names]


def scripted(*names, report=lambda counts: None) -> list[str]:
    """Translate with one scripted worker; return the parts that it began."""
    worker = Scripted()
    try:
        workers.share_parts([worker], scripted_parts(*names), report)
    finally:
        begun[:] = worker.begun
    return begun


begun: list[str] = []


def test_a_file_at_which_three_workers_die_is_named_and_the_others_are_done():
    with pytest.raises(ValueError, match="1 of 4 files were not translated: bad: 3 workers died"):
        scripted("a", "bad", "b", "c")
    assert begun == ["a", "bad", "bad", "bad", "b", "c"]


def test_deaths_at_three_files_in_a_row_end_the_work_and_are_named():
    message = "3 workers died on each of bad2, bad3, bad4; check that"
    with pytest.raises(workers.WorkersError, match=message):
        scripted("bad1", "a", "bad2", "bad3", "bad4", "b")
    assert "b" not in begun


def test_two_workers_share_the_files_and_the_deaths_at_one_of_them():
    names = ["slow", "bad", "slow2", "a", "b"]
    pair = [Scripted(), Scripted()]
    with pytest.raises(ValueError, match="1 of 5 files were not translated: bad: 3 workers died"):
        workers.share_parts(pair, scripted_parts(*names), lambda counts: None)
    together = [name for worker in pair for name in worker.begun]
    assert sorted(together) == sorted([*names, "bad", "bad"])
    assert sum(worker.restarts for worker in pair) == 3
    assert all(worker.begun for worker in pair)


def test_a_faulty_file_is_named_and_the_others_are_done():
    with pytest.raises(ValueError, match="1 of 3 files were not translated: unreadable: not a"):
        scripted("a", "unreadable", "b")
    assert begun == ["a", "unreadable", "b"]


def test_a_fault_of_the_model_ends_the_work_at_once():
    with pytest.raises(ArtifactError, match="the model was changed"):
        scripted("model", "a")
    assert begun == ["model"]


def test_an_error_of_a_library_names_the_file():
    with pytest.raises(workers.WorkersError, match=r"strange: KeyError\('beam_size'\)"):
        scripted("strange")


def test_without_progress_the_work_ends(monkeypatch):
    monkeypatch.setattr(workers, "MAX_SILENCE", 0.1)
    monkeypatch.setattr(workers, "SECONDS_A_REPORT", 0.05)
    with pytest.raises(workers.WorkersError, match=r"no sentence was translated for 0.1 seconds"):
        scripted("slow")


def test_the_progress_of_a_corpus_is_a_share_with_rates_and_the_time_left(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / "a").write_bytes(b"x" * 400)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = terminal.CorpusProgress([tmp_path / "a"])
    progress._bar.start_t -= 30
    progress._bar.last_print_t -= 30
    progress.show(Counts(lines=60, tokens=900, size=100))
    shown = capsys.readouterr().err.split("\r")[-1].strip()
    assert shown == "25% of the corpus, 60 lines, 2 lines/s, 30 tokens/s, 01:30 left"


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster on this machine with nodes of one processor each; it starts with two nodes."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.mark.nightly
def test_a_cluster_that_loses_a_machine_and_gets_another_translates_as_one_process(
    cluster, tiny_run, expected, tmp_path
):
    """Part n begins with sentence n.

    When the machine is lost, each worker still has parts to translate.
    """
    output, numbers = tmp_path / "out", range(PARTS_OF_A_CLUSTER)
    for first in numbers:
        lines = [*SENTENCES[first:], *SENTENCES[:first]]
        (tmp_path / f"part-{first:02}.en").write_text("".join(f"{line}\n" for line in lines))
    words = command(tiny_run, tmp_path / "part-*.en", output)
    words = [*words, "--ray", cluster.address, "--workers", "3"]
    lost = cluster.add_node(num_cpus=1)
    process = subprocess.Popen([sys.executable, "-m", "tfformer", *words])
    end = time.monotonic() + 300
    while len(list(output.glob("part-*.en"))) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert not (output / f"part-{numbers[-1]:02}.en").exists()
    cluster.remove_node(lost, allow_graceful=False)
    cluster.add_node(num_cpus=1)
    assert process.wait(300) == 0
    assert lines_of(output) == [line for n in numbers for line in [*expected[n:], *expected[:n]]]


@pytest.mark.nightly
def test_a_file_at_which_workers_of_a_cluster_die_is_left_out(cluster, tiny_run, tmp_path):
    (tmp_path / "part.en").write_text(f"{SENTENCES[0]}\n" * 1_000_000)
    words = command(tiny_run, tmp_path / "part.en", tmp_path / "out", "--ray", cluster.address)
    with open(tmp_path / "messages", "w") as messages:
        process = subprocess.Popen([sys.executable, "-m", "tfformer", *words], stderr=messages)
    killed, end = set(), time.monotonic() + 300
    while process.poll() is None and time.monotonic() < end:
        for number, line in descendants(os.getpid()).items():
            if "PartTranslator)).submit" in line and number not in killed:
                time.sleep(2)  # its part is begun by then, but on a busy machine
                with contextlib.suppress(ProcessLookupError):  # it may end with the command
                    os.kill(number, signal.SIGKILL)
                    killed.add(number)
        time.sleep(0.1)
    assert process.wait(0) == 2
    assert len(killed) >= 3  # one that had not begun does not count
    last = (tmp_path / "messages").read_text().splitlines()[-1]
    assert last == (
        f"tfformer: 1 of 1 files were not translated: {tmp_path}/part.en: 3 workers died while "
        "they translated it"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", 4], "--workers 4 is more than the 3 files"),
        (["--workers", 2, "--scores"], "--scores cannot be used with --workers or --ray"),
        (["--workers", 2, "--format", "html"], "--format cannot be used with --workers or --ray"),
        (["--ray", "nowhere"], "--ray nowhere must be HOST:PORT, ray://HOST:PORT or local"),
        (["--ray", "127.0.0.1:1"], "there is no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_a_mistake_is_one_line(tiny_run, corpus, tmp_path, capsys, options, message):
    if options[0] == "--ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    assert main(command(tiny_run, corpus, tmp_path / "out", *options)) == 2
    assert message in capsys.readouterr().err


def test_without_files_there_is_no_corpus(tiny_run, tmp_path, capsys):
    assert main(command(tiny_run, tmp_path / "*.en", tmp_path / "out", "--workers", 1)) == 2
    assert f"{tmp_path}/*.en: no file matches" in capsys.readouterr().err
    assert main(["translate", str(tiny_run), "--workers", "1"]) == 2
    assert "pass --input PATTERN --output DIR" in capsys.readouterr().err
    assert main(command(tmp_path, "x", tmp_path / "out", "--workers", 1)) == 2
    assert "is neither a run directory nor an export" in capsys.readouterr().err
