"""The commands `evaluate`, `compare` and `score`."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfformer.cli.options import TEXT_FILE, TEXT_SOURCE, examples, languages, run
from tfformer.cli.terminal import Progress, check_new_file, load_tensorflow
from tfformer.config.corpora import SELF_CONTAINED
from tfformer.storage.artifact_folders import exported_version, is_run
from tfformer.storage.whole_files import write_text

if TYPE_CHECKING:
    from tfformer.engines import Engine
    from tfformer.explain.comparison import Comparison
    from tfformer.run_directory import Run

SUFFIXES = (".html", ".json")  # of the file that `compare` writes
PRINTED = 5  # sentences that `compare` prints

SCORE_HELP = """\b
Each line has three columns, separated by tabs:
  log-probability of the translation given its source, in nats
  number of tokens of the translation with the end token; 0 if the source is blank
  perplexity, exp of the mean negative log-probability per token; nan without tokens

A line of JSON about the whole text goes to standard error.
"""


reference = click.option(
    "--reference",
    "references",
    type=TEXT_FILE,
    multiple=True,
    metavar="F",
    help="Its correct translation, line by line; may be repeated.",
)


@click.command(epilog=examples("tfformer evaluate runs/mine --source test.en --reference test.de"))
@run
@click.option(
    "--source", type=TEXT_SOURCE, required=True, metavar="F", help="Text to translate or predict."
)
@reference
@languages()
def evaluate(
    run: str,
    source: str,
    references: tuple[str, ...],
    languages: tuple[str | None, str | None],
) -> None:
    """Measure a run on a text: BLEU and chrF, or bits per byte.

    If sentences begin with tags, the scores by tag follow. The last line is JSON. A translation
    model requires --reference; a language model does not accept it.
    """
    load_tensorflow()
    from tfformer.run_directory import Run

    opened = Run.open(run).with_languages(*languages)
    if opened.config.model.has_encoder:
        if not references:
            raise ValueError(f"{run} is a translation model and needs --reference FILE")
        if source.startswith(SELF_CONTAINED):
            raise ValueError(
                f"--source {source} is for language models, and {run} is a translation model; pass "
                "a file with a line for each line of --reference"
            )
        measured = _evaluate_translation(opened, source, references)
        line = "BLEU {bleu:.2f}, chrF {chrf:.2f} on {sentences} sentences"
    else:
        if references:
            raise ValueError(f"{run} is a language model and does not accept --reference")
        measured = _evaluate_language_model(opened, source)
        line = "{bits_per_byte:.4f} bits per byte on {sentences} sentences"
    print(line.format(**measured))
    for tag, scores in measured.get("tags", {}).items():
        print(f"{tag}: {line.format(**scores)}")
    print(json.dumps(measured))


def _evaluate_translation(run: Run, source: str, references: Sequence[str]) -> dict[str, Any]:
    from tfformer.engines.keras import KerasEngine
    from tfformer.inference.evaluation import bleu_tokenizer, check_bleu, scores

    check_bleu(run.config)
    sources, texts = _aligned_texts(source, references)
    engine = KerasEngine(run)
    start = time.monotonic()
    hypotheses = _translations(engine, sources)
    seconds = round(time.monotonic() - start, 2)
    measured = scores(hypotheses, *texts, tokenize=bleu_tokenizer(run.config))
    by_tag = {}
    for tag in engine.tags:
        numbers = [n for n, text in enumerate(sources) if text.startswith(f"{tag} ")]
        if numbers:
            hypotheses_of, *texts_of = [[side[n] for n in numbers] for side in (hypotheses, *texts)]
            tokenize = bleu_tokenizer(run.config, language=tag.strip("<>"))
            scored = scores(hypotheses_of, *texts_of, tokenize=tokenize)
            by_tag[tag] = {**scored, "sentences": len(numbers)}
    tags = {"tags": by_tag} if by_tag else {}
    return {**measured, "sentences": len(sources), "seconds": seconds, **tags}


def _aligned_texts(source: str, files: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the lines of the source, and of each file that must have as many."""
    from tfformer.data.sources import read_aligned

    pairs = [list(read_aligned(source, file)) for file in files]
    return [text for text, _ in pairs[0]], [[text for _, text in aligned] for aligned in pairs]


