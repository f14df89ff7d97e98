"""Tells a refused setting by the name that it has in a checkpoint's own file."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def told_by_keys(file: Path, keys: Mapping[str, str]) -> Iterator[None]:
    """Tell an error of the recipe by a checkpoint's file and its own key.

    Args:
        file: A checkpoint's file.
        keys: The recipe's setting, without its section -> the file's key.

    Raises:
        ValueError: The block has raised one.

    Example:
        >>> with told_by_keys(Path("config.json"), {"beam_size": "num_beams"}):
        ...     raise ValueError("decoding.beam_size=0 must be from 1")
        Traceback (most recent call last):
            ...
        ValueError: config.json: num_beams=0 must be from 1
    """
    try:
        yield
    except ValueError as error:
        message = re.sub(
            r"\b(?:model\.dialect|model|decoding)\.(\w+)",
            lambda setting: keys.get(setting[1], setting[0]),
            str(error),
        )
        raise ValueError(f"{file}: {message}") from None
