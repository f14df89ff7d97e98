"""The list of a package's modules, with a package made for it."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tfformer.public_modules import list_public_packages


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with two packages and a module, of which `face` alone is public."""
    for name in ("house", "house/face", "house/cellar"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "house" / "stairs.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("house")
    list_public_packages(package.__path__, ["face"])
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "house"]:
        del sys.modules[name]


def names(package: ModuleType) -> list[str]:
    return [found.name for found in pkgutil.walk_packages(package.__path__, "house.")]


def test_the_public_packages_are_listed_alone(house):
    assert names(house) == ["house.face"]


@pytest.mark.parametrize("name", ["face", "cellar", "stairs"])
def test_every_module_is_imported(house, name):
    assert importlib.import_module(f"house.{name}").__name__ == f"house.{name}"


def test_a_module_written_later_is_imported(house):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("house.roof")
    Path(house.__path__[0], "roof.py").write_text("TILES = 7")
    importlib.invalidate_caches()
    assert importlib.import_module("house.roof").TILES == 7


def test_a_missing_module_is_missing(house):
    with pytest.raises(ModuleNotFoundError, match=r"house\.garden"):
        importlib.import_module("house.garden")


def test_the_list_of_the_last_call_counts(house):
    for _ in range(2000):  # more than Python's limit of calls within each other
        list_public_packages(house.__path__, ["cellar"])
    assert names(house) == ["house.cellar"]
    assert importlib.import_module("house.stairs").__name__ == "house.stairs"
