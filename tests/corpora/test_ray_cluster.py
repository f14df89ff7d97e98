"""The parts that a Ray cluster gets, without one: Ray is a table of rows here."""

import gzip
from types import SimpleNamespace

import pytest

from tfformer.corpora import ray_cluster
from tfformer.corpora.engines import Engine, Model
from tfformer.corpora.parts import find_parts
from tfformer.corpora.translation import Counts

MODEL = Model("keras", "run", 1, "digest")


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode(self, sentences):
        return [list(map(ord, sentence)) for sentence in sentences]


class Table:
    """A Ray data set that is worked off here."""

    def __init__(self, rows, override_num_blocks):
        assert override_num_blocks > 0
        self.rows = rows

    def map(self, worker, fn_constructor_args, **options):
        translate = worker(*fn_constructor_args)
        self.rows = [translate(row) for row in self.rows]
        return self

    def take_all(self):
        return self.rows


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of this process, whose model writes backwards."""
    ray = SimpleNamespace(
        data=SimpleNamespace(from_items=Table),
        exceptions=SimpleNamespace(RayError=ConnectionError),
        shutdown=lambda: None,
    )
    monkeypatch.setattr(ray_cluster, "connected", lambda address, log_to_driver: ray)
    engine = Engine(lambda texts: [text[::-1] for text in texts], Letters(), 9)
    monkeypatch.setattr(ray_cluster, "load_engine", lambda model: engine)


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


def test_a_machine_with_another_version_is_refused(cluster):
    with pytest.raises(ValueError, match=r"a worker has tfformer .*the same version on all"):
        ray_cluster.PartTranslator(MODEL, "0.0")


def test_nothing_is_left_to_be_done(cluster):
    assert ray_cluster.translate_parts("local", MODEL, [], 1) == Counts()
