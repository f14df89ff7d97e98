"""Facts that several files state are equal in all of them."""

import re
import tomllib
from pathlib import Path

import yaml

import tfformer

ROOT = Path(__file__).parents[2]
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
