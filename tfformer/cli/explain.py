"""The verbs `attention` and `inspect`."""

from pathlib import Path

import click

from tfformer.cli.options import NewFolder, examples, run
from tfformer.cli.terminal import check_new_file, load_tensorflow


@click.command(
    epilog=examples(
        [
            'tfformer attention runs/phrasebook "The animal is tired." --output look.html',
            'tfformer attention runs/phrasebook "The animal is tired." --kind cross --word Tier '
            "--output tier.png",
        ]
    )
)
@run
@click.argument("sentence")
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross"]),
    default="encoder",
    help="Source to source, translation to translation, or translation to source.",
)
@click.option("--word", metavar="WORD", help="Draw where this word looks in the last layer.")
@click.option(
    "--output", required=True, metavar="F", help="A .png or .svg file, or .html, a page to explore."
)
def attention(run: str, sentence: str, kind: str, word: str | None, output: str) -> None:
    """Draw where the heads look while they translate a sentence.

    Without --word, a picture has a heat map for each layer and head.
    """
    if Path(output).suffix not in (".png", ".svg", ".html"):
        raise ValueError(f"--output {output} must end in one of .png, .svg, .html")
    check_new_file(output)
    load_tensorflow()
    from tfformer.explain.attention import attention as attention_of
    from tfformer.explain.attention_pictures import draw
    from tfformer.inference.translator import Translator
    from tfformer.run_directory import Run

    opened = Run.open(run)
    maps = attention_of(Translator.of(opened), sentence)
    draw(maps, output, kind=kind, word=word, languages=opened.languages)
    print(output)


@click.command(epilog=examples(["tfformer inspect runs/mine --output pictures"]))
@run
@click.option("--output", type=NewFolder(), metavar="DIR", help="Folder for pictures to draw.")
def inspect(run: str, output: str | None) -> None:
    """Print the recipe, layers and files of a run; draw its training.

    The run may still be training. The pictures show training, positions and masks.
    """
    load_tensorflow()
    from tfformer.explain.inspection import describe
    from tfformer.run_directory import Run

    opened = Run.open(run)
    print(describe(opened))
    if output:
        from tfformer.explain import run_pictures

        for path in run_pictures.draw(opened, output):
            print(path)
