"""Which attention head resolves "it"? A measure for every head, on sentences with a known answer.

"The animal didn't cross the street because it was too wide." has two nouns that "it" could stand
for, and German shows which one is meant: "weil *sie* zu breit war". A head resolves the pronoun if
it looks from the pronoun more at the right noun phrase than at the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.explain.attention import AttentionMaps, each_attention
from tfformer.inference.translator import Translator

if TYPE_CHECKING:
    from tfformer.phrasebook import Pair

KINDS = ("encoder", "decoder", "cross")


class Mention(NamedTuple):
    """A pronoun and the two noun phrases it could stand for, as words of one attention map.

    Attributes:
        row: The word that looks: the pronoun.
        antecedent: The words of the noun phrase that the pronoun stands for.
        distractor: The words of the other noun phrase.
    """

    row: int
    antecedent: tuple[int, ...]
    distractor: tuple[int, ...]


class HeadScore(NamedTuple):
    """How one head treats a pronoun, over many sentences with a right and a wrong noun phrase.

    A head that always looks at the first noun phrase has an accuracy of 1 where that is the right
    one and of 0 where it is not. Only the mean of the two tells that it resolves nothing.

    Attributes:
        kind: "encoder": from "it" to English words; "decoder": from the German pronoun, once it is
            written, to the German words before it; "cross": from the position that writes the
            German pronoun to English words.
        layer: The layer, from 1.
        head: The head, from 1.
        antecedent: Mean weight on the right noun phrase, its words summed.
        distractor: Mean weight on the other one.
        accuracy: Share of the sentences in which the right one gets more.
        first: The accuracy where the right one comes first; nan if it never does.
        second: The accuracy where it comes second; nan if it never does.
    """

    kind: str
    layer: int
    head: int
    antecedent: float
    distractor: float
    accuracy: float
    first: float
    second: float

    @property
    def balanced(self) -> float:
        """The mean of `first` and `second`: 0.5 for a head that only knows the order."""
        return float(np.nanmean([self.first, self.second]))

    @property
    def resolution(self) -> float:
        """The weight on the right noun phrase, times how far the accuracy is above chance."""
        return self.antecedent * (2 * self.balanced - 1)


def mention(pair: Pair, kind: str) -> Mention:
    """Return a pair's pronoun and noun phrases, as words of a map of this kind.

    Args:
        pair: A coreference pair of the phrasebook.
        kind: "encoder", "decoder" or "cross".

    Returns:
        The words to look from and at. A map of the decoder starts with the start token.

    Raises:
        ValueError: The pair has no pronoun.
    """
    if pair.pronoun is None:
        raise ValueError(f"{pair.source!r} has no pronoun; give a pair of the family coreference")
    it, pronoun = pair.pronoun
    if kind == "encoder":
        return Mention(it, pair.antecedent, pair.distractor)
    if kind == "cross":
        return Mention(pronoun, pair.antecedent, pair.distractor)
    after_start = [
        tuple(word + 1 for word in pair.in_target(phrase))
        for phrase in (pair.antecedent, pair.distractor)
    ]
    return Mention(pronoun + 1, *after_start)


def find_coreference_head(translator: Translator, pairs: Sequence[Pair]) -> list[HeadScore]:
    """Measure every head on the coreference sentences among `pairs`, the best one first.

    The decoder reads the reference, so that the place of its pronoun is known. The best of many
    heads looks better than it is on the sentences that chose it: find the head on "valid" and
    report it on "test".

    Args:
        translator: A run of the phrasebook.
        pairs: Pairs of the phrasebook; those without a pronoun are left out.

    Returns:
        A score for each head of each kind, by falling `HeadScore.resolution`.

    Raises:
        ValueError: No pair has a pronoun.
    """
    pairs = [pair for pair in pairs if pair.pronoun is not None]
    if not pairs:
        raise ValueError(
            "none of the pairs is a coreference sentence; give phrasebook.pairs('test') or ('valid')"
        )
    maps: dict[str, list[AttentionMaps]] = {kind: [] for kind in KINDS}
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    for attention in each_attention(translator, sources, targets):
        for kind in KINDS:
            maps[kind].append(getattr(attention, kind).words())
    scores = [
        score
        for kind in KINDS
        for score in head_scores(maps[kind], [mention(pair, kind) for pair in pairs])
    ]
    return sorted(scores, key=lambda score: -score.resolution)


def head_scores(maps: Sequence[AttentionMaps], mentions: Sequence[Mention]) -> list[HeadScore]:
    """Score each head of one kind.

    Args:
        maps: A map from word to word for each sentence, all of one kind.
        mentions: The pronoun and the noun phrases of each sentence.

    Returns:
        The scores, layer by layer and head by head.
    """
    both = list(zip(maps, mentions, strict=True))
    antecedent = np.stack([_weight(one, m.row, m.antecedent) for one, m in both])  # (N, L, H)
    distractor = np.stack([_weight(one, m.row, m.distractor) for one, m in both])  # (N, L, H)
    right = antecedent > distractor
    comes_first = np.array([m.antecedent < m.distractor for m in mentions])
    groups = (antecedent, distractor, right, right[comes_first], right[~comes_first])
    means = np.stack([_mean_over_sentences(group) for group in groups], axis=-1)  # (L, H, 5)
    return [
        HeadScore(maps[0].kind, layer + 1, head + 1, *means[layer, head].tolist())
        for layer, head in np.ndindex(right.shape[1:])
    ]


def _weight(maps: AttentionMaps, row: int, words: tuple[int, ...]) -> np.ndarray:
    """What each head gives, from one row, to all words of a noun phrase: (L, H)."""
    return maps.weights[:, :, row, list(words)].sum(axis=-1)


def _mean_over_sentences(values: np.ndarray) -> np.ndarray:
    """(N, L, H) -> (L, H); nan where there are no sentences."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)


def pronoun_of(german: str) -> str:
    """Return the word behind the conjunction, the pronoun of a coreference sentence.

    Example:
        >>> pronoun_of("Das Tier überquerte die Straße nicht, weil sie zu breit war.")
        'sie'
    """
    return " ".join(german.rpartition(", ")[2].split()[1:2])


def print_head_scores(scores: Sequence[HeadScore]) -> None:
    """Print the scores as a table, in the order in which they are given."""
    print("kind     layer  head  antecedent  distractor  accuracy  if first  if second  balanced")
    for score in scores:
        weights = f"{score.antecedent:>12.3f}{score.distractor:>12.3f}"
        accuracies = f"{score.accuracy:>10.1%}{score.first:>10.1%}{score.second:>11.1%}"
        place = f"{score.kind:<9}{score.layer:>5}{score.head:>6}"
        print(f"{place}{weights}{accuracies}{score.balanced:>10.1%}")
