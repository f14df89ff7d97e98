"""Compare two systems that translated the same text.

Scores and tests are sacreBLEU's: paired bootstrap (Koehn 2004) and approximate randomisation
(Riezler and Maxwell 2005), with the seed in the environment variable SACREBLEU_SEED or 12345.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import sacrebleu
from sacrebleu import significance

from tfformer.html_page import fill_page
from tfformer.inference.evaluation import bleu_metric

LEVEL = 0.05  # a smaller p-value in both tests is a significant difference
FEW = 100  # sentences, below which no difference is called significant
LISTED = 50  # sentences that differ most
TEMPLATE = Path(__file__).with_name("comparison.html")
# A word, a space, a punctuation mark, or a character of a script without spaces between words.
WORDS = re.compile(r"[^\W\u0e00-\u0eff\u3040-\u9fff]+|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class MetricComparison:
    """The scores of A and B in one metric, and two tests of their difference."""

    metric: str  # "BLEU" or "chrF2"
    signature: str  # sacreBLEU's
    scores: tuple[float, float]
    difference: float  # B - A
    interval: tuple[float, float]  # 95% of the differences in the bootstrap's resamples
    bootstrap_p: float
    randomisation_p: float
    better: str | None  # "A" or "B" if the difference is significant


@dataclass(frozen=True)
class SentenceComparison:
    """Two different translations of one sentence."""

    line: int  # counted from 1
    source: str
    references: tuple[str, ...]
    translations: tuple[str, str]
    chrf: tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """Two systems, A and B, compared on one text."""

    systems: tuple[str, ...]  # the names of A and B
    sentences: int
    different: int  # sentences that A and B translate differently
    metrics: tuple[MetricComparison, ...]
    most_different: tuple[SentenceComparison, ...]  # in chrF; at most 50

    def page(self) -> str:
        """Return an HTML page that shows the comparison and loads nothing from elsewhere."""
        pairs = [sentence.translations for sentence in self.most_different]
        marks = [(marked(first, second), marked(second, first)) for first, second in pairs]
        return fill_page(TEMPLATE, {**dataclasses.asdict(self), "marks": marks})


def compare(
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: str = "13a",
) -> Comparison:
    """Compare two systems in BLEU and chrF, with sacreBLEU's paired tests.

    Args:
        systems: The names of two systems, A and B, each with its N translations.
        sources: N source sentences.
        references: One or more lists of N references.
        tokenize: SacreBLEU's tokenizer, see `bleu_tokenizer`.

    Returns:
        The comparison. The p-values equal those of the command `sacrebleu` with `--paired-bs` and
        `--paired-ar`. Fewer than 100 sentences cause a warning.

    Raises:
        ValueError: All translations of the two systems are equal.
    """
    first, second = systems.values()
    pairs = list(zip(first, second, strict=True))
    different = sum(a != b for a, b in pairs)
    if not different:
        raise ValueError(
            f"{' and '.join(systems)} give the same {len(pairs)} translations, but a test needs a "
            "difference; measure one of them with tfformer evaluate"
        )
    if len(pairs) < FEW:
        warnings.warn(
            f"{len(pairs)} sentences are too few to rely on the p-values; use at least {FEW}",
            stacklevel=2,
        )
    return Comparison(
        systems=tuple(systems),
        sentences=len(pairs),
        different=different,
        metrics=tuple(_compared_metrics(systems, references, tokenize)),
        most_different=_most_different(pairs, sources, references),
    )


def marked(text: str, counterpart: str) -> list[tuple[str, bool]]:
    """Split a text into spans, each with whether it is missing from the other text.

    Example:
        >>> marked("The old dog sleeps.", "The dog slept.")
        [('The ', False), ('old ', True), ('dog ', False), ('sleeps', True), ('.', False)]
    """
    words = WORDS.findall(text)
    matcher = SequenceMatcher(str.isspace, words, WORDS.findall(counterpart), autojunk=False)
    return [
        ("".join(words[start:end]), operation != "equal")
        for operation, start, end, *_ in matcher.get_opcodes()
        if start < end
    ]


def _compared_metrics(
    systems: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], tokenize: str
) -> Iterator[MetricComparison]:
    metrics = {"BLEU": bleu_metric(tokenize), "chrF2": sacrebleu.CHRF()}
    named = list(systems.items())
    tests: list[Any] = [
        significance.PairedTest(named, metrics, references, test)() for test in ("bs", "ar")
    ]
    (signatures, bootstrap), (_, randomisation) = tests
    for name, metric in metrics.items():
        first, second = bootstrap[name]
        p_values = second.p_value, randomisation[name][1].p_value
        differs = first.score != second.score  # else sacreBLEU's p-values are the lowest ones
        is_significant = differs and max(p_values) < LEVEL and len(references[0]) >= FEW
        winner = "B" if second.score > first.score else "A"
        yield MetricComparison(
            metric=name,
            signature=str(signatures[name]),
            scores=(first.score, second.score),
            difference=second.score - first.score,
            interval=_interval(metric, systems.values(), references),
            bootstrap_p=p_values[0],
            randomisation_p=p_values[1],
            better=winner if is_significant else None,
        )


def _interval(
    metric: Any, systems: Iterable[Sequence[str]], references: Sequence[Sequence[str]]
) -> tuple[float, float]:
    """Return sacreBLEU's 95% confidence interval for B - A, from the resamples of its test.

    Its bootstrap gets one row of statistics per sentence, those of A before those of B, and a
    metric that subtracts the scores.
    """

    def difference(row: np.ndarray) -> float:
        first, second = map(metric._compute_score_from_stats, np.split(row, 2))
        return second.score - first.score

    rows = np.hstack([metric._extract_corpus_statistics(texts, references) for texts in systems])
    subtraction: Any = SimpleNamespace(_compute_score_from_stats=difference)
    _, differences = significance._bootstrap_resample(rows.tolist(), subtraction)
    mean, half_width = significance.estimate_ci(np.array(differences))
    return float(mean - half_width), float(mean + half_width)


def _most_different(
    pairs: Sequence[tuple[str, str]], sources: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[SentenceComparison, ...]:
    chrf = sacrebleu.CHRF()
    rows = []
    for number, (source, translations) in enumerate(zip(sources, pairs, strict=True)):
        if translations[0] == translations[1]:
            continue
        correct = tuple(texts[number] for texts in references)
        first, second = (chrf.sentence_score(text, correct).score for text in translations)
        rows.append(SentenceComparison(number + 1, source, correct, translations, (first, second)))
    rows.sort(key=lambda sentence: abs(sentence.chrf[1] - sentence.chrf[0]), reverse=True)
    return tuple(rows[:LISTED])
