"""A linter reads the Dockerfile, and its files exist; no image is built."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
TEXT = DOCKERFILE.read_text("utf-8").replace("\\\n", "")  # continued lines joined


def test_a_linter_finds_nothing():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_it_copies_files_that_docker_may_see():
    copies = re.findall(r"^COPY (?!--from)(.*)$", TEXT, flags=re.MULTILINE)
    names = [name for copy in copies for name in copy.split()[:-1]]
    rules = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert rules[0] == "*"
    assert {name.removeprefix("./") for name in names} <= {rule[1:] for rule in rules[1:]}
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_it_installs_extras_that_there_are():
    """For each runtime that the comment at its beginning names."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = set(re.findall(r"--extra (\w+)", TEXT))
    runtimes = re.search(r"RUNTIME=(\w+), or (\w+)\.", TEXT).groups()
    default = re.search(r"^ARG RUNTIME=(\w+)$", TEXT, flags=re.MULTILINE)[1]
    assert installed | {*runtimes, default} <= extras["optional-dependencies"].keys()
