"""Every command, recipe and Python block of the documentation runs as printed.

The text is small and made here. `NOT_RUN` lists the commands that are not run, with the reason.
"""

import gzip
import importlib.metadata
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import tensorflow as tf
import yaml
from support.documentation import ALL_BLOCKS, ROOT, block_with, commands
from support.marian_checkpoints import checkpoint, languages
from support.servers import served

from tfformer.checkpoints.import_model import import_model
from tfformer.cli import main as cli
from tfformer.config import Config
from tfformer.data import phrasebook
from tfformer.inference.translator import Translator

NOT_RUN = {
    # the beginning of a command: why it is not run here
    "scripts/quickstart.sh": "test_quickstart.py runs it",
    "scripts/test.sh": "runs these tests",
    "scripts/docs.sh": "test_site.py builds the site; --serve has no end",
    "uv lock": "asks the index for the newest packages",
    "scripts/multi30k/": "takes an hour and the data",
    "scripts/open_en_de/": "takes an hour and the data",
    "pre-commit install": "changes the repository's own hooks",
    "tfformer serve": "has no end; tests/serving runs it",
    "tfformer corpus phrasebook": "test_wheel.py runs it",
    "tfformer translate models/mine --input 'news-*.en.gz'": "tests/corpora runs it",
    "tfformer distill runs/opus": "tests/corpora/test_distillation.py runs it",
    "tfformer shortlist runs/student": "tests/export/test_shortlist_export.py runs it",
    "tfformer export runs/student": "tests/checkpoints/test_firefox_int8.py exports a student",
    "tfformer export runs/mine --format web": "tests/export/test_web_page.py runs it",
    "tfformer train recipe.yaml --run-dir runs/pretrained": "test_examples.py runs both trainings",
    "tfformer train both-ways.yaml": "tests/inference/test_tags.py trains such a model",
    "tfformer translate runs/both-ways": "tests/inference/test_tags.py translates with it",
    "tfformer export runs/both-ways": "tests/inference/test_tags.py exports it",
    "tensorboard": "has no end",
    "python -m http.server": "has no end",
    "kubectl": "there is no Kubernetes; test_examples.py reads the manifest and its command",
    "docker": "there is no Docker where the tests run",
    "MODEL=phrasebook EXPORT=": "there is no Docker where the tests run",
    "tfformer import Helsinki-NLP/": "tests/checkpoints/test_hub.py runs it with a local hub",
    "tfformer export runs/mine --format litert --static": "test_litert.py runs the C++ sample",
    "sudo apt-get install g++": "changes the machine",
    "lite=": "test_litert.py runs the C++ sample",
    "g++ -std=c++17 export": "test_litert.py runs the C++ sample",
    "runs/translate": "test_litert.py runs the C++ sample",
    "tfformer attention runs/phrasebook --kind influence": "test_influence.py draws it",
    "cd export/on_device/web": "needs the network; the first web export does the same",
    "tfformer train recipe.yaml --run-dir /shared": "tests/faults/test_lost_workers.py runs it",
    "tfformer train recipe.yaml --run-dir s3://": "tests/faults/test_remote_runs.py runs it",
    "tfformer translate s3://": "tests/cli/test_remote_runs.py runs it",
    "TF_CONFIG=": "needs two processes at once; tests/faults/test_lost_workers.py runs them",
    "CUDA_VISIBLE_DEVICES=": "there is no GPU where the tests run",
}
OTHER_LANGUAGES = {
    "": "drawings of folders and ways",
    "text": "printed answers; the tests of answers compare them",
    "html": "the browser of tests/export/test_web_page.py runs it",
}
SMALLER = [  # settings that make any training short, with the sizes of the fixture `tiny_run`
    *("model.num_layers=1", "model.d_model=64", "model.num_heads=2", "model.d_ff=128"),
    *("tokenizer.vocab_size=200", "training.epochs=1", "training.epoch_steps=2"),
    *("training.validate_every=1", "training.dtype=float32", "training.shards=1"),
]
SHORTER = {  # a few lines of the phrasebook in place of all; test_wheel.py trains on a whole split
    "phrasebook": ["data.train=[train.en, train.de]", "data.valid=[valid.en, valid.de]"],
    "phrasebook-lm": ["data.train=train.en", "data.valid=valid.en"],
}

SHELL = [block for block in ALL_BLOCKS if block.language in ("sh", "bash")]
PYTHON = [block for block in ALL_BLOCKS if block.language == "python"]
FITTING = [block for block in PYTHON if "model.fit" in block.text]
KERAS_WORKFLOW = block_with("docs/keras.md", "python", "weighted_metrics")  # has a test of its own
KERAS_TRANSLATOR = block_with("docs/keras.md", "python", "translator.save")  # so has this one
KERAS_HUB = block_with("docs/keras_hub.md", "python", "from_preset")  # test_keras_hub.py runs it
IMPORTED = ("runs/opus", "runs/m2m")  # whose ids are not SentencePiece's
RECIPES = [block for block in ALL_BLOCKS if block.language == "yaml"]


