"""The lists of requirements/ hold a version and digests of all that pyproject.toml names."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
PIN = re.compile(r"(?P<name>[a-z0-9-]+)(?:\[[a-z,]+\])?==(?P<version>[^ ;]+)(?: ; [^\\]+)?")


def pinned(name: str) -> dict[str, set[str]]:
    """The versions of each package in a list and in the base; each entry must be whole."""
    texts = [(ROOT / "requirements" / f"{one}.txt").read_text("utf-8") for one in {"base", name}]
    found: dict[str, set[str]] = {}
    for line in "\n".join(texts).replace(" \\\n   ", "").splitlines():
        if line == "-r base.txt" or not line:
            continue
        pin, *digests = re.split(r" --hash=sha256:(?=[0-9a-f]{64}(?: |$))", line)
        match = PIN.fullmatch(pin)
        assert match, f"no pin: {line[:100]}"
        assert digests, f"no digest: {line[:100]}"
        found.setdefault(match["name"], set()).add(match["version"])
    return found


def named(extra: str) -> list[Requirement]:
    """The requirements of an extra, and of the extras that it names."""
    found = []
    for requirement in map(Requirement, EXTRAS.get(extra, PROJECT["project"]["dependencies"])):
        inner = [name for one in requirement.extras for name in named(one)]
        found += inner if requirement.name == PROJECT["project"]["name"] else [requirement]
    return found


def test_there_is_a_list_for_each_extra_and_for_the_base():
    names = {path.stem for path in (ROOT / "requirements").iterdir()}
    assert names == {*EXTRAS, "base", "uv"}


@pytest.mark.parametrize("name", ["base", *EXTRAS])
def test_all_that_is_required_has_an_admitted_version_and_digests(name):
    versions = pinned(name)
    for requirement in named(name):
        found = versions.get(canonicalize_name(requirement.name), set())
        assert found, f"run scripts/lock.sh: requirements/ lacks {requirement}"
        assert all(map(requirement.specifier.contains, found)), requirement


def test_the_base_can_build_the_package():
    versions = pinned("base")
    for requirement in map(Requirement, PROJECT["build-system"]["requires"]):
        assert all(map(requirement.specifier.contains, versions[requirement.name])), requirement


def test_a_package_has_the_same_versions_in_all_lists():
    found: dict[str, set[frozenset[str]]] = {}
    for name in EXTRAS:
        for package, versions in pinned(name).items():
            found.setdefault(package, set()).add(frozenset(versions))
    assert {name for name, versions in found.items() if len(versions) > 1} == set()
