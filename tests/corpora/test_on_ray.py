"""The job and the worker of a Ray cluster, tested without a cluster.

tests/corpora/test_workers.py translates on a cluster.
"""

import gzip
from types import SimpleNamespace

import pytest
from support.scripted_engine import ScriptedEngine

from tfformer import __version__
from tfformer.corpora.parts import Counts, find_parts
from tfformer.corpora.workers import WorkersError
from tfformer.engines import Artifact, ArtifactError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tfformer.corpora import on_ray as translating  # noqa: E402
from tfformer.corpora.on_ray import News, PartTranslator, TranslationJob  # noqa: E402

MODEL = Artifact("keras", "run", 1, "digest")
ONE, TWO = Counts(lines=1), Counts(lines=2)


def at_once(method):
    """A method of an actor that runs in this process and returns immediately."""
    return SimpleNamespace(remote=method)


class Numbers(list):
    """The column of a batch."""

    def tolist(self):
        return list(self)


@pytest.fixture
def outcome_of(monkeypatch, tmp_path):
    """Return a function that makes a worker translate a file backwards, and returns the outcome."""
    engine = ScriptedEngine(lambda texts: [text[::-1] for text in texts], 9)
    monkeypatch.setattr(Artifact, "open", lambda model, threads: engine)
    monkeypatch.setattr(ray, "get", lambda answer: answer)
    (tmp_path / "out").mkdir()

    def translated(pattern, version=__version__):
        job = TranslationJob()
        handle = SimpleNamespace(begin=at_once(job.begin), end=at_once(job.end))
        parts = find_parts(f"{tmp_path}/{pattern}", tmp_path / "out")
        batch = {"number": Numbers([0])}
        assert PartTranslator(handle, MODEL, parts, version=version)(batch) == batch
        [(number, outcome)] = job.news().outcomes
        assert number == 0
        return outcome

    return translated


def test_a_packed_file_behind_a_link_without_its_ending_is_unpacked(outcome_of, tmp_path):
    (tmp_path / "1f2e").write_bytes(gzip.compress(b"ab\ncd\n"))
    (tmp_path / "part.gz").symlink_to("1f2e")
    counts = outcome_of("part.gz")
    assert gzip.decompress((tmp_path / "out" / "part.gz").read_bytes()) == b"ba\ndc\n"
    assert (counts.lines, counts.bad) == (2, 0)


def test_the_fault_of_a_file_is_its_outcome(outcome_of, tmp_path):
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    assert "a.gz is not a complete" in str(outcome_of("a.gz"))


def test_an_error_of_a_library_names_the_file(outcome_of, monkeypatch, tmp_path):
    def failing(*arguments):
        raise KeyError("beam_size")

    monkeypatch.setattr("tfformer.corpora.on_ray.translate_part", failing)
    (tmp_path / "a").write_text("ab\n")
    outcome = outcome_of("a")
    assert type(outcome) is WorkersError
    assert str(outcome) == f"{tmp_path}/a: KeyError('beam_size')"


def test_a_machine_with_another_version_ends_the_work(outcome_of, tmp_path):
    (tmp_path / "a").write_text("ab\n")
    outcome = outcome_of("a", version="0.0")
    assert type(outcome) is WorkersError
    assert "started with 0.0; install the same version on all machines" in str(outcome)


def test_a_part_at_which_three_workers_have_died_is_given_up():
    job = TranslationJob()
    assert [job.begin(0) for _ in range(3)] == [True] * 3
    job.advance(0, ONE)
    assert job.news() == News([], [ONE])
    assert not job.begin(0)
    assert job.news() == News([(0, None)], [])


def test_a_part_begins_again_with_nothing():
    job = TranslationJob()
    job.begin(0)
    job.advance(0, TWO)
    job.begin(0)
    assert job.news() == News([], [Counts()])


def test_a_part_is_over_once():
    job = TranslationJob()
    job.begin(0)
    job.end(0, ONE)
    job.advance(0, TWO)  # it comes late
    assert not job.begin(0)
    job.end(0, TWO)
    assert job.news() == News([(0, ONE)], [])
    assert job.news() == News([], [])


@pytest.fixture
def translate(monkeypatch, tmp_path):
    """Return a function that follows a job with the given sequence of reports."""

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    stub = SimpleNamespace(exceptions=ray.exceptions, get=get, shutdown=lambda: None)
    monkeypatch.setattr(translating, "ray", stub)
    monkeypatch.setattr(translating, "connect", lambda address, log_to_driver: None)
    monkeypatch.setattr(translating, "Head", lambda: SimpleNamespace(answer=get))
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / "in" / name).write_text("ab\n")
    parts = find_parts(f"{tmp_path}/in/*", tmp_path / "out")

    def followed(*news, end=None, report=lambda counts: None):
        answers = iter(news)
        ends = iter(["running"] * (len(news) - 1))
        job = SimpleNamespace(
            run=at_once(lambda *arguments: "running" if len(news) > 1 else end),
            news=at_once(lambda: next(answers)),
        )
        stub.wait = lambda references, timeout: (
            ([], references) if next(ends, None) else (references, [])
        )
        monkeypatch.setattr(translating, "on_head", lambda actor, max_concurrency: job)
        return translating.translate_parts("local", MODEL, parts, 2, report)

    return followed


def test_the_figures_of_finished_parts_and_of_those_under_way_are_shown(translate):
    shown = []
    first = News([(0, TWO)], [ONE])
    last = News([(1, TWO), (2, TWO), (3, TWO)], [])
    assert translate(first, last, report=shown.append) == Counts(lines=8)
    assert shown == [Counts(lines=3), Counts(lines=8)]


def test_files_with_faults_are_named_and_the_others_are_done(translate):
    outcomes = [(0, ONE), (1, ValueError("half a file")), (2, None), (3, ONE)]
    message = r"2 of 4 files were not translated: /\S+/b: half a file; /\S+/c: 3 workers died while"
    with pytest.raises(ValueError, match=message):
        translate(News(outcomes, []))


def test_three_files_in_a_row_at_which_workers_die_end_the_work(translate):
    lost = News([(1, None), (2, None), (3, None)], [])
    with pytest.raises(WorkersError, match=r"3 workers died on each of /\S+/b, /\S+/c, /\S+/d"):
        translate(News([(0, ONE)], []), lost, News([], []))


def test_another_model_ends_the_work(translate):
    with pytest.raises(ArtifactError, match="the run has changed"):
        translate(News([(0, ArtifactError("the run has changed"))], []), News([], []))


def test_news_are_heard_before_the_end_of_the_job(translate):
    """The worker's report explains why the job ended."""
    end = ray.exceptions.RayTaskError("run", "", OSError("cancelled"))
    with pytest.raises(ArtifactError, match="the run has changed"):
        translate(News([(0, ArtifactError("the run has changed"))], []), end=end)


def test_a_worker_that_never_begins_ends_the_work(translate):
    error = ray.exceptions.RayTaskError("run", "", OSError("no room for the process"))
    with pytest.raises(WorkersError, match="a worker cannot start: no room for the process"):
        translate(News([], []), end=error)


def test_a_job_that_is_lost_ends_the_work(translate):
    with pytest.raises(WorkersError, match="the job on the cluster's head is lost: "):
        translate(News([], []), end=ray.exceptions.ActorDiedError())


def test_nothing_is_left_to_be_done():
    assert translating.translate_parts("local", MODEL, [], 1) == Counts()
