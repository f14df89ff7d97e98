"""The README's commands and code run as they are printed, on small text made here."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfformer
from tfformer import cli, phrasebook

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def block_with(language: str, text: str) -> str:
    found = [block for block in blocks(language) if text in block]
    assert len(found) == 1, f"{len(found)} {language} blocks hold {text!r}"
    return found[0]


def commands(text: str) -> list[list[str]]:
    """The `tfformer` commands of the shell block that holds `text`, without the program's name."""
    lines = (shlex.split(line, comments=True) for line in block_with("sh", text).splitlines())
    return [words[1:] for words in lines if words[:1] == ["tfformer"]]


def test_the_other_commands_are_ones_that_the_command_line_knows():
    others = [*commands("multi30k-en-de"), *commands("tfformer attention"), *commands("tfformer export")]
    others += commands("tfformer generate")
    assert len(others) == 9
    for command in others:
        assert cli._parser().parse_args(command).verb


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


def test_a_trained_run_in_python(tiny_run, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "phrasebook").symlink_to(tiny_run)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block_with("python", "Translator.load"), names)
    sentence = [phrasebook.pairs("test")[0].source]
    assert names["translator"].translate(sentence) == tfformer.Translator.load(tiny_run).translate(sentence)


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
    assert next(result["pronouns_right"] for result in results if "pronouns_right" in result) >= 0.95
    assert (tmp_path / "run" / "it.png").read_bytes().startswith(b"\x89PNG")
