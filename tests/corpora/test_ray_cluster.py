"""The parts that a Ray cluster gets, without one: Ray is this process."""

import gzip
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from tfformer.corpora import ray_cluster, workers
from tfformer.corpora.engines import Engine, Model
from tfformer.corpora.parts import find_parts
from tfformer.corpora.ray_cluster import PartTranslator
from tfformer.corpora.translation import Counts
from tfformer.corpora.workers import WorkersError

MODEL = Model("keras", "run", 1, "digest")


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode(self, sentences):
        return [list(map(ord, sentence)) for sentence in sentences]


class TaskError(Exception):
    """As Ray raises what an actor has raised."""

    @property
    def cause(self):
        return self.__cause__


class DiedError(Exception):
    """As Ray reports an actor that is lost."""


class Reference:
    """What a call of an actor returns."""

    def __init__(self, call, arguments):
        self._future = Future()
        try:
            self._future.set_result(call(*arguments))
        except DiedError as error:
            self._future.set_exception(error)
        except Exception as error:
            task_error = TaskError()
            task_error.__cause__ = error
            self._future.set_exception(task_error)

    def future(self):
        return self._future


class Actor:
    """An actor of this process, whose calls are over at once."""

    def __init__(self, worker):
        for name in ("prepare", "translate", "counts"):
            call = getattr(worker, name)
            remote = SimpleNamespace(
                remote=lambda *arguments, call=call: Reference(call, arguments)
            )
            setattr(self, name, remote)


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of this process, whose model writes backwards."""
    ray = SimpleNamespace(
        remote=lambda **resources: lambda worker: SimpleNamespace(remote=lambda: Actor(worker())),
        exceptions=SimpleNamespace(RayError=DiedError, RayTaskError=TaskError),
        shutdown=lambda: None,
    )
    monkeypatch.setattr(ray_cluster, "connected", lambda address, log_to_driver: ray)
    monkeypatch.setattr(ray_cluster, "Head", lambda ray: SimpleNamespace(check=lambda: None))
    engine = Engine(lambda texts: [text[::-1] for text in texts], Letters(), 9)
    monkeypatch.setattr(ray_cluster, "_engine", lambda model: engine)


def test_a_packed_file_behind_a_link_without_its_ending_is_unpacked(cluster, tmp_path):
    (tmp_path / "1f2e").write_bytes(gzip.compress(b"ab\ncd\n"))
    (tmp_path / "part.gz").symlink_to("1f2e")
    (tmp_path / "out").mkdir()
    parts = find_parts(f"{tmp_path}/part.gz", tmp_path / "out")
    counts = ray_cluster.translate_parts("local", MODEL, parts, 1)
    assert gzip.decompress(parts[0].output.read_bytes()) == b"ba\ndc\n"
    assert (counts.lines, counts.bad) == (2, 0)


def test_files_with_faults_are_named_and_the_others_are_done(cluster, tmp_path):
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"ab\n"))
    (tmp_path / "out").mkdir()
    parts = find_parts(f"{tmp_path}/*.gz", tmp_path / "out")
    with pytest.raises(ValueError, match=r"1 of 2 files were left out: /\S+a\.gz: not a whole"):
        ray_cluster.translate_parts("local", MODEL, parts, 1)
    assert [part.is_done for part in parts] == [False, True]


def test_a_machine_with_another_version_is_refused(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(ray_cluster, "__version__", "0.0")
    (tmp_path / "a").write_text("ab\n")
    parts = find_parts(f"{tmp_path}/a", tmp_path / "out")
    with pytest.raises(WorkersError, match=r"a worker has tfformer .*the same version on all"):
        ray_cluster.translate_parts("local", MODEL, parts, 1)


def test_a_worker_that_never_begins_ends_the_work(cluster, monkeypatch, tmp_path):
    def prepare(self, version):
        raise DiedError("no room for the process")

    monkeypatch.setattr(PartTranslator, "prepare", prepare)
    monkeypatch.setattr(workers, "SECONDS_A_REPORT", 0)
    (tmp_path / "a").write_text("ab\n")
    parts = find_parts(f"{tmp_path}/a", tmp_path / "out")
    with pytest.raises(WorkersError, match="a worker cannot begin: no room for the process"):
        ray_cluster.translate_parts("local", MODEL, parts, 1)


def test_an_actor_that_is_lost_is_replaced(cluster, monkeypatch, tmp_path):
    translate, lost = PartTranslator.translate, []

    def losing(self, model, part):
        if not lost:
            lost.append(part)
            raise DiedError("the machine is gone")
        return translate(self, model, part)

    monkeypatch.setattr(PartTranslator, "translate", losing)
    (tmp_path / "a").write_text("ab\n")
    (tmp_path / "out").mkdir()
    parts = find_parts(f"{tmp_path}/a", tmp_path / "out")
    assert ray_cluster.translate_parts("local", MODEL, parts, 1).lines == 1
    assert parts[0].output.read_text() == "ba\n"
    assert len(lost) == 1


def test_nothing_is_left_to_be_done(cluster):
    assert ray_cluster.translate_parts("local", MODEL, [], 1) == Counts()