def _translations(engine: Engine, sources: Sequence[str]) -> list[str]:
    with Progress() as progress:
        chunks = engine.stream(sources, engine.beam_size, progress.advance)
        return [best.text for n_best in chunks for best, *_ in n_best]


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
    epilog=examples(
        "tfformer compare runs/first runs/second --source test.en --reference test.de",
        "tfformer compare runs/mine other.out --source test.en --reference test.de "
        "--output page.html",
    )
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--source", type=TEXT_FILE, required=True, metavar="F", help="The source text.")
@reference
@click.option("--output", metavar="F", help="Also write a page (.html) or all figures (.json).")
def compare(a: str, b: str, source: str, references: tuple[str, ...], output: str | None) -> None:
    """Test whether A or B translates better, and show where they differ most.

    A and B are runs, exports, or text files with one translation per line. BLEU and chrF, the
    paired bootstrap and approximate randomisation are sacreBLEU's, with its seed (SACREBLEU_SEED).
    Sentences are ordered by the difference in chrF.
    """
    suffix = Path(output).suffix if output else None
    if suffix not in (None, *SUFFIXES):
        raise ValueError(f"--output {output} must end in one of {', '.join(SUFFIXES)}")
    check_new_file(output)
    if not references:
        raise ValueError("compare needs the correct translation; pass --reference FILE")
    if a == b:
        raise ValueError(f"A and B are both {a}; pass two different systems")
    files = [system for system in (a, b) if _is_text(system)]
    sources, texts = _aligned_texts(source, [*references, *files])
    translations = dict(zip(files, texts[len(references) :], strict=True))
    from tfformer.explain import comparison

    tokenize = None
    for model in (a, b):
        if model not in translations:
            translations[model], tokenizer = _translated(model, sources)
            tokenize = tokenize or tokenizer
    systems = {system: translations[system] for system in (a, b)}
    compared = comparison.compare(systems, sources, texts[: len(references)], tokenize or "13a")
    if output:
        content = compared.page() if suffix == ".html" else json.dumps(asdict(compared), indent=1)
        write_text(Path(output), content)
    print("\n".join(_comparison_lines(compared)))


def _is_text(system: str) -> bool:
    """Whether a system is a file; FileNotFoundError: nothing that could translate is there."""
    if Path(system).is_file():
        return True
    if is_run(system) or exported_version(system):
        return False
    raise FileNotFoundError(
        f"{system} is neither a run directory, an export nor a text file of translations; pass one "
        "of them"
    )


def _translated(model: str, sources: Sequence[str]) -> tuple[list[str], str]:
    """Return the translations of a run or an export, and the tokenizer of BLEU."""
    from tfformer.config import Config
    from tfformer.engines import find_artifact, open_engine
    from tfformer.inference.evaluation import bleu_tokenizer, check_bleu

    if is_run(model):
        load_tensorflow()
        from tfformer.engines.keras import KerasEngine
        from tfformer.run_directory import Run

        opened = Run.open(model)
        check_bleu(opened.config)
        return _translations(KerasEngine(opened), sources), bleu_tokenizer(opened.config)
    find_artifact(model)  # refuses an export that cannot translate text
    with open_engine(model) as engine:
        translations = _translations(engine, sources)
        data = {"languages": list(engine.languages)} if engine.languages else {}
        return translations, bleu_tokenizer(Config.from_dict({"data": data}))


def _comparison_lines(compared: Comparison) -> Iterator[str]:
    for letter, system in zip("AB", compared.systems, strict=True):
        yield f"{letter}  {system}"
    yield f"{compared.sentences:,} sentences, {compared.different:,} of them translated differently"
    yield ""
    yield "            A       B   B - A      95% interval  p: bootstrap  randomisation"
    for row in compared.metrics:
        first, second = row.scores
        interval = "{:+.2f} to {:+.2f}".format(*row.interval)
        yield (
            f"{row.metric:5}{first:8.2f}{second:8.2f}{row.difference:+8.2f}{interval:>18}"
            f"{row.bootstrap_p:14.4f}{row.randomisation_p:15.4f}"
        )
    yield ""
    for row in compared.metrics:
        verdict = f"{row.better} is better" if row.better else "no significant difference"
        yield f"{row.metric}: {verdict} ({row.signature})"
    for sentence in compared.most_different[:PRINTED]:
        yield ""
        yield "line {}, chrF {:.1f} and {:.1f}".format(sentence.line, *sentence.chrf)
        yield f"source     {sentence.source}"
        for text in sentence.references:
            yield f"reference  {text}"
        for letter, text in zip("AB", sentence.translations, strict=True):
            yield f"{letter}          {text}"


@click.command(
    epilog=f"{SCORE_HELP}\n"
    + examples(
        "tfformer score runs/mine --source test.en --target test.de",
        "",
        "# choose among the translations of another run, four for each line of news.en",
        "tfformer translate runs/one --input news.en --n-best 4 --output four.de",
        "sed 'p;p;p' news.en > four.en",
        "tfformer score runs/two --source four.en --target four.de | paste - four.de",
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
    from tfformer.inference.translator import Translator

    translator = Translator.load(run, *languages)
    pairs = 0
    tokens = 0
    log_prob = 0.0
    with Progress(sys.stdout) as progress:
        for score in translator.score_stream(read_aligned(source, target), progress.advance):
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
