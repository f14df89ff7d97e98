"""SHA-256 of the parts of a run, by which a change of them is seen."""

from collections.abc import Mapping
from typing import Any

from tfformer.storage.small_files import digest_of_values

MOVABLE = ("train", "valid", "folder", "cache")  # of `data`: a person may edit them in config.json


def digest_of_settings(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of config.json's recipe, except the paths of its text."""
    data = {key: value for key, value in (values.get("data") or {}).items() if key not in MOVABLE}
    return digest_of_values({**values, "data": data})


def digest_of_model(values: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of the model's settings in config.json and of its vocabularies."""
    sides = {side: digests.get(side) for side in ("source", "target")}
    return digest_of_values({"model": values.get("model"), **sides})
