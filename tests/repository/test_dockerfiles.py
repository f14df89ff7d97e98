"""The Dockerfiles, without an engine that builds them.

A linter reads them, their files are there, and the steps of the small one are taken by hand.
"""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tfformer import Translator
from tfformer.cli.main import main

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "export" / "on_device" / "Dockerfile"
DOCKERFILES = [ROOT / "Dockerfile", SMALL]
TEXT = "Good morning."


def instructions(dockerfile: Path, name: str) -> list[str]:
    """What stands behind each instruction of the name, its lines joined."""
    text = dockerfile.read_text("utf-8").replace("\\\n", "")
    return re.findall(rf"^{name} (.*)$", text, flags=re.MULTILINE)


def copied(dockerfile: Path) -> list[str]:
    """The names of the files and folders that come from beside the Dockerfile."""
    copies = instructions(dockerfile, "COPY")
    return [name for copy in copies if "--from" not in copy for name in copy.split()[:-1]]


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_a_linter_finds_nothing(dockerfile):
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, dockerfile], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_it_copies_files_that_docker_may_see(dockerfile):
    folder, names = dockerfile.parent, copied(dockerfile)
    ignored = folder / ".dockerignore"
    if ignored.is_file():
        rules = ignored.read_text("utf-8").split()
        assert rules[0] == "*"
        assert {name.removeprefix("./") for name in names} <= {rule[1:] for rule in rules[1:]}
    assert names
    assert [name for name in names if not (folder / name).exists()] == []


def imported(module: Path) -> set[str]:
    """The names of the modules that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(module.read_text("utf-8"))))
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    plain = (alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names)
    return {str(name) for name in named.union(plain)}


def test_the_small_one_copies_each_module_that_its_programs_import():
    names = copied(SMALL)
    wanted = set().union(*(imported(SMALL.parent / name) for name in names))
    beside = {path.stem for path in SMALL.parent.glob("*.py")}
    assert wanted & beside <= {Path(name).stem for name in names}


@pytest.mark.nightly
def test_the_steps_of_the_small_one_make_a_server(tiny_run, tmp_path):
    """Its packages in an empty environment, its files in a folder, its command: it translates.

    So does the other program in its image, a whole text too.
    """
    model, app = tmp_path / "model", tmp_path / "app"
    assert main(["export", str(tiny_run), "--format", "litert", "--output", str(model)]) == 0
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    [run] = instructions(SMALL, "RUN")
    install = shlex.split(run.split("&&")[0])
    subprocess.run([programs / install[0], *install[1:], "--quiet"], check=True)
    app.mkdir()
    for name in copied(SMALL):
        shutil.copy(SMALL.parent / name, app)

    [entry] = map(json.loads, instructions(SMALL, "ENTRYPOINT"))
    command = [programs / entry[0], "-u", *entry[1:], "--port", "0", model]
    with subprocess.Popen(command, cwd=app, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+:(\d+)", server.stdout.readline())
            place = f"http://127.0.0.1:{address[1]}"
            assert urlopen(f"{place}/healthz").status == 200
            body = json.dumps({"q": TEXT, "source": "en", "target": "de"}).encode()
            asked = Request(f"{place}/translate", body, {"Content-Type": "application/json"})
            answer = json.load(urlopen(asked))
        finally:
            server.terminate()
    [expected] = Translator.load(tiny_run).translate([TEXT], beam_size=1)
    assert answer["translatedText"] == expected
    assert server.returncode == 0

    command = [programs / "python", "translate.py", model, "--format", "text"]
    done = subprocess.run(command, cwd=app, input=f"\n{TEXT}\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"\n{expected}\n")
