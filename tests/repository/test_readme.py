"""The README's commands and code run as they are printed, on small text made here."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import yaml

import tfformer
from tfformer import phrasebook
from tfformer.cli import arguments
from tfformer.cli import verbs as cli
from tfformer.config import Config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def block_with(language: str, text: str) -> str:
    found = [block for block in blocks(language) if text in block]
    assert len(found) == 1, f"{len(found)} {language} blocks hold {text!r}"
    return found[0]


def commands(text: str) -> list[list[str]]:
    """The `tfformer` commands of the shell block that holds `text`, without the program's name."""
    lines = (shlex.split(line, comments=True) for line in block_with("sh", text).splitlines())
    return [words[1:] for words in lines if words[:1] == ["tfformer"]]


@pytest.mark.slow
def test_the_recipe_of_a_language_model_trains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = block_with("yaml", "architecture: decoder")
    for printed, smaller in (
        ("num_layers: 6", "num_layers: 1"),
        ("8000", "300"),
        ("epochs: 20", "epochs: 1"),
    ):
        assert printed in recipe
        recipe = recipe.replace(printed, smaller)
    Path("lm.yaml").write_text(recipe)
    for name, count in (("text.en", 200), ("valid.en", 8)):
        Path(name).write_text(
            "".join(pair.source + "\n" for pair in phrasebook.pairs("train")[:count])
        )
    assert cli.main(["train", "lm.yaml", "--run-dir", "lm"]) == 0
    assert json.loads(Path("lm", "result.json").read_text())["val_bits_per_byte"] > 0


@pytest.mark.slow
def test_the_walk_through_on_own_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recipe = block_with("yaml", "preset: small")
    for printed, smaller in (
        ("preset: small", "preset: tiny, num_layers: 1, num_decoder_layers: 1"),
        ("vocab_size: 8000", "vocab_size: 300"),
        ("epochs: 30", "epochs: 1"),
    ):
        assert printed in recipe
        recipe = recipe.replace(printed, smaller)
    Path("recipe.yaml").write_text(recipe)
    pairs = phrasebook.pairs("train")[:200]
    for name in ("corpus/train", "corpus/valid", "more/train", "more/valid", "news", "test"):
        Path(name).parent.mkdir(exist_ok=True)
        count = 200 if name.endswith("train") else 8
        Path(name + ".en").write_text("".join(pair.source + "\n" for pair in pairs[:count]))
        Path(name + ".de").write_text("".join(pair.target + "\n" for pair in pairs[:count]))
    Path("news.de").unlink()
    for command in commands("--resume"):
        assert cli.main(command) == 0, command
    assert len(Path("news.de").read_text().splitlines()) == 8
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["sentences"] == 8
    assert Path("runs/tuned/result.json").exists()


def test_the_other_commands_are_ones_that_the_command_line_knows():
    texts = (
        "multi30k-en-de",
        "tfformer attention",
        "tfformer score",
        "tfformer generate",
        "saved_model",
        "tflite",
        "serve",
    )
    others = [command for text in texts for command in commands(text)]
    assert len(others) == 15
    for command in others:
        assert arguments.parser().parse_args(command).verb


@pytest.mark.slow
def test_the_keras_workflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = np.random.default_rng(0).integers(4, 8000, (8, 6), dtype=np.int32)
    weights = np.ones((8, 6), np.float32)
    dataset = tf.data.Dataset.from_tensors(({"source": ids, "target": ids}, ids, weights))
    names = {"dataset": dataset, "source_ids": ids, "target_ids": ids}
    exec(block_with("python", "model.fit"), names)
    assert names["logits"].shape == (8, 6, 8000)
    reloaded = names["keras"].models.load_model("model.keras")
    np.testing.assert_allclose(reloaded({"source": ids, "target": ids}), names["logits"], atol=1e-5)


@pytest.mark.slow
def test_a_trained_run_in_python(tiny_run, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "phrasebook").symlink_to(tiny_run)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block_with("python", "Translator.load"), names)
    sentence = [phrasebook.pairs("test")[0].source]
    assert names["translator"].translate(sentence) == tfformer.Translator.load(tiny_run).translate(
        sentence
    )


def test_the_tree_names_what_is_there():
    tree = block_with("", "the package, in rooms")
    package, repository = tree.split("\nexamples/")
    rooms = set(re.findall(r"^  (\w+(?:/|\.py))", package, re.MULTILINE))
    assert {f"{path.name}/" for path in (ROOT / "tfformer").iterdir() if path.is_dir()} - {
        "__pycache__/"
    } <= rooms
    for name in re.findall(r"\b(\w+\.py)\b", package.split("\n", 1)[1]):
        assert (ROOT / "tfformer" / name).exists(), name
    for name in re.findall(r"^(\w+/)", f"examples/{repository}", re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_the_recipes_for_tensorflow_datasets_are_valid():
    found = [yaml.safe_load(block) for block in blocks("yaml") if '"tfds:' in block]
    assert len(found) == 2
    for values in found:
        assert Config.from_dict(values).data.languages


def test_the_exports_are_there_after_importing_the_package_alone():
    code = "import tfformer; print(tfformer.export.saved_model.__name__)"
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "saved_model\n"


def test_every_public_name_can_be_imported():
    for name in tfformer.__all__:
        assert getattr(tfformer, name).__name__ == name


@pytest.mark.slow
def test_the_quickstart_reaches_its_scores(tmp_path):
    """BLEU and pronouns of at least 95 on held-out text, and a picture."""
    printed = subprocess.run(
        ["bash", "scripts/quickstart.sh", str(tmp_path / "run")],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert printed.returncode == 0, printed.stderr[-2000:]
    results = [json.loads(line) for line in printed.stdout.splitlines() if line.startswith("{")]
    assert next(result["bleu"] for result in results if "bleu" in result) >= 95
    assert (
        next(result["pronouns_right"] for result in results if "pronouns_right" in result) >= 0.95
    )
    aligned = subprocess.run(
        [sys.executable, "scripts/alignments.py", tmp_path / "run"], cwd=ROOT, capture_output=True
    )
    assert min(json.loads(aligned.stdout.splitlines()[-1])["alignment_error_rate"].values()) < 0.25
    for name in ("it.png", "it_wide.png"):
        assert (tmp_path / "run" / name).read_bytes().startswith(b"\x89PNG")
