"""Every command treats a run in an object store like a run in a folder."""

import json

import pytest

from tfformer.cli.main import main
from tfformer.data.sources import read_pairs
from tfformer.engines import find_artifact
from tfformer.inference.text_model import TextModel

PAIRS = list(read_pairs("phrasebook:valid"))[:20]
SOURCES = [source for source, _ in PAIRS]


@pytest.fixture(scope="module")
def remote(tiny_run, object_store) -> str:
    files = (path for path in tiny_run.iterdir() if path.is_file())
    content = {f"runs/tiny/{path.name}": path.read_bytes() for path in files}
    return object_store.bucket("verbs", content) + "/runs/tiny"


@pytest.fixture
def texts(tmp_path):
    for number, name in enumerate(("text.en", "text.de")):
        (tmp_path / name).write_text("".join(f"{pair[number]}\n" for pair in PAIRS))
    return tmp_path


@pytest.mark.slow
def test_translate(remote, translator, texts, capsys):
    assert main(["translate", remote, "--input", str(texts / "text.en")]) == 0
    assert capsys.readouterr().out.splitlines() == translator.translate(SOURCES)


@pytest.mark.slow
def test_evaluate(remote, translator, texts, capsys, monkeypatch):
    """The opened run is translated with graphs that are traced already."""
    monkeypatch.setattr(TextModel, "of", classmethod(lambda kind, run: translator))
    words = ["evaluate", remote, "--source", texts / "text.en", "--reference", texts / "text.de"]
    assert main([*map(str, words)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["sentences"] == len(PAIRS)


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_export(remote, texts, capsys):
    pytest.importorskip("ctranslate2")
    words = ["export", remote, "--format", "ctranslate2", "--output", texts / "models"]
    assert main([*map(str, words), "--samples", str(texts / "text.en")]) == 0
    assert "20 of 20 samples gave the same output as the run" in capsys.readouterr().out


@pytest.mark.slow
def test_inspect(remote, tiny_run, capsys):
    assert main(["inspect", remote]) == 0
    printed = capsys.readouterr().out
    assert main(["inspect", str(tiny_run)]) == 0
    assert (
        printed.replace(remote, str(tiny_run)).splitlines()[:3]
        == (capsys.readouterr().out.splitlines()[:3])
    )


@pytest.mark.slow
def test_a_corpus_has_the_model_of_the_store(remote, tiny_run, translator):
    model = find_artifact(remote)
    assert model.digest == find_artifact(tiny_run).digest
    assert model.path == remote
    expected = translator.translate(SOURCES, beam_size=model.beam_size)
    assert model.open().translate(SOURCES) == expected


@pytest.mark.slow
def test_no_run_is_one_line(object_store, capsys):
    address = object_store.bucket("empty") + "/run"
    for verb in (["translate", address], ["train", "phrasebook", "--run-dir", address, "--resume"]):
        assert main(verb) == 2
        assert f"{address} is not a run directory: it has no config.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["import", "checkpoint", "--run-dir", "s3://bucket/run"],
        ["corpus", "phrasebook", "--output", "s3://bucket/run"],
    ],
)
def test_train_alone_writes_there(words, capsys):
    assert main(words) == 2
    assert "s3://bucket/run is an address, not a path; write" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_is_not_overwritten(remote, capsys):
    assert main(["train", "phrasebook", "--run-dir", remote]) == 2
    assert f"{remote} already contains a run; add --resume" in capsys.readouterr().err
