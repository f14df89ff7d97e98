"""The options and the types of values that several verbs share.

Values are checked while the command line is read, before TensorFlow is loaded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tfformer.storage.artifact_folders import run_folder
from tfformer.storage.folders import ADDRESS, local_path

F = TypeVar("F", bound=Callable[..., Any])

AT_LEAST_1 = click.IntRange(min=1)
TEXT_FILE = click.Path(exists=True, dir_okay=False)


class TextSource(click.Path):
    """A text file, or a named text such as `tfds:NAME@SPLIT` or `phrasebook:SPLIT`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a name unchecked, or the path of an existing file."""
        if str(value).startswith(("tfds:", "phrasebook:")):
            return value
        return super().convert(value, param, ctx)


TEXT_SOURCE = TextSource(exists=True, dir_okay=False)


class RunFolder(click.ParamType[str]):
    """A run directory, or its address in an object store."""

    name = "run"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        run_folder(value)
        return value


class NewFolder(click.ParamType[str]):
    """A folder to write into, created if it is missing.

    Args:
        may_be_remote: Whether an address in an object store is allowed.
    """

    name = "folder"

    def __init__(self, may_be_remote: bool = False) -> None:
        self.may_be_remote = may_be_remote

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self.may_be_remote and ADDRESS.fullmatch(value):
            return value
        try:
            local_path(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        for folder in (Path(value), *Path(value).parents):
            if folder.exists() and not folder.is_dir():
                self.fail(f"{folder} is a file, not a folder; choose another folder", param, ctx)
        return value


class LanguagePair(click.ParamType[tuple[str, str]]):
    """A source and a target language, such as en,de."""

    name = "languages"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return the two languages in "SOURCE,TARGET"; a default is already a pair."""
        pair = value.split(",") if isinstance(value, str) else value
        if len(pair) != 2 or "" in pair:
            self.fail(f"{value} is not a source and a target such as en,de", param, ctx)
        return tuple(pair)


def examples(*lines: str) -> str:
    """Return the end of a help page: example commands, printed verbatim."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def new_folder(help: str) -> Callable[[F], F]:
    """Return the required option `--output` of a verb that writes a folder."""
    return click.option("--output", type=NewFolder(), required=True, metavar="DIR", help=help)


def ray(task: str) -> Callable[[F], F]:
    """Return the option `--ray` of a verb; `task` is what the cluster does."""
    return click.option(
        "--ray",
        is_flag=False,
        flag_value="auto",
        metavar="[HOST:PORT]",
        help=f"{task} on the Ray cluster at this address; without an address, at RAY_ADDRESS or on "
        "this machine. local starts a cluster on this machine.",
    )


run = click.argument("run", type=RunFolder(), metavar="RUN")

beam_size = click.option(
    "--beam-size",
    type=AT_LEAST_1,
    metavar="N",
    help="Number of beams; 1 means greedy search. Default: the run's.",
)

length_penalty = click.option(
    "--length-penalty",
    type=click.FloatRange(min=0),
    metavar="ALPHA",
    help="Alpha of Wu et al. 2016; 0 turns it off. Default: the run's.",
)


def languages(rule: str = "Default: the run's.") -> Callable[[F], F]:
    """Return the option `--languages`; `rule` states the default."""
    return click.option(
        "--languages",
        type=LanguagePair(),
        default=(None, None),
        show_default=False,
        metavar="SOURCE,TARGET",
        help=f"Languages of a multilingual model, such as en,de. {rule}",
    )
