"""How does a model know the noun that "it" stands for?

"The animal didn't cross the street because it was too wide." has two nouns that "it" could stand
for, and German shows which one is meant: "weil *sie* zu breit war". Two measures, on sentences with
a known answer: the influence of either noun phrase on the pronoun, and for every attention head
whether it looks from the pronoun more at the right noun phrase than at the other one. Every model
that has learned the pronouns shows the first. The second need not show: a model may have no single
head for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.explain.attention import Attention, AttentionMaps, each_attention
from tfformer.explain.influence import (
    Decision,
    Hidden,
    draw_influences,
    influences,
    log_odds,
)
from tfformer.inference.translator import Translator

if TYPE_CHECKING:
    from tfformer.data.phrasebook import Pair

KINDS = ("encoder", "decoder", "cross")
PRONOUNS = ("er", "sie", "es")


class Mention(NamedTuple):
    """A pronoun and the two noun phrases it could stand for.

    They are words of one attention map.

    Attributes:
        row: The word that looks: the pronoun.
        antecedent: The words of the noun phrase that the pronoun stands for.
        distractor: The words of the other noun phrase.
    """

    row: int
    antecedent: tuple[int, ...]
    distractor: tuple[int, ...]


class HeadScore(NamedTuple):
    """A head's treatment of a pronoun, over many sentences.

    Each sentence has a right and a wrong noun phrase. A head that always looks at the first noun
    phrase has an accuracy of 1 where that is the right one and of 0 where it is not. Only the mean
    of the two tells that it resolves nothing.

    Attributes:
        kind: "encoder": from "it" to English words; "cross": from the position that writes the
            German pronoun to English words; "decoder": from there to the German words before it.
        layer: The layer, from 1.
        head: The head, from 1.
        antecedent: Mean weight on the right noun phrase, its words summed.
        distractor: Mean weight on the other one.
        first: Share of sentences in which the right one gets more, where it comes first.
        second: The same share where the right one comes second.
    """

    kind: str
    layer: int
    head: int
    antecedent: float
    distractor: float
    first: float
    second: float

    @property
    def balanced(self) -> float:
        """The mean of `first` and `second`: 0.5 for a head that only knows the order."""
        return (self.first + self.second) / 2

    @property
    def resolution(self) -> float:
        """The weight on the right noun phrase, times how far `balanced` is above chance.

        From 0 to 1. A head of high accuracy but next to no weight resolves as little as one that
        always looks at the subject.
        """
        return self.antecedent * max(0.0, 2 * self.balanced - 1)


class NounInfluence(NamedTuple):
    """The influence of two noun phrases on a pronoun, over many sentences.

    Attributes:
        antecedent: Mean influence of the right noun phrase, in nats; see `influence`.
        distractor: Mean influence of the other one.
        first: Share of sentences in which the right one has more, where it comes first.
        second: The same share where the right one comes second.
    """

    antecedent: float
    distractor: float
    first: float
    second: float


def mention(pair: Pair, kind: str) -> Mention:
    """Return a pair's pronoun and noun phrases, as words of a map of this kind.

    Args:
        pair: A coreference pair of the phrasebook.
        kind: "encoder", "decoder" or "cross".

    Returns:
        The words to look from and at, in `word_maps`; the decoder reads the start token first.

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
    antecedent = _behind_start(pair.in_target(pair.antecedent))
    distractor = _behind_start(pair.in_target(pair.distractor))
    return Mention(pronoun, antecedent, distractor)


def _behind_start(words: Iterable[int]) -> tuple[int, ...]:
    """Return the columns of words in a decoder's map, whose first is the start token."""
    return tuple(word + 1 for word in words)


def word_maps(attention: Attention, kind: str) -> AttentionMaps:
    """Return one kind of attention from word to word.

    Target rows are named by the word they write. The decoder chooses a pronoun at the position that
    reads the word before it. Named by the word that it writes, as in `Attention.cross`, that row
    says where the choice comes from.

    Args:
        attention: The attention of one translation.
        kind: "encoder", "decoder" or "cross".

    Returns:
        The maps of every layer and head.
    """
    maps = getattr(attention, kind)
    if kind == "decoder":
        maps = maps._replace(rows=attention.cross.rows)
    return maps.words()


def find_coreference_head(translator: Translator, pairs: Sequence[Pair]) -> list[HeadScore]:
    """Measure every head on the coreference sentences among `pairs`.

    The best head comes first. The decoder reads the reference, so that the place of its pronoun is
    known. The best of many heads looks better than it is on the sentences that chose it: find the
    head on "valid" and report it on "test".

    Args:
        translator: A run of the phrasebook.
        pairs: Pairs of the phrasebook; those without a pronoun are left out.

    Returns:
        A score for each head of each kind, by falling `HeadScore.resolution`.

    Raises:
        ValueError: No pair has a pronoun.
    """
    pairs = _with_pronoun(pairs)
    maps: dict[str, list[AttentionMaps]] = {kind: [] for kind in KINDS}
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    for one in each_attention(translator, sources, targets):
        for kind in KINDS:
            maps[kind].append(word_maps(one, kind))
    scores: list[HeadScore] = []
    for kind in KINDS:
        mentions = [mention(pair, kind) for pair in pairs]
        scores += head_scores(maps[kind], mentions)
    return sorted(scores, key=lambda score: -score.resolution)


