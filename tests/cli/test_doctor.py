"""Compare the report of `tfformer doctor` with the interpreter's metadata."""

import importlib.metadata
import json
import platform

import keras
import tensorflow as tf
from packaging.version import Version
from support.documentation import ROOT
from support.light_install import light

from tfformer.cli import doctor
from tfformer.cli.main import main
from tfformer.export import NAMES


def test_versions_speed_and_formats(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["python"] == platform.python_version()
    installed = Version(report["packages"]["tensorflow"])
    assert installed == Version(tf.__version__)  # 2.22.0rc0 is 2.22.0-rc0 there
    assert report["packages"]["keras"] == keras.__version__
    assert min(report["gflops"].values()) > 0
    assert set(report["formats"]) == set(NAMES)
    assert report["tensorflow_error"] is None


def test_each_line_has_its_subject(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 0)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    subjects = [line[:18].strip() for line in lines]
    for subject in ("tfformer", "tensorflow", "device", "bfloat16", "saved_model", "web"):
        assert subject in subjects


def test_without_tensorflow_the_report_says_why():
    done = light("doctor", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["gflops"] == {}
    assert "No module named" in report["tensorflow_error"]


METADATA = {
    "tfformer": ['numpy>=2; extra == "a"', 'tfformer[a]; extra == "b"', 'other[x]; extra == "b"'],
    "other": [
        'cuda==1; platform_system == "Linux" and extra == "x"',
        'later; python_version > "4" and extra == "x"',
        "always",
        'absent; extra == "y"',
    ],
}


def test_an_extra_lacks_what_it_and_its_extras_need(monkeypatch):
    installed = {"numpy": "2", "tfformer": "1", "other": "3"}
    monkeypatch.setattr(importlib.metadata, "requires", METADATA.get)
    monkeypatch.setattr(doctor, "_version", installed.get)
    assert doctor._missing("tfformer", "a") == []
    assert doctor._missing("tfformer", "b") == ["cuda"]
    del installed["numpy"]
    assert doctor._missing("tfformer", "b") == ["cuda", "numpy"]


def test_a_format_names_the_extras_that_it_lacks(monkeypatch):
    extras = {"tensorflow": [], "litert": ["ai-edge-litert"], "ctranslate2": []}
    monkeypatch.setattr(doctor, "_version", {"tensorflow-text": "2"}.get)
    assert doctor._remedy("saved_model", extras) is None
    assert doctor._remedy("litert", extras).endswith("pip install -e '.[litert]'")
    assert doctor._remedy("litert", {}).endswith("pip install -e '.[tensorflow,litert]'")
    without_text = {"tensorflow": ["tensorflow-text"]}
    monkeypatch.setattr(doctor, "_version", {}.get)
    assert "export with --no-text" in doctor._remedy("saved_model", without_text)
    assert doctor._remedy("marian", without_text) is None


def test_an_issue_asks_for_the_report():
    template = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.md"
    assert "tfformer doctor" in template.read_text(encoding="utf-8")
