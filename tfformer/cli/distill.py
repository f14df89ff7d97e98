"""The `distill` command: a teacher translates a text, and a student trains on the pairs."""

import json
from pathlib import Path

import click

from tfformer.cli.options import AT_LEAST_1, NewFolder, beam_size, examples, ray
from tfformer.cli.terminal import load_tensorflow
from tfformer.cli.train import CommandWithSettings, check_text, settings
from tfformer.cli.translate import translate_parts
from tfformer.storage.artifact_folders import PAIRS, check_free, is_run
from tfformer.storage.whole_files import digest_of_values, file_digest


@click.command(
    cls=CommandWithSettings,
    epilog=examples(
        "tfformer distill runs/mine --text 'news*.en' --recipe student.yaml --run-dir runs/new",
        "tfformer distill ./llm.sh --text news.en --recipe student.yaml --run-dir runs/new",
    ),
)
@click.argument("teacher")
@click.option(
    "--text",
    required=True,
    metavar="PATTERN",
    help="Text files, such as 'news-*.en.gz', with one sentence per line. In a .tsv file a "
    "reference follows after a tab; the teacher's candidate closest to it is kept.",
)
@click.option(
    "--recipe",
    required=True,
    metavar="RECIPE",
    help="The student's recipe: a YAML file or a built-in recipe. The pairs are its data.train.",
)
@click.option(
    "--run-dir",
    type=NewFolder(),
    required=True,
    metavar="DIR",
    help=f"The student's run; DIR/{PAIRS} stores the pairs. The same command continues a run.",
)
@settings
@beam_size
@click.option(
    "--workers", type=AT_LEAST_1, metavar="N", help="Processes that translate.  [default: 1]"
)
@ray("Translate")
def distill(
    teacher: str,
    text: str,
    recipe: str,
    run_dir: str,
    settings: tuple[str, ...],
    beam_size: int | None,
    workers: int | None,
    ray: str | None,
) -> None:
    """Train a student on the translations of a teacher.

    TEACHER is a run directory, an export, the address of a server with LibreTranslate's API, or a
    program in quotes, such as './llm.sh', that writes one line for each line that it reads.
    """
    from tfformer.config import find_recipe, read_recipe

    config = read_recipe(find_recipe(recipe), settings)
    if not config.model.has_encoder:
        raise ValueError("model.architecture=decoder is a language model; a student translates")
    if not config.data.valid:
        raise ValueError("the recipe has no data.valid; set it to text with human translations")
    if config.data.tags:
        raise ValueError(
            f"data.tags={config.data.tags} needs a text with tags, and a teacher's pairs have "
            "none; leave out data.tags"
        )
    check_text(config.data.valid, config.data.folder)
    pairs = Path(run_dir).absolute() / PAIRS
    is_resumed = is_run(run_dir)
    if not is_resumed:
        check_free(run_dir)
    elif not pairs.is_dir():
        raise FileExistsError(f"{run_dir} already contains a run without pairs; choose another")
    from tfformer.corpora.parts import find_parts, first_sentences
    from tfformer.corpora.teachers import External, find_teacher

    model = find_teacher(teacher, beam_size, config.data.languages)
    parts = find_parts(text, pairs, makes_pairs=True)
    remaining = [part for part in parts if not part.is_done]
    if isinstance(model, External) and remaining and (trial := first_sentences(remaining[0])):
        model.translate(trial)
    digests = {part.source.name: file_digest(part.source) for part in parts}
    translate_parts(model, parts, workers or 1, ray, text=digest_of_values(digests))
    languages = config.data.languages or list(model.languages) or None
    data = config.data.replace(train=str(pairs / "*.tsv.gz"), languages=languages)
    load_tensorflow()
    from tfformer.training.train import train

    print(json.dumps(train(config.replace(data=data), run_dir, resume=is_resumed)))
