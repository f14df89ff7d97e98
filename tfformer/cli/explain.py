"""The verbs `attention` and `inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from tfformer.cli.options import examples, run
from tfformer.cli.terminal import check_new_file, load_tensorflow


@click.command(
    epilog=examples(
        'tfformer attention runs/phrasebook "The animal is tired." --output look.html',
        'tfformer attention runs/phrasebook "The animal is tired." --kind cross --output cross.png',
        'tfformer attention runs/phrasebook "The animal is tired." --kind influence '
        "--word Das/Der/Die --output das.png",
    )
)
@run
@click.argument("sentence")
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross", "influence"]),
    default="encoder",
    help="encoder: source to source; decoder: translation to translation; cross: translation to "
    "source; influence: how much each word affects a choice.",
)
@click.option(
    "--word",
    metavar="WORD",
    help="Draw only the attention from this word; for influence, a word of the translation and its "
    "alternatives, as in es/er/sie.",
)
@click.option(
    "--output",
    required=True,
    metavar="F",
    help="A .png or .svg file, or an interactive .html page.",
)
def attention(run: str, sentence: str, kind: str, word: str | None, output: str) -> None:
    """Draw where the heads look while they translate a sentence.

    A .png or .svg has a heat map for each layer and head. Attention does not explain what a model
    writes; --kind influence shows how much the model needs each word for its choice.
    """
    if kind == "influence" and Path(output).suffix == ".html":
        raise ValueError(f"--output {output} must end in .png or .svg for --kind influence")
    if kind == "influence" and not word:
        raise ValueError(
            "--kind influence needs --word: a word of the translation and its alternatives, as in "
            "es/er/sie"
        )
    if Path(output).suffix not in (".png", ".svg", ".html"):
        raise ValueError(f"--output {output} must end in one of .png, .svg, .html")
    check_new_file(output)
    load_tensorflow()
    from tfformer.explain.attention_maps import attention as attention_of
    from tfformer.explain.influence import Decision, influences
    from tfformer.explain.pictures import draw_attention, draw_influences
    from tfformer.inference.translator import Translator
    from tfformer.run_directory import Run

    opened = Run.open(run)
    translator = Translator.of(opened)
    if kind == "influence":
        (translation,) = translator.translate([sentence])
        decision = Decision.of(sentence, translation, str(word))
        draw_influences(influences(translator, decision), output)
    else:
        maps = attention_of(translator, sentence)
        draw_attention(maps, output, kind, word, opened.languages)
    print(output)


@click.command(epilog=examples("tfformer inspect runs/mine"))
@run
def inspect(run: str) -> None:
    """Print the recipe, layers, scores and files of a run, which may still be training."""
    load_tensorflow()
    from tfformer.explain.inspection import describe
    from tfformer.run_directory import Run

    print(describe(Run.open(run)))
