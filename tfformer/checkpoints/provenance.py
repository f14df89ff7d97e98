"""The record of an import: where a run is from, and what the way back needs."""

import json
from collections.abc import Mapping
from typing import Any

from tfformer.checkpoints.json_files import read_object
from tfformer.run_directory import Run, digest_of_values
from tfformer.storage.whole_files import write_text

DIGEST = "digest"  # SHA-256 of all other keys


def write_record(run: Run, values: Mapping[str, Any]) -> None:
    """Write the record of a run's import, which knows its own digest.

    Args:
        run: The imported run.
        values: What JSON can hold.
    """
    record = json.loads(json.dumps(values))
    complete = record | {DIGEST: digest_of_values(record)}
    write_text(run.origin, json.dumps(complete, indent=1) + "\n")


def read_record(run: Run) -> dict[str, Any]:
    """Return the record of a run's import.

    Args:
        run: A run, imported or trained here.

    Returns:
        The object of imported.json; an empty one for a run that was trained here.

    Raises:
        ValueError: The record is damaged.
    """
    if not run.origin.is_file():
        return {}
    record = read_object(run.origin)
    if record.pop(DIGEST, None) != digest_of_values(record):
        raise ValueError(
            f"{run.origin} is damaged (it has another digest than when it was written); restore "
            "it, or import the model again"
        )
    return record


def imported_from(run: Run) -> dict[str, dict[str, str]]:
    """Return where an imported run is from and under which licence, for a manifest.

    Args:
        run: A run, imported or trained here.

    Returns:
        {"imported": {"family", "origin", "licence"}}; nothing for a run that was trained here.
    """
    record = read_record(run)
    if not record:
        return {}
    return {"imported": {key: str(record.get(key)) for key in ("family", "origin", "licence")}}