def not_run(command: str) -> bool:
    return any(command.startswith(beginning) for beginning in NOT_RUN)


RUN = [block for block in SHELL if not all(map(not_run, commands(block)))]


def test_every_block_is_of_a_kind_that_is_run_or_has_a_reason():
    run = {"sh", "bash", "python", "yaml"}
    assert {block.language for block in ALL_BLOCKS} <= run | set(OTHER_LANGUAGES)


def test_every_reason_belongs_to_a_command():
    printed = [command for block in SHELL for command in commands(block)]
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for command in printed), beginning


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_every_verb_and_option_exists(block):
    for command in commands(block):
        if command.startswith("tfformer "):
            words = shlex.split(re.split("[<>|]", command)[0])
            verb = cli.program.commands[words[1]]
            verb.make_parser(click.Context(verb)).parse_args(words[2:])


@pytest.mark.parametrize("block", RECIPES, ids=str)
def test_every_recipe_is_valid(block):
    assert Config.from_dict(yaml.safe_load(block.text))  # a part of a recipe is valid, too


@pytest.fixture(scope="session")
def workplace(tiny_run, counting_run, tmp_path_factory) -> Path:
    """A folder with every file and run that the pages name."""
    folder = tmp_path_factory.mktemp("workplace")
    pairs = phrasebook.pairs("train")[:200]
    names = ["corpus/train", "corpus/valid", "corpus/test", "more/train", "more/valid"]
    names += ["train", "valid", "news", "test", "text", "sentences"]
    for name in names:
        count = 200 if name.endswith(("train", "text")) else 8
        (folder / name).parent.mkdir(exist_ok=True)
        for language in ("en", "de"):
            texts = [pair.source if language == "en" else pair.target for pair in pairs[:count]]
            (folder / f"{name}.{language}").write_text("\n".join(texts) + "\n")
    (folder / "page.html").write_text("<p>The <b>animal</b> is tired.</p>\n")
    (folder / "names.txt").write_text("Foo Inc\n")
    (folder / "pairs.csv").write_text('"A dog, a cat.","Ein Hund, eine Katze."\n')
    (folder / "other.out").write_bytes((folder / "test.en").read_bytes())
    for written in ("news.de", "sentences.de"):
        (folder / written).unlink()
    (folder / "multi30k").mkdir()
    for name in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            text = (folder / f"{'train' if name == 'train' else 'test'}.{language}").read_bytes()
            (folder / "multi30k" / f"{name}.{language}.gz").write_bytes(gzip.compress(text))
    for recipe, mark in (("recipe.yaml", "# recipe.yaml"), ("lm.yaml", "# lm.yaml")):
        recipes = [block for block in RECIPES if block.text.startswith(mark)]
        (folder / recipe).write_text(recipes[0].text)
    (folder / "runs").mkdir()
    for name, run in (("phrasebook", tiny_run), ("mine", tiny_run), ("lm", counting_run)):
        (folder / "runs" / name).symlink_to(run)
    checkpoint("A", folder).rename(folder / "opus-mt-en-de")
    import_model(folder / "opus-mt-en-de", folder / "runs" / "opus")
    shutil.make_archive(str(folder / "opus-2020-02-26"), "zip", folder / "opus-mt-en-de")
    both = [phrasebook.pairs("train")[0].source, phrasebook.pairs("train")[0].target]
    (folder / "text.en-de").write_text("".join(f"{line.lower()}\n" for line in both))
    multilingual = checkpoint("M2M", folder).rename(folder / "m2m100_418M")
    import_model(multilingual, folder / "runs" / "m2m", **languages("M2M"))
    for link in ("export", "scripts", "examples", "pyproject.toml"):
        (folder / link).symlink_to(ROOT / link)
    return folder


@pytest.fixture(scope="session")
def exports(workplace) -> set[str]:
    """Run each form of the pages' export commands once; return the forms."""
    printed = [command for block in SHELL for command in commands(block)]
    exporting = [c for c in printed if c.startswith("tfformer export") and not not_run(c)]
    done = {}
    for command in sorted(exporting, key=lambda command: command.split()[2] in IMPORTED):
        done.setdefault(form_of_export(command), command)
    models = workplace / "models"
    for number, (form, command) in enumerate(done.items()):
        words = ["export", str(workplace / command.split()[2]), *shlex.split(form)]
        assert cli.main([*words, "--output", str(models / str(number))]) == 0, form
    written = {form: models / str(number) for number, form in enumerate(done)}
    (models / "mine").symlink_to(written["--format litert --quantize int8"])
    (models / "phrasebook").symlink_to(written["--format saved_model"])
    for version in ("2", "3"):
        shutil.copytree(models / "phrasebook" / "1", models / "phrasebook" / version)
    (models / "phrasebook-ctranslate2").symlink_to(written["--format ctranslate2"])
    return set(done)


def form_of_export(command: str) -> str:
    """Return the options of an export command, without the run and the output."""
    words = shlex.split(command)[3:]
    output = words.index("--output")
    return shlex.join(words[:output] + words[output + 2 :])


