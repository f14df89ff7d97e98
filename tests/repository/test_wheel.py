"""The wheel is built, installed into an empty environment, and used from another folder."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documentation import ROOT

PIP = [sys.executable, "-m", "pip", "--python"]


def run(*command, folder: Path) -> str:
    """Run a command that writes bytecode for the next one, whatever this process's settings are."""
    removed = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    words = list(map(str, command))
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def install(python: Path, *words, folder: Path) -> None:
    """Install with uv or, as scripts/environment.sh does if uv finds no package, with pip."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--no-config", "--python", python]
    pip = [*PIP, python, "install", "--no-compile"]  # most of TensorFlow is never imported
    try:
        run(*uv, "--quiet", *words, folder=folder)
    except AssertionError:
        run(*pip, "--quiet", *words, folder=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the files in git; the build fetches setuptools, as pip would."""
    source = tmp_path_factory.mktemp("source")
    archive = source.with_suffix(".tar")
    with open(archive, "wb") as file:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        packing = ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"]
        subprocess.run(packing, cwd=ROOT, input=listed.stdout, stdout=file, check=True)
    run("tar", "--extract", "--file", archive, folder=source)
    output = tmp_path_factory.mktemp("wheel")
    build = ["-m", "build", "--outdir", output, source]
    run(sys.executable, *build, folder=source)
    run(sys.executable, "-m", "twine", "check", "--strict", *output.iterdir(), folder=output)
    (built,) = output.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Iterator[Path]:
    """Python of an empty environment with the wheel and its requirements.

    The cache of uv or pip contains the packages, because the tests' environment was installed from
    it. The environment takes two gigabytes, so it is removed in the background after the tests.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin" / "python"
    export = ["uv", "export", "--frozen", "--no-emit-project", "--extra", "tensorflow"]
    exported = run(*export, folder=ROOT)
    (folder / "needs.txt").write_text(exported)
    install(python, "--require-hashes", "--requirement", "needs.txt", folder=folder)
    install(python, "--no-deps", wheel, folder=folder)
    run(*PIP, python, "check", folder=folder)  # the wheel itself names all that it needs
    yield python
    subprocess.run(["sh", "-c", 'rm -rf "$0" &', folder], check=True)


@pytest.mark.nightly
def test_the_wheel_has_every_file_of_the_package(wheel):
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "tfformer"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = {name for name in tracked if (ROOT / name).exists()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("tfformer/")}
    assert packed == expected


@pytest.mark.nightly
def test_the_source_archive_has_no_half_of_the_tests(wheel):
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert "tfformer" in folders
    assert "tests" not in folders


@pytest.mark.nightly
def test_the_quickstarts_verbs_work_in_another_folder(python, tmp_path):
    """The recipe is made small, and one process runs all commands that load TensorFlow.

    The quickstart's test checks the scores.
    """
    verbs = [python, "-P", "-m", "tfformer"]
    where = run(python, "-P", "-c", "import tfformer; print(tfformer.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(python.parents[1])
    assert "phrasebook" in run(*verbs, "recipes", folder=tmp_path)
    run(*verbs, "corpus", "phrasebook", "--output", "corpus", folder=tmp_path)
    for language in ("en", "de"):
        lines = (tmp_path / "corpus" / f"test.{language}").read_text().splitlines()[:4]
        (tmp_path / f"short.{language}").write_text("\n".join(lines) + "\n")
    smaller = [
        "tokenizer.vocab_size=500",
        "model.num_layers=1",
        "model.num_decoder_layers=1",
        "model.d_model=32",
    ]
    smaller += ["training.epochs=1", "training.epoch_steps=2", "training.shards=1"]
    smaller += ["data.train=phrasebook:valid", "data.valid=[short.en, short.de]"]
    commands = [
        ["train", "phrasebook", "--run-dir", "run", "--set", *smaller],
        ["evaluate", "run", "--source", "short.en", "--reference", "short.de"],
        ["translate", "run", "--input", "short.en", "--output", "short.out"],
        ["attention", "run", "The animal is tired.", "--output", "look.html"],
    ]
    code = f"from tfformer.cli.main import main; print(list(map(main, {commands})))"
    *_, scores, _, codes = run(python, "-P", "-c", code, folder=tmp_path).splitlines()
    assert json.loads(scores)["sentences"] == 4
    assert codes == "[0, 0, 0, 0]"
    assert len((tmp_path / "short.out").read_text().splitlines()) == 4
    assert "<html" in (tmp_path / "look.html").read_text()