def _with_pronoun(pairs: Sequence[Pair]) -> list[Pair]:
    """Leave out the pairs that have no pronoun."""
    found = [pair for pair in pairs if pair.pronoun is not None]
    if not found:
        raise ValueError(
            "none of the pairs is a coreference sentence; give phrasebook.pairs('test') or "
            "('valid')"
        )
    return found


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
    table = np.stack(_means_and_shares(antecedent, distractor, mentions), axis=-1)  # (L, H, 4)
    return [
        HeadScore(maps[0].kind, layer + 1, head + 1, *table[layer, head].tolist())
        for layer, head in np.ndindex(table.shape[:2])
    ]


def _means_and_shares(
    antecedent: np.ndarray, distractor: np.ndarray, mentions: Sequence[Mention | Pair]
) -> tuple[np.ndarray, ...]:
    """Compare two measures of N sentences, each (N, ...).

    Returns:
        The mean of either measure, then the share of sentences with more of the first, where the
        antecedent comes first and where it comes second; each (...).
    """
    comes_first = np.array([m.antecedent < m.distractor for m in mentions])
    if comes_first.all() or not comes_first.any():
        raise ValueError(
            "the antecedent is always the first or always the second noun phrase; give both orders"
        )
    right = antecedent > distractor
    return (
        antecedent.mean(axis=0),
        distractor.mean(axis=0),
        right[comes_first].mean(axis=0),
        right[~comes_first].mean(axis=0),
    )


def _weight(maps: AttentionMaps, row: int, words: tuple[int, ...]) -> np.ndarray:
    """The weight (L, H) of each head from one row on all words of a noun phrase."""
    return maps.weights[:, :, row, list(words)].sum(axis=-1)


def pronoun_of(german: str) -> str:
    """Return the word behind the conjunction, the pronoun of a coreference sentence.

    Example:
        >>> pronoun_of("Das Tier überquerte die Straße nicht, weil sie zu breit war.")
        'sie'
    """
    return " ".join(german.rpartition(", ")[2].split()[1:2])


def pronoun_accuracy(translations: Sequence[str], pairs: Sequence[Pair]) -> float:
    """Return the share of translations with the pronoun of the reference.

    Args:
        translations: The German of a model.
        pairs: The coreference pairs that it translated.

    Returns:
        A share from 0 to 1.
    """
    both = zip(translations, pairs, strict=True)
    right = [pronoun_of(german) == pronoun_of(pair.target) for german, pair in both]
    return sum(right) / len(right)


def noun_influence(translator: Translator, pairs: Sequence[Pair]) -> NounInfluence:
    """Measure how much the pronoun depends on each noun phrase.

    Each noun phrase is hidden in both languages.

    Args:
        translator: A run of the phrasebook.
        pairs: Pairs of the phrasebook; those without a pronoun are left out.

    Returns:
        The influences of the noun phrases on the German pronoun of the reference.

    Raises:
        ValueError: No pair has a pronoun, or the noun phrase that is meant always comes first, or
            always second.
    """
    pairs = _with_pronoun(pairs)
    decisions = [_pronoun_decision(pair.source, pair.target) for pair in pairs]
    antecedents = [Hidden(pair.antecedent, pair.in_target(pair.antecedent)) for pair in pairs]
    distractors = [Hidden(pair.distractor, pair.in_target(pair.distractor)) for pair in pairs]
    seen = log_odds(translator, decisions, [Hidden()] * len(decisions))  # (N,)
    antecedent = seen - log_odds(translator, decisions, antecedents)
    distractor = seen - log_odds(translator, decisions, distractors)
    return NounInfluence(*map(float, _means_and_shares(antecedent, distractor, pairs)))


def draw_pronoun(translator: Translator, sentence: str, path: str | Path) -> str:
    """Draw the words that decide the German pronoun of a sentence with "it".

    Args:
        translator: A run of the phrasebook.
        sentence: An English sentence like those of the family coreference.
        path: The .png or .svg file to write.

    Returns:
        The translation, in which the pronoun stands.

    Raises:
        ValueError: The translation has no pronoun where such a sentence has it.
    """
    [translation] = translator.translate([sentence])
    decision = _pronoun_decision(sentence, translation)
    draw_influences(influences(translator, decision), path)
    return translation


def _pronoun_decision(sentence: str, translation: str) -> Decision:
    """Return the decision for the pronoun of a German coreference sentence."""
    pronoun = pronoun_of(translation)
    if pronoun not in PRONOUNS:
        raise ValueError(
            f"{translation!r} has none of the pronouns {', '.join(PRONOUNS)} behind a conjunction; "
            "give a sentence such as 'The dog didn't eat because it was tired.'"
        )
    others = tuple(other for other in PRONOUNS if other != pronoun)
    return Decision(sentence, translation, pronoun_place(translation), others)


def pronoun_place(german: str) -> int:
    """The place of the word behind the conjunction, counted from 0."""
    return len(german.rpartition(", ")[0].split()) + 1


def table(scores: Sequence[HeadScore]) -> str:
    """Return the scores as lines of text, a head a line, in the given order."""
    lines = ["kind     layer  head  right noun  other noun  if first  if second  balanced"]
    for score in scores:
        place = f"{score.kind:<9}{score.layer:>5}{score.head:>6}"
        weights = f"{score.antecedent:>12.1%}{score.distractor:>12.1%}"
        shares = f"{score.first:>10.1%}{score.second:>11.1%}{score.balanced:>10.1%}"
        lines.append(f"{place}{weights}{shares}")
    return "\n".join(lines)
