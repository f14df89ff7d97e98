"""The verbs `attention` and `inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfformer.cli.options import NewFolder, examples, run
from tfformer.cli.terminal import check_new_file, load_tensorflow

if TYPE_CHECKING:
    from tfformer.inference.translator import Translator


@click.command(
    epilog=examples(
        [
            'tfformer attention runs/phrasebook "The animal is tired." --output look.html',
            'tfformer attention runs/phrasebook "The animal is tired." --kind cross --word Tier '
            "--output tier.png",
            'tfformer attention runs/phrasebook "The animal is tired." --kind influence '
            "--word Das/Der/Die --output das.png",
        ]
    )
)
@run
@click.argument("sentence")
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross", "influence"]),
    default="encoder",
    help="Source to source, translation to translation, translation to source; or the influence "
    "of each word on a choice.",
)
@click.option(
    "--word",
    metavar="WORD",
    help="Draw where this word looks in the last layer; for influence, a word of the translation "
    "and its alternatives, as in es/er/sie.",
)
@click.option(
    "--output", required=True, metavar="F", help="A .png or .svg file, or .html, a page to explore."
)
def attention(run: str, sentence: str, kind: str, word: str | None, output: str) -> None:
    """Draw where the heads look while they translate a sentence.

    Without --word, a picture has a heat map for each layer and head. Attention is no reason for
    what a model writes; --kind influence draws how much the model needs each word for its choice.
    """
    if kind == "influence" and Path(output).suffix == ".html":
        raise ValueError(f"--output {output} must end in .png or .svg for --kind influence")
    if Path(output).suffix not in (".png", ".svg", ".html"):
        raise ValueError(f"--output {output} must end in one of .png, .svg, .html")
    check_new_file(output)
    load_tensorflow()
    from tfformer.explain.attention import attention as attention_of
    from tfformer.explain.attention_pictures import draw
    from tfformer.inference.translator import Translator
    from tfformer.run_directory import Run

    opened = Run.open(run)
    translator = Translator.of(opened)
    if kind == "influence":
        _draw_influences(translator, sentence, word, output)
    else:
        maps = attention_of(translator, sentence)
        draw(maps, output, kind=kind, word=word, languages=opened.languages)
    print(output)


def _draw_influences(translator: Translator, sentence: str, words: str | None, output: str) -> None:
    from tfformer.explain.influence import Decision, draw_influences, influences

    (translation,) = translator.translate([sentence])
    decision = Decision.of(sentence, translation, words or "")
    draw_influences(influences(translator, decision), output)


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
