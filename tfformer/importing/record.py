"""The record of an import: where a run is from, and what the way back needs."""

from tfformer.importing.json_files import read_object
from tfformer.run_directory import Run


def read_record(run: Run) -> dict:
    """Return the record of a run's import.

    Args:
        run: A run, imported or trained here.

    Returns:
        The object of imported.json; an empty one for a run that was trained here.

    Raises:
        ValueError: The record is damaged.
    """
    return read_object(run.origin) if run.origin.is_file() else {}


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
