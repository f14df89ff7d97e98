"""Imports between the rooms follow one table."""

import ast
import re
from pathlib import Path

import pytest

import tfformer

PACKAGE = Path(tfformer.__file__).parent
GROUND = {  # may be imported by all
    *("argument_checks", "config", "html_page", "runtime"),
    *("special_ids", "storage", "__version__"),
}
MAY_IMPORT = {
    "model": set(),
    "text": set(),
    "data": set(),
    "run_directory": {"model", "data"},
    "inference": {"text", "run_directory", "model", "data"},
    "training": {"inference", "run_directory", "model", "data"},
    "checkpoints": {"run_directory", "model", "data"},
    "engines": {"inference", "run_directory", "data"},
    "export": {"engines", "checkpoints", "inference", "run_directory", "model", "data"},
    "keras_hub": {"export", "checkpoints", "inference", "run_directory", "model", "data"},
    "explain": {"training", "inference", "run_directory", "model", "data"},
    "serving": {"engines", "text"},
    "corpora": {"engines", "inference", "data"},
}
# Imports within a function: the user asks an object of a lower room for the work of a higher one.
WITHIN_FUNCTIONS = {"inference/text_model.py": {"export"}}
TOP = {"__init__", "__main__", "cli"}
ROOMS = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()} - {
    "recipes",
    "__pycache__",
}


def files_of(room: str) -> list[Path]:
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def rooms_imported(file: Path) -> set[str]:
    """Return the rooms in all import statements of a file, including relative imports."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = absolute(node, file)
            ends = [f".{alias.name}" for alias in node.names] if module == "tfformer" else [""]
            modules |= {module + end for end in ends}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {module.split(".")[1] for module in modules if module.startswith("tfformer.")}


def absolute(node: ast.ImportFrom, file: Path) -> str:
    """Return the module of `from ... import`, with leading dots resolved."""
    names = file.relative_to(PACKAGE.parent).with_suffix("").parts
    home = names[: len(names) - node.level] if node.level else ()
    return ".".join(filter(None, (*home, node.module)))


@pytest.mark.parametrize("room", sorted(ROOMS - TOP))
def test_a_room_imports_only_the_rooms_that_it_may(room):
    allowed = {room} | GROUND | MAY_IMPORT.get(room, set())
    if room in GROUND:
        allowed = GROUND
    for file in files_of(room):
        asked = WITHIN_FUNCTIONS.get(file.relative_to(PACKAGE).as_posix(), set())
        assert rooms_imported(file) <= allowed | asked, file


def test_the_table_lists_every_room():
    assert set(MAY_IMPORT) == ROOMS - TOP - GROUND


def test_every_function_that_tensorflow_traces_is_traced_as_it_is_written():
    """`tracing.traced` does not use AutoGraph.

    AutoGraph would take most of the time of a first translation.
    """
    users = [file.name for file in PACKAGE.rglob("*.py") if "tf.function(" in file.read_text()]
    assert users == []


ALONE = sorted((PACKAGE.parent / "export").rglob("*.py"))


@pytest.mark.parametrize("file", ALONE, ids=lambda file: file.name)
def test_what_lives_off_artefacts_imports_nothing_of_the_package(file):
    statements = r"^\s*(?:import|from) +(\.|\w+)"
    imported = re.findall(statements, file.read_text(encoding="utf-8"), re.MULTILINE)
    assert not {"tfformer", "."} & set(imported)
