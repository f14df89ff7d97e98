"""The verbs `recipes`, `corpus` and `train`."""

import itertools
import json
from pathlib import Path
from typing import Any

import click

from tfformer.cli.options import AT_LEAST_1, NewFolder, RunFolder, examples, new_folder
from tfformer.cli.options import ray as ray_cluster
from tfformer.cli.terminal import load_tensorflow
from tfformer.storage.artifact_folders import check_free, run_folder


@click.command(epilog=examples("tfformer recipes"))
def recipes() -> None:
    """List the built-in recipes."""
    from tfformer.config import builtin_recipes

    for name, path in builtin_recipes().items():
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        print(f"{name:<20}{title}")


@click.command(epilog=examples("tfformer corpus phrasebook --output corpus"))
@click.argument("name", type=click.Choice(["phrasebook"]), metavar="phrasebook")
@new_folder("Folder for {train,valid,test}.{en,de}.")
def corpus(name: str, output: str) -> None:
    """Write the built-in parallel corpus as text files."""
    from tfformer.data import phrasebook

    phrasebook.write(Path(output))


class CommandWithSettings(click.Command):
    """A command whose `--set` takes several values: `--set a.b=1 c.d=2`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeated: list[str] = []
        is_setting = False
        for word in args:
            if word.startswith("-"):
                is_setting = word == "--set"
            elif is_setting and repeated[-1] != "--set":
                repeated.append("--set")
            repeated.append(word)
        return super().parse_args(ctx, repeated)


settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="SECTION.KEY=VALUE...",
    help="Change the recipe, for example training.epochs=30.",
)

TRAINING = "tfformer train recipe.yaml --run-dir runs/mine --set data.folder=corpus"


@click.command(
    cls=CommandWithSettings,
    epilog=examples(
        "tfformer train phrasebook --run-dir runs/phrasebook",
        f"{TRAINING} training.epochs=30",
        "tfformer train --run-dir runs/mine --resume",
        "tfformer train --init-from runs/opus --run-dir runs/tuned --set data.train=more.tsv "
        "data.valid=valid.tsv training.epochs=3",
    ),
)
@click.argument("recipe", required=False, metavar="[RECIPE]")
@click.option(
    "--run-dir",
    type=NewFolder(may_be_remote=True),
    required=True,
    metavar="DIR",
    help="The new run: an empty or missing folder, or an address such as s3://bucket/run.",
)
@settings
@click.option("--resume", is_flag=True, help="Continue the interrupted run in DIR by its recipe.")
@click.option(
    "--init-from",
    type=RunFolder(),
    metavar="RUN",
    help="Start from this run's vocabulary and weights; if the recipe has no section model, also "
    "use its model, and its languages unless the recipe names others.",
)
@ray_cluster("Train")
@click.option("--workers", type=AT_LEAST_1, metavar="N", help="Workers on Ray.  [default: 1]")
def train(
    recipe: str | None,
    run_dir: str,
    settings: tuple[str, ...],
    resume: bool,
    init_from: str | None,
    ray: str | None,
    workers: int | None,
) -> None:
    """Train on parallel or monolingual text, as a recipe specifies.

    RECIPE is a YAML file or the name of a built-in recipe. It is optional with --init-from and
    with --resume, where each of its sections replaces that of the run, and --set changes keys.
    """
    from tfformer.config import find_recipe, read_recipe

    if workers and not ray:
        raise ValueError("--workers needs --ray; see docs/workers.md for workers without Ray")
    if not (recipe or init_from or resume):
        raise click.UsageError("Missing argument 'RECIPE'", click.get_current_context())
    file = find_recipe(recipe) if recipe else None
    if resume:
        run_folder(run_dir)
    base = resumed = None
    if resume or init_from:
        load_tensorflow()
        from tfformer.run_directory import Run

        base = Run.open(init_from).config if init_from else None
        resumed = Run.open(run_dir).config if resume else None
    config = read_recipe(file, settings, base, resumed)
    if not resume and config.training.strategy != "multi_worker":  # whose worker 0 writes the run
        check_free(run_dir)
    if ray:  # the workers read the text on their machines
        load_tensorflow()
        from tfformer.training.on_ray import train_on_ray

        result = train_on_ray(ray, workers or 1, config, run_dir, resume, init_from)
    else:
        check_text(config.data.train, config.data.folder)
        check_text(config.data.valid, config.data.folder)
        load_tensorflow()
        from tfformer.training.train import train as train_here

        result = train_here(config, run_dir, resume, init_from)
    print(json.dumps(result))


def check_text(source: Any, folder: str) -> None:
    """Raise FileNotFoundError if a file of a recipe's text does not exist."""
    from tfformer.data.sources import check_exists, source_files

    if source:
        for path in itertools.chain.from_iterable(source_files(source, folder)):
            check_exists(path.absolute())