@pytest.fixture(scope="session")
def runs() -> dict[str, Path]:
    """The run of each command, for the next page that prints the same command."""
    return {}


@pytest.fixture(scope="session")
def server(workplace, exports):
    """`tfformer serve` with the exported model, in place of TensorFlow Serving."""
    export = workplace / "models" / "phrasebook"
    with served(f"phrasebook={export}", f"en-de={export / '1'}") as addresses:
        yield addresses


@pytest.fixture
def working_folder(request, workplace, tmp_path, monkeypatch) -> Path:
    """A copy of the workplace for one block, with the exports if the block names one."""
    if "models/" in request.getfixturevalue("block").text:
        request.getfixturevalue("exports")
    folder = tmp_path / "place"
    shutil.copytree(workplace, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("block", RUN, ids=str)
def test_every_command_runs(block, working_folder, runs, request, monkeypatch):
    for command in commands(block):
        if not_run(command):
            continue
        if command.startswith("tfformer export"):
            assert form_of_export(command) in request.getfixturevalue("exports")
            continue
        folder = run_made_by(command, working_folder)
        if folder and command in runs:
            folder.symlink_to(runs[command])
            continue
        if address := re.search(r"http://[\w.]+:8501", command):
            server = request.getfixturevalue("server")
            command = command.replace(address[0], server.rest)
        run(command, monkeypatch)
        if folder:
            runs[command] = folder


def run_made_by(command: str, working_folder: Path) -> Path | None:
    """Return the folder of the run that a command creates, or None; remove an existing folder."""
    words = command.split()
    if "--run-dir" not in words or "--resume" in words:
        return None
    folder = working_folder / words[words.index("--run-dir") + 1]
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def run(command: str, monkeypatch) -> None:
    """Run one command of a page, which must succeed."""
    piped, _, program = command.rpartition(" | ")
    words = shlex.split(program)
    if words[0] == "tfformer":
        text = subprocess.check_output(["bash", "-c", piped]) if piped else b""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8"))
        assert cli.main(shortened(words[1:])) == 0, command
    elif "pip install" in command:
        check_requirements(words)
    else:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, timeout=300
        )
        assert done.returncode == 0, f"{command}: {done.stderr.decode()[-2000:]}"
        assert b'"error"' not in done.stdout, f"{command}: {done.stdout.decode()}"


def shortened(words: list[str]) -> list[str]:
    """Return the arguments of a command; a training becomes short."""
    if words[:2] == ["train", "--init-from"]:  # the model of the other run
        return [*words, *(setting for setting in SMALLER if setting.startswith("training."))]
    if words[0] == "train":
        return [*words, "--set", *SMALLER, *SHORTER.get(words[1], [])]
    return words


def check_requirements(words: list[str]) -> None:
    """Check that every package in a `pip install` exists, as our extra or an installed library."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in words[words.index("install") + 1 :]:
        if extras := re.fullmatch(r"(?:\.|tfformer)\[([\w,-]+)\]", name):
            assert project["optional-dependencies"].keys() >= {*extras[1].split(",")}
        elif not name.startswith("-"):
            assert importlib.metadata.version(name)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "block", [block for block in PYTHON if block not in (*FITTING, KERAS_HUB)], ids=str
)
def test_every_python_block_runs(block, working_folder):
    exec(block.text, {})


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """The variables for a block with `model.fit`.

    Its single step runs eagerly. test_transformer.py fits such a model as Keras compiles it.
    """
    ids = np.random.default_rng(0).integers(4, 8000, (8, 6), dtype=np.int32)
    batch = ({"source": ids, "target": ids}, ids, np.ones((8, 6), np.float32))
    dataset = tf.data.Dataset.from_tensors(batch)
    tf.config.run_functions_eagerly(True)
    yield {"dataset": dataset, "source_ids": ids, "target_ids": ids}
    tf.config.run_functions_eagerly(False)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "block",
    [block for block in FITTING if block not in (KERAS_WORKFLOW, KERAS_TRANSLATOR)],
    ids=str,
)
def test_a_block_that_fits_a_model_takes_a_step(block, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block.text, names)
    assert names["model"].optimizer.iterations == 1


@pytest.mark.nightly
def test_a_keras_model_becomes_a_translator_and_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(KERAS_TRANSLATOR.text, names)
    loaded = Translator.load("runs/from_keras")
    sentences = ["The animal is tired."]
    assert loaded.n_best(sentences) == names["translator"].n_best(sentences)


@pytest.mark.nightly
def test_the_keras_workflow_saves_the_model_that_it_trained(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(KERAS_WORKFLOW.text, names)
    assert names["model"].optimizer.iterations == 1
    assert names["logits"].shape == (8, 6, 8000)
    reloaded = names["keras"].models.load_model("model.keras")
    inputs = {"source": names["source_ids"], "target": names["target_ids"]}
    np.testing.assert_allclose(reloaded(inputs), names["logits"], atol=1e-5)
