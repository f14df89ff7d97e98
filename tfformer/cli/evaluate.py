"""The commands `evaluate` and `score`."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tfformer.cli.options import (
    TEXT_FILE,
    TEXT_SOURCE,
    beam_size,
    examples,
    languages,
    length_penalty,
    run,
)
from tfformer.cli.terminal import Progress, load_tensorflow

if TYPE_CHECKING:
    from tfformer.run_directory import Run

SCORE_HELP = """\b
Each line has three columns, separated by tabs:
  log-probability of the translation given its source, in nats
  number of tokens of the translation with the end token; 0 if the source is blank
  perplexity, exp of the mean negative log-probability per token; nan without tokens

A line of JSON about the whole text goes to standard error.
"""


@click.command(
    epilog=examples(["tfformer evaluate runs/mine --source test.en --reference test.de"])
)
@run
@click.option(
    "--source", type=TEXT_SOURCE, required=True, metavar="F", help="Text to translate or predict."
)
@click.option(
    "--reference",
    "references",
    type=TEXT_FILE,
    multiple=True,
    metavar="F",
    help="Its correct translation, line by line; may be repeated.",
)
@beam_size
@length_penalty
@languages()
def evaluate(
    run: str,
    source: str,
    references: tuple[str, ...],
    beam_size: int | None,
    length_penalty: float | None,
    languages: tuple[str | None, str | None],
) -> None:
    """Measure a run on a text: BLEU and chrF, or bits per byte.

    The last line is JSON. A translation model requires --reference; a language model does not
    accept it.
    """
    load_tensorflow()
    from tfformer.run_directory import Run

    opened = Run.open(run).with_languages(*languages)
    if opened.config.model.has_encoder:
        if not references:
            raise ValueError(f"{run} is a translation model and needs --reference FILE")
        measured = _evaluate_translation(opened, source, references, beam_size, length_penalty)
        line = "BLEU {bleu:.2f}, chrF {chrf:.2f} on {sentences} sentences"
    else:
        if references:
            raise ValueError(f"{run} is a language model and does not accept --reference")
        measured = _evaluate_language_model(opened, source)
        line = "{bits_per_byte:.4f} bits per byte on {sentences} sentences"
    print(line.format(**measured))
    print(json.dumps(measured))


def _evaluate_translation(
    run: Run,
    source: str,
    references: Sequence[str],
    beam_size: int | None,
    length_penalty: float | None,
) -> dict[str, Any]:
    from tfformer.data.sources import read_aligned
    from tfformer.inference.evaluation import bleu_tokenizer, check_bleu, scores
    from tfformer.inference.streaming import translate_stream
    from tfformer.inference.translator import Translator

    check_bleu(run.config)
    pairs = [list(read_aligned(source, reference)) for reference in references]
    sources = [text for text, _ in pairs[0]]
    texts = [[text for _, text in aligned] for aligned in pairs]
    translator = Translator.of(run)
    hypotheses = []
    start = time.monotonic()
    with Progress() as progress:
        for chunk in translate_stream(
            translator, sources, beam_size, length_penalty, progress.advance
        ):
            hypotheses += [best[0].text for best in chunk.n_best]
    seconds = round(time.monotonic() - start, 2)
    measured = scores(hypotheses, *texts, tokenize=bleu_tokenizer(run.config))
    return {**measured, "sentences": len(sources), "seconds": seconds}


def _evaluate_language_model(run: Run, source: str) -> dict[str, Any]:
    from tfformer.data.sources import read_sentences
    from tfformer.inference.generator import Generator

    stated = run.config.data.languages
    language = (stated[0],) if stated else None
    rows = read_sentences(source, languages=language, split="test")
    sentences = [sentence for (sentence,) in rows]
    bits = Generator.of(run).bits_per_byte(sentences)
    return {"bits_per_byte": bits, "sentences": len(sentences)}


@click.command(
    epilog=f"{SCORE_HELP}\n"
    + examples(
        [
            "tfformer score runs/mine --source test.en --target test.de",
            "",
            "# choose among the translations of another run, four for each line of news.en",
            "tfformer translate runs/one --input news.en --n-best 4 --output four.de",
            "sed 'p;p;p' news.en > four.en",
            "tfformer score runs/two --source four.en --target four.de | paste - four.de",
        ]
    )
)
@run
@click.option("--source", type=TEXT_FILE, required=True, metavar="F", help="A text.")
@click.option(
    "--target", type=TEXT_FILE, required=True, metavar="F", help="Its translation, line by line."
)
@languages()
def score(run: str, source: str, target: str, languages: tuple[str | None, str | None]) -> None:
    """Print the log-probability of given translations."""
    load_tensorflow()
    from tfformer.data.sources import read_aligned
    from tfformer.inference.streaming import score_stream
    from tfformer.inference.translator import Translator

    translator = Translator.load(run, *languages)
    pairs = 0
    tokens = 0
    log_prob = 0.0
    with Progress(sys.stdout) as progress:
        for score in score_stream(translator, read_aligned(source, target), progress.advance):
            count = len(score.tokens)
            print(f"{score.log_prob:.4f}\t{count}\t{score.perplexity:.4f}")
            pairs += 1
            tokens += count
            log_prob += score.log_prob
    measured = {
        "pairs": pairs,
        "tokens": tokens,
        "log_prob": round(log_prob, 4),
        "perplexity": math.exp(-log_prob / tokens) if tokens else None,
    }
    print(json.dumps(measured), file=sys.stderr)
