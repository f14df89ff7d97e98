"""The parts of a corpus, and the folder of their translations.

A part is a file of one sentence a line. Its translation has the same name in another folder, and
appears whole or not at all; so whatever is there is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tfformer.data.file_parts import matching_files
from tfformer.files import TEMPORARY, check_regular, write_text
from tfformer.plain_values import parse_json, read_text

JOB = "translation.json"  # in the folder of the translations: the model and its settings
BAD_LINES = ".bad.tsv"  # behind the name of a translation: the lines that were set aside


class Part(NamedTuple):
    """A file to translate.

    Attributes:
        source: One sentence a line, in UTF-8; packed by gzip if the name ends in `.gz`.
        output: The file of its translations, packed likewise.
    """

    source: Path
    output: Path

    @property
    def bad_lines(self) -> Path:
        """The file with the numbers of the lines that were set aside."""
        return self.output.with_name(self.output.name + BAD_LINES)

    @property
    def is_done(self) -> bool:
        """Whether its translation is there, and so whole."""
        return self.output.is_file()


def find_parts(pattern: str, folder: str | Path) -> list[Part]:
    """Find the files of a pattern.

    Args:
        pattern: A file, or several by a `*`, such as `corpus/part-*.en.gz`; see `matching_files`.
        folder: The folder of the translations.

    Returns:
        The parts, in the order of their names.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file is a device, two have the same name, or one would be its own translation.

    Example:
        >>> find_parts("no/such/*.gz", "out")
        Traceback (most recent call last):
            ...
        FileNotFoundError: no/such/*.gz: no file has such a name; correct it or fetch the data first
    """
    found = [source for (source,) in matching_files([Path(pattern)])]
    sources = [source for source in found if source.exists() and not source.is_dir()]
    if not sources:
        raise FileNotFoundError(f"{pattern}: there is no such file; correct the name, in quotes")
    names: dict[str, Path] = {}
    for source in sources:
        check_regular(source)
        if source.name in names:
            raise ValueError(
                f"{names[source.name]} and {source} have the same name, which their translations "
                "would share; rename one of them"
            )
        names[source.name] = source
    parts = [Part(source, Path(folder) / source.name) for source in sources]
    if parts[0].source.resolve() == parts[0].output.resolve():
        raise ValueError(f"--output {folder} is the folder of the corpus itself; choose another")
    return parts


def begin_job(folder: str | Path, settings: Mapping[str, Any]) -> None:
    """Make the folder of the translations, or go on in it.

    Args:
        folder: A folder that is absent, empty, or of a job with the same settings.
        settings: All that decides a translation, as plain JSON values.

    Raises:
        FileExistsError: Something else is in the folder.
        ValueError: The folder is of a job with other settings.
    """
    place = Path(folder)
    job = place / JOB
    if job.is_file():
        before = parse_json(read_text(job))
        if before != dict(settings):
            raise ValueError(
                f"{place} has translations by another model or with other settings; choose "
                "another --output"
            )
        return
    if place.exists() and not place.is_dir():
        raise FileExistsError(f"{place} is a file, not a folder; choose another --output")
    if place.is_dir() and any(not TEMPORARY.fullmatch(path.name) for path in place.iterdir()):
        raise FileExistsError(
            f"{place} is not empty and has no {JOB} of an earlier job; choose another --output"
        )
    place.mkdir(parents=True, exist_ok=True)
    write_text(job, json.dumps(dict(settings), indent=2) + "\n")
