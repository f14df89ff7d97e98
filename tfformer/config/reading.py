"""Recipes from YAML files and the command line."""

import os
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfformer.config.recipe import Config
from tfformer.storage.whole_files import read_text

FOLDER = Path(__file__).parents[1] / "recipes"


def read_recipe(
    path: str | Path | None,
    overrides: Sequence[str] = (),
    base: Config | None = None,
    resumed: Config | None = None,
) -> Config:
    """Read a YAML file of up to 64 KiB; `section.key=value` overrides replace its values.

    Args:
        path: The file; None for a recipe made only of `base` or `resumed`, and the overrides.
        overrides: Values in YAML, such as `training.epochs=2`.
        base: The recipe of another run. A recipe without a section `model` takes the model from it;
            also the tokenizer, search, languages, tags and maximum length that it does not set.
        resumed: The recipe of a run to be resumed, which takes the place of `base`. It also
            provides all other sections that the file does not contain.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file or an override is not a valid recipe.
    """
    values = parse_yaml(read_text(Path(path)), str(path)) or {} if path else {}
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must contain sections such as 'model:' and 'data:', not a "
            f"{type(values).__name__}"
        )
    if resumed:
        stated = {name: section for name, section in values.items() if section is not None}
        values = resumed.to_dict() | {"model": None} | stated
        base = resumed
    if base and not values.get("model"):
        _take_model(values, base.to_dict())
    for override in overrides:
        _override(values, override)
    try:
        return Config.from_dict(values)
    except ValueError as error:
        if path is None:
            raise
        changed = " with --set" if overrides else ""
        raise ValueError(f"{os.path.abspath(path)}{changed}: {error}") from None


def builtin_recipes() -> dict[str, Path]:
    """Name -> file of the recipes that come with the package."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def find_recipe(name: str) -> Path:
    """Return the file of a built-in recipe, or the path itself."""
    known = builtin_recipes()
    if name in known:
        return known[name]
    if os.path.isfile(name):  # also False for a name that no file can have
        return Path(name)
    raise ValueError(
        f"recipe {reprlib.repr(name)} is neither a file nor built in; the built-in recipes are "
        f"{', '.join(known)}"
    )


def parse_yaml(text: str, origin: str) -> Any:
    """Parse one document of YAML 1.2, where `no` is a string and 1e-3 a number.

    `origin` names its file or option in messages. An empty document is None; a repeated key raises
    ValueError.

    Example:
        >>> parse_yaml("languages: [en, no]", "recipe.yaml")
        {'languages': ['en', 'no']}
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    parser = YAML(typ="safe", pure=True)
    parser.composer.warn_double_anchors = False  # YAML allows a second anchor of the same name
    try:
        return parser.load(text)
    except (
        *(YAMLError, RecursionError),
        *(ValueError, LookupError, TypeError, AttributeError),  # raised for a wrong tag or date
    ) as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{origin} is not YAML: {message[:240]}") from None


def _take_model(values: dict[str, Any], base: dict[str, Any]) -> None:
    """Copy the model of another recipe, and all settings that depend on it."""
    for section in ("model", "tokenizer", "decoding"):
        values[section] = values.get(section) or base[section]
    data = values.get("data") or {}
    if isinstance(data, dict):  # any other value is rejected with the whole recipe
        taken = {key: base["data"][key] for key in ("languages", "tags", "max_length")}
        values["data"] = taken | data


def _override(values: dict[str, Any], override: str) -> None:
    """Put `section.key=value`, or `section.key.key=value`, into the values of a recipe."""
    option = f"--set {reprlib.repr(override)}"
    path, separator, value = override.partition("=")
    *sections, key = path.split(".")
    if not (separator and sections):
        raise ValueError(f"{option} must read section.key=value, for example training.epochs=5")
    for depth, section in enumerate(sections, 1):
        if values.get(section) is None:
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            name = ".".join(sections[:depth])
            raise ValueError(f"{option}: section {name!r} of the recipe has no keys")
    values[key] = parse_yaml(value, option)
