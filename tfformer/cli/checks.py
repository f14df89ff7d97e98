"""Checks of paths and options.

They come before TensorFlow is loaded, so that a mistake is answered at once.
"""

from __future__ import annotations

import argparse
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfformer.storage.folders import ADDRESS
from tfformer.storage.run_folders import MANIFEST, is_run, run_folder

if TYPE_CHECKING:
    from tfformer.config import Config

LANGUAGES = ("source_language", "target_language")
LITERT_OPTIONS = (
    "max_length",
    "beam_size",
    "length_penalty",
    "quantize",
    "static",
    "with_text",
    "samples",
    *LANGUAGES,
)
# The options of `tfformer export` that each format takes, as its function in export/formats.py.
EXPORT_OPTIONS = {
    "saved_model": (
        "max_length",
        "beam_size",
        "length_penalty",
        "dtype",
        "for_other_processors",
        "with_text",
        "samples",
        *LANGUAGES,
    ),
    "ctranslate2": ("max_length", "beam_size", "samples", *LANGUAGES),
    "litert": LITERT_OPTIONS,
    "web": ("max_length", "quantize", "samples", *LANGUAGES),
    "hugging_face": (),
    "marian": (),
}


def check_words(words: Sequence[str]) -> None:
    """Raise ValueError for a word that is no UTF-8, or holds a NUL.

    TensorFlow and HDF5 can open no file of such a name, and a run could not write it down.
    """
    for word in words:
        shown = reprlib.repr(word)
        if "\0" in word:
            raise ValueError(f"the argument {shown} holds a NUL character; leave it out")
        if not _is_unicode(word):
            raise ValueError(f"the argument {shown} is not UTF-8; rename a file that is called so")


def check_run(path: str) -> None:
    """Raise FileNotFoundError if there is no run directory at `path`."""
    run_folder(path)


def check_run_or_export(place: str) -> None:
    """Raise FileNotFoundError if there is no folder at `place`.

    `place` may be NAME=PATH.
    """
    path = Path(place) if Path(place).exists() else Path(place.partition("=")[2] or place)
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path} is neither a run directory nor a SavedModel or LiteRT export; give one of them"
        )


def check_text_files(*paths: str | None) -> None:
    """Raise FileNotFoundError for the first path that is no file; None is left out."""
    for path in paths:
        if path is None or path.startswith("tfds:"):
            continue
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path} is a folder, not a text file; give a file in it")
        if not Path(path).exists():
            raise FileNotFoundError(
                f"{path}: there is no such file; correct the path or fetch the data first"
            )


def check_new_file(path: str | None, overwrite: bool) -> None:
    """Raise FileExistsError if `path` exists and must not be replaced.

    None is standard output.
    """
    if path is None:
        return
    if Path(path).is_dir():
        raise FileExistsError(f"{path} exists already and is a folder; choose another --output")
    if Path(path).exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already; choose another --output, or replace it with --overwrite"
        )
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent}; make it first")


def check_local(path: str) -> None:
    """Raise ValueError if `path` is an address, which `train` alone writes to."""
    if ADDRESS.fullmatch(path):
        raise ValueError(f"{path} is no folder of this machine; write into one, and copy it")


def check_no_file(path: str, option: str) -> None:
    """Raise FileExistsError if `path`, or a folder above it, is a file.

    Args:
        path: The folder that a verb is to write.
        option: The option that names it, for the message.
    """
    for place in (Path(path), *Path(path).parents):
        if place.exists() and not place.is_dir():
            raise FileExistsError(f"{place} is a file, not a folder; choose another {option}")


def check_folder(path: str | None) -> None:
    """Check the folder that a verb is to write into, if it is given one.

    Raises:
        FileExistsError: It is a file, or below one.
        ValueError: It is an address.
    """
    if path is None:
        return
    check_local(path)
    check_no_file(path, "--output")


def check_training_texts(config: Config) -> None:
    """Raise FileNotFoundError if a text of a recipe is not there."""
    from tfformer.data.sources import source_files

    for source in (config.data.train, config.data.valid):
        parts = source_files(source, config.data.folder) if source else []
        check_text_files(*(str(file) for part in parts for file in part))


def check_export_folder(path: str) -> None:
    """Raise FileExistsError if `path` cannot hold the versions of an export."""
    check_folder(path)
    if is_run(path):
        raise FileExistsError(f"{path} is a run directory; choose another --output")
    if (Path(path) / MANIFEST).is_file():
        raise FileExistsError(
            f"{path} is an exported version; give the folder above it as --output"
        )


def check_seed(seed: int, count: int) -> None:
    """Raise ValueError if the seeds of `count` texts do not fit into 31 bits."""
    from tfformer.config import LARGEST_SEED

    highest = LARGEST_SEED - count
    if not 0 <= seed <= highest:
        raise ValueError(f"--seed {seed} must be from 0 to {highest}")


def check_export_options(export_format: str, given: Mapping[str, object]) -> None:
    """Raise ValueError if the format has no choice of an option that was given.

    The message has the options as the command line spells them; `given` has the arguments of
    Python with their values.
    """
    known = EXPORT_OPTIONS[export_format]
    unknown = sorted(_spelled(name, value) for name, value in given.items() if name not in known)
    if unknown:
        raise ValueError(
            f"--format {export_format} has no choice of {', '.join(unknown)}; leave it out"
        )


def checked_format(options: argparse.Namespace, is_typed: bool) -> str:
    """The format that `translate` reads: lines, or a text where somebody types.

    Raises:
        ValueError: An option of lines is given with a whole text, or one of texts with lines.
    """
    of_lines = {
        "--n-best": options.n_best > 1,
        "--scores": options.scores,
        "--alignments": options.alignments,
    }
    given = [name for name, is_given in of_lines.items() if is_given]
    is_text = options.keep or (is_typed and not given)
    format = options.format or ("text" if is_text else "lines")
    if format != "lines" and given:
        raise ValueError(f"{given[0]} goes with one sentence a line; set --format lines")
    if format == "lines" and options.keep:
        raise ValueError("--keep goes with whole texts; set --format text")
    return format


def check_corpus_options(options: argparse.Namespace) -> None:
    """Raise ValueError unless the options of `translate` are those of a corpus."""
    if options.input is None or options.output is None:
        raise ValueError(
            "--workers, --ray and --engine translate files: give --input PATTERN --output DIR"
        )
    others = {
        "--n-best": options.n_best > 1,
        "--scores": options.scores,
        "--alignments": options.alignments,
        "--keep": options.keep is not None,
        "--format": options.format not in (None, "lines"),
        "--length-penalty": options.length_penalty is not None,
        "--overwrite": options.overwrite,
    }
    for name, is_given in others.items():
        if is_given:
            raise ValueError(f"{name} is not for --workers, --ray and --engine; leave it out")
    if options.source_language or options.target_language:
        raise ValueError(
            "--workers, --ray and --engine translate between the languages of a run or an export; "
            "export the run with --source-language and --target-language, and give the export"
        )


def _is_unicode(word: str) -> bool:
    """Whether a word is whole Unicode.

    The bytes of one that is no UTF-8 come as half surrogate pairs.
    """
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _spelled(name: str, value: object) -> str:
    if name == "with_text":
        return "--text" if value else "--no-text"
    return f"--{name.replace('_', '-')}"
