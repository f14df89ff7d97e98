"""The words that decide a word of a translation.

They are those without which the model doubts it. A word is hidden from the model: the unknown token
takes the place of its pieces. Its influence is the fall of the log-odds of the decided word against
its alternatives, such as "es" against "er" and "sie", in nats. This is representation erasure, Li
et al. 2016 ("Understanding Neural Networks through Representation Erasure"), of a contrast, Yin and
Neubig 2022 ("Interpreting Language Models with Contrastive Explanations"). A head's attention says
where a part of the model looks; an influence says how much the whole model needs a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.data.encoding import EncodedSentences
from tfformer.explain.attention import word_spans
from tfformer.explain.figures import BLUE, GREY, INK, LINE_GREY, Style, empty_figure, save
from tfformer.inference.translator import Translator
from tfformer.special_ids import UNKNOWN_ID

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Decision(NamedTuple):
    """A word of a translation, and alternatives to it.

    Attributes:
        source: The sentence.
        target: Its translation.
        word: The word of the translation, counted from 0 between spaces.
        alternatives: The other words, at least one.
    """

    source: str
    target: str
    word: int
    alternatives: tuple[str, ...]

    @classmethod
    def of(cls, source: str, target: str, words: str) -> Decision:
        """Return the decision that words such as `es/er/sie` name: the word, then its alternatives.

        Raises:
            ValueError: The word is not in the translation, or there is no alternative.

        Example:
            >>> Decision.of("It sleeps.", "Es schläft.", "Es/Er/Sie")
            Decision(source='It sleeps.', target='Es schläft.', word=0, alternatives=('Er', 'Sie'))
        """
        word, *alternatives = words.split("/")
        written = target.split()
        if word not in written or not all(alternatives) or not alternatives:
            raise ValueError(
                f"word={words!r} must be a word of the translation {target!r} with alternatives, "
                "such as es/er/sie"
            )
        return cls(source, target, written.index(word), tuple(alternatives))

    def written(self, alternative: str) -> Decision:
        """Return the decision with an alternative in place of its word.

        Example:
            >>> Decision("It sleeps.", "Es schläft.", 0, ("Er", "Sie")).written("Er").target
            'Er schläft.'
        """
        words = self.target.split()
        words[self.word] = alternative
        return self._replace(target=" ".join(words))


class Hidden(NamedTuple):
    """Words hidden from the model, counted from 0; target words are before the decided word."""

    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()


class Influences(NamedTuple):
    """The influence of every word on a decision, in nats.

    Attributes:
        decided: The decided word.
        source_words: The S words of the source.
        source: Their influences (S,).
        target_words: The T words of the translation before the decided one.
        target: Their influences (T,).
    """

    decided: str
    source_words: tuple[str, ...]
    source: np.ndarray
    target_words: tuple[str, ...]
    target: np.ndarray


def influences(translator: Translator, decision: Decision) -> Influences:
    """Hide every word in turn and measure its influence on a decision.

    A negative influence means that the word spoke against the decision.
    """
    source_words = tuple(decision.source.split())
    target_words = tuple(decision.target.split())
    before = target_words[: decision.word]
    hidden = [Hidden()]
    hidden += [Hidden(source=(word,)) for word in range(len(source_words))]
    hidden += [Hidden(target=(word,)) for word in range(len(before))]
    seen, *unseen = log_odds(translator, [decision] * len(hidden), hidden)
    falls = seen - np.array(unseen)  # (S + T,)
    count = len(source_words)
    decided = target_words[decision.word]
    return Influences(decided, source_words, falls[:count], before, falls[count:])


def log_odds(
    translator: Translator, decisions: Sequence[Decision], hidden: Sequence[Hidden]
) -> np.ndarray:
    """Return log P(decided word) - log P(any alternative) without the hidden words, (N,) in nats.

    All decisions must have the same number of alternatives.
    """
    chosen = _log_probs(translator, decisions, hidden)
    alternatives = []
    for number in range(len(decisions[0].alternatives)):
        instead = [decision.written(decision.alternatives[number]) for decision in decisions]
        alternatives.append(_log_probs(translator, instead, hidden))
    return chosen - np.logaddexp.reduce(alternatives)


def _log_probs(
    translator: Translator, decisions: Sequence[Decision], hidden: Sequence[Hidden]
) -> np.ndarray:
    """Return log P(decided word), given all that is not hidden, (N,)."""
    sources = translator.encode([decision.source for decision in decisions])
    targets = translator.encode_targets([decision.target for decision in decisions])
    source_spans = [word_spans(translator.tokenizers.source.pieces(ids)) for ids in sources.ids]
    target_spans = [word_spans(translator.tokenizers.target.pieces(ids)) for ids in targets.ids]
    scores = translator.score(
        _without(sources, source_spans, [words.source for words in hidden]),
        _without(targets, target_spans, [words.target for words in hidden]),
    )
    decided = [
        spans[decision.word] for spans, decision in zip(target_spans, decisions, strict=True)
    ]
    log_probs = [score.log_probs[span] for score, span in zip(scores, decided, strict=True)]
    return np.array([pieces.sum() for pieces in log_probs])


def _without(
    sentences: EncodedSentences, spans: Sequence[list[slice]], words: Sequence[tuple[int, ...]]
) -> EncodedSentences:
    """Replace the pieces of some words of each sentence by the unknown token."""
    rows = [np.array(ids) for ids in sentences.ids]
    for row, spans_of_row, words_of_row in zip(rows, spans, words, strict=True):
        for word in words_of_row:
            row[spans_of_row[word]] = UNKNOWN_ID
    ids = [row.tolist() for row in rows]
    return EncodedSentences(ids, sentences.is_truncated, sentences.max_tokens)


# --- The picture --------------------------------------------------------------------------------

LINE = 0.42  # inches from word to word
COLUMN = 4.2  # inches for the words of a language and their bars
WORDS_END = 1.65  # inches from the left of a column, where the words end and the bars begin
LONGEST_BAR = 1.7  # inches
TEXT = 16  # points
WORTH_A_NUMBER = 0.05  # of the largest influence


def draw_influences(measured: Influences, path: str | Path) -> None:
    """Draw the words of both languages with a bar for each word's influence."""
    columns = {
        "Sentence": (measured.source_words, measured.source),
        "Translation before this word": (measured.target_words, measured.target),
    }
    lines = max(len(words) for words, _ in columns.values())
    height = (lines + 4) * LINE
    figure = empty_figure((2 * COLUMN + 0.4, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, 2 * COLUMN + 0.4), ylim=(height - 2.9 * LINE, -2.9 * LINE))
    decided = measured.decided.strip(".,!?")
    title = f"How much each word contributes to “{decided}”"
    ax.text(0.3, -2.1 * LINE, title, fontsize=TEXT + 6, fontweight="bold", color=INK, va="center")
    unit = "Drop in its log-odds, in nats, when the word is hidden from the model"
    ax.text(0.3, -1.25 * LINE, unit, fontsize=TEXT - 3, color=GREY, va="center")
    largest = max([0.0, *measured.source.tolist(), *measured.target.tolist()]) or 1.0
    for number, (heading, (words, values)) in enumerate(columns.items()):
        left = number * COLUMN
        ax.text(left + 0.3, -0.1 * LINE, heading, fontsize=TEXT - 4, color=GREY, va="center")
        ax.plot([left + 0.3, left + COLUMN - 0.2], [0.35 * LINE] * 2, color=LINE_GREY)
        for line, (word, value) in enumerate(zip(words, values, strict=True), start=1):
            _draw_word(ax, word, float(value) / largest, float(value), left, line * LINE)
    save(figure, Path(path))


def _draw_word(ax: Axes, word: str, share: float, value: float, left: float, y: float) -> None:
    """Draw a word and its bar, `share` of the longest one."""
    is_large = share >= WORTH_A_NUMBER
    weight = "bold" if share > 0.5 else "normal"
    style: Style = {"fontsize": TEXT, "va": "center", "fontweight": weight, "parse_math": False}
    bars = left + WORDS_END
    ax.text(bars, y, word, ha="right", color=INK if is_large else GREY, **style)
    ax.barh(y, max(share, 0) * LONGEST_BAR, height=0.5 * LINE, left=bars + 0.15, color=BLUE)
    if is_large:
        end = bars + 0.25 + share * LONGEST_BAR
        ax.text(end, y, f"{value:.1f}", fontsize=TEXT - 4, va="center", color=INK)
