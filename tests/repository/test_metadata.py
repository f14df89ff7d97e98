"""Facts, paths and names that several files state are equal in all of them; no image is built."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from support.documentation import PAGES, ROOT, block_with

import tfformer

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))


def test_one_cites_the_version_and_the_licence_of_the_package():
    assert CITATION["version"] == tfformer.__version__
    assert CITATION["license"] == PROJECT["license"]


def test_the_changelog_begins_with_the_version_of_the_package():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (first, *_) = re.findall(r"^## (\d+\.\d+\.\d+)", changelog, flags=re.MULTILINE)
    assert tfformer.__version__.partition(".dev")[0] == first


def test_every_version_of_python_that_is_named_is_tested_and_found():
    prefix = "Programming Language :: Python :: "
    named = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if ":: 3." in name]
    tested = WORKFLOW["jobs"]["run"]["strategy"]["matrix"]["python"]
    environment = (ROOT / "scripts" / "environment.sh").read_text("utf-8")
    searched = re.search(r"command -v((?: python3\.\d+)+)", environment)[1].split()
    assert named == tested == [name.removeprefix("python") for name in searched]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_workflow_runs_what_a_person_runs():
    steps = WORKFLOW["jobs"]["run"]["steps"]
    assert steps[-1]["run"] == ".ci/run"


DOCKERFILE = ROOT / "Dockerfile"
DOCKER = DOCKERFILE.read_text("utf-8").replace("\\\n", "")  # continued lines joined


def test_a_linter_finds_nothing_in_the_dockerfile():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_dockerfile_copies_files_that_docker_may_see():
    copies = re.findall(r"^COPY (?!--from)(.*)$", DOCKER, flags=re.MULTILINE)
    names = [name for copy in copies for name in copy.split()[:-1]]
    rules = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert rules[0] == "*"
    assert {name.removeprefix("./") for name in names} <= {rule[1:] for rule in rules[1:]}
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_dockerfile_installs_extras_that_there_are():
    """For each runtime that the comment at its beginning names."""
    installed = set(re.findall(r"--extra (\w+)", DOCKER))
    runtimes = re.search(r"RUNTIME=(\w+), or (\w+)\.", DOCKER).groups()
    default = re.search(r"^ARG RUNTIME=(\w+)$", DOCKER, flags=re.MULTILINE)[1]
    assert installed | {*runtimes, default} <= PROJECT["optional-dependencies"].keys()


def test_the_tree_names_what_is_there():
    tree = block_with("docs/code.md", "", "the package").text
    package, repository = tree.split("\ndocs/")
    rooms = set(re.findall(r"^  (\w+(?:/|\.py))", package, re.MULTILINE))
    folders = {path.name for path in (ROOT / "tfformer").iterdir() if path.is_dir()}
    assert rooms == {f"{name}/" for name in folders - {"__pycache__"}}
    for name in re.findall(r"^(\w+/)", f"docs/{repository}", re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_readme_names_folders_that_are_there():
    tree = block_with("README.md", "", "the package").text
    for name in re.findall(r"^(\w+/)", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_the_files_to_read_are_there_and_as_short_as_readme_says():
    page = (ROOT / "docs/code.md").read_text(encoding="utf-8")
    table = page.partition("## An afternoon's reading")[2].partition("\n\n`data/")[0]
    folder, lines = "", []
    for room, name in re.findall(r"`(\w+/)?(\w+\.py)`", table):
        folder = room or folder
        path = ROOT / "tfformer" / folder / name
        lines.append(len(path.read_text(encoding="utf-8").splitlines()))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 11
    assert round(sum(lines), -2) <= 2_400
    assert "eleven files" in readme
    assert "2,400 lines" in readme


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_path_that_a_page_names_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tfformer|tests|scripts|docs|export|examples)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in tfformer.__all__:
        assert re.search(rf"^::: tfformer\.[\w.]*\b{name}$", page, re.MULTILINE), name
