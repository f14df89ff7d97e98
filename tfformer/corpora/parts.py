"""The parts of a corpus, and the folder of their translations.

A part is a file with one sentence per line. Its translation has the same name in another folder and
is written completely or not at all, so a translation that exists is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tfformer.data.sources import matching_files
from tfformer.storage.whole_files import (
    TEMPORARY,
    check_regular,
    locked,
    parse_json,
    read_text,
    write_text,
)

JOB = "translation.json"  # in the folder of the translations: the model and its settings
LOCK = ".lock"  # in the same folder, while a command translates
BAD_LINES = ".bad.tsv"  # suffix of the file that lists the untranslatable lines


class Part(NamedTuple):
    """A file to translate, and the file of its translations.

    Both have one sentence per line, in UTF-8, and are compressed by gzip if the name ends in `.gz`.
    """

    source: Path
    output: Path

    @property
    def bad_lines(self) -> Path:
        """The file with the numbers of the lines that could not be translated."""
        return self.output.with_name(self.output.name + BAD_LINES)

    @property
    def is_done(self) -> bool:
        """Whether its translation exists, and therefore is complete."""
        return self.output.is_file()


def find_parts(pattern: str, folder: str | Path) -> list[Part]:
    """Find the files of a pattern, such as `corpus/part-*.en.gz`, in the order of their names.

    `folder` is the folder of the translations; see `matching_files` for patterns.

    Raises:
        FileNotFoundError: There is no such file, or a link is broken.
        ValueError: A file is a device, two files have the same name, a file would be its own
            translation, or a file has a name that the job itself uses.
    """
    matches = [source for (source,) in matching_files([Path(pattern)])]
    sources = [source for source in matches if not source.is_dir()]
    if not sources:
        raise FileNotFoundError(f"{pattern} is a folder; use a file name pattern, in quotes")
    names: dict[str, Path] = {}
    for source in sources:
        check_regular(source)
        if not source.exists():
            raise FileNotFoundError(f"{source} does not exist, or its link is broken")
        if source.name in (JOB, LOCK) or source.name.endswith(BAD_LINES):
            raise ValueError(
                f"{source} has the name of a file that a job writes beside its translations; "
                "rename it, or use a pattern that leaves it out"
            )
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


@contextmanager
def job_folder(folder: str | Path, settings: Mapping[str, Any]) -> Iterator[None]:
    """Lock the folder of the translations for the block; create it if it is missing.

    `settings` are everything that determines a translation, as plain JSON values; those of a job
    that has not translated anything are replaced.

    Raises:
        BlockingIOError: Another command translates into the folder.
        FileExistsError: The folder has other content.
        ValueError: The folder has translations with other settings.
    """
    job = Path(folder)
    if job.exists() and not job.is_dir():
        raise FileExistsError(f"{job} is a file, not a folder; choose another --output")
    job.mkdir(parents=True, exist_ok=True)
    with locked(job / LOCK, f"another command is translating into {job}; wait until it ends"):
        _begin_job(job, dict(settings))
        yield


def _begin_job(folder: Path, settings: dict[str, Any]) -> None:
    job = folder / JOB
    known = {JOB, LOCK}
    names = [path.name for path in folder.iterdir() if path.name not in known]
    is_empty = all(TEMPORARY.fullmatch(name) for name in names)
    if not is_empty and not job.is_file():
        raise FileExistsError(
            f"{folder} is not empty and has no {JOB} of an earlier job; choose another --output"
        )
    if is_empty:
        write_text(job, json.dumps(settings, indent=2) + "\n")
    elif _settings(job) != settings:
        raise ValueError(
            f"{folder} has translations by another model or with other settings; choose another "
            "--output"
        )


def _settings(job: Path) -> Any:
    try:
        return parse_json(read_text(job))
    except ValueError as error:
        raise ValueError(
            f"{job} is damaged ({error}), so the model of the translations beside it is unknown; "
            "choose another --output"
        ) from None
