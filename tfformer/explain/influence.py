"""Which words determine a word in a translation.

A word is hidden from the model by replacing its pieces with the unknown token. Its influence is the
resulting drop, in nats, in the log-odds of the chosen word against its alternatives, such as "es"
against "er" and "sie". This combines representation erasure (Li et al. 2016, "Understanding Neural
Networks through Representation Erasure") with contrastive explanation (Yin and Neubig 2022,
"Interpreting Language Models with Contrastive Explanations"). A head's attention says where a part
of the model looks; an influence says how much the whole model needs a word.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfformer.data.encoding import EncodedSentences
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.alignment import word_spans
from tfformer.inference.translator import Translator
from tfformer.special_ids import UNKNOWN_ID


class Decision(NamedTuple):
    """A word in a translation, and its alternatives."""

    source: str  # the sentence
    target: str  # its translation
    word: int  # index of the word in the translation, split at spaces, from 0
    alternatives: tuple[str, ...]  # the words to compare it with, at least one

    @classmethod
    def of(cls, source: str, target: str, words: str) -> Decision:
        """Return the decision for words such as `es/er/sie`: the word, then its alternatives.

        If the word occurs several times in the translation, its first occurrence is used.

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
                f"word={words!r} must be a word of the translation {target!r}, followed by its "
                "alternatives, as in es/er/sie"
            )
        return cls(source, target, written.index(word), tuple(alternatives))


class Hidden(NamedTuple):
    """Indices of words hidden from the model; target words must precede the decided word."""

    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()


class Influences(NamedTuple):
    """The influence of every word on a decision, in nats."""

    decided: str  # the decided word
    source_words: tuple[str, ...]  # the S words of the source
    source: np.ndarray  # their influences (S,)
    target_words: tuple[str, ...]  # the T words of the translation before the decided one
    target: np.ndarray  # their influences (T,)


def influences(translator: Translator, decision: Decision) -> Influences:
    """Hide each source word and each earlier target word in turn; return their influences.

    A negative influence means that the word made the decision less likely. ValueError: an
    alternative is not one word, a sentence is too long for the model, or the vocabulary divides it
    into other words than spaces do.
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

    All decisions must have the same number of alternatives; ValueError: one is not a single word.
    """
    for alternative in (word for decision in decisions for word in decision.alternatives):
        if len(alternative.split()) != 1:
            raise ValueError(
                f"the alternative {alternative!r} is not one word, as the decided word is; choose "
                "one word"
            )
    chosen = _log_probs(translator, decisions, hidden)
    alternatives = []
    for number in range(len(decisions[0].alternatives)):
        instead = []
        for decision in decisions:
            words = decision.target.split()
            words[decision.word] = decision.alternatives[number]
            instead.append(decision._replace(target=" ".join(words)))
        alternatives.append(_log_probs(translator, instead, hidden))
    return chosen - np.logaddexp.reduce(alternatives)


def _log_probs(
    translator: Translator, decisions: Sequence[Decision], hidden: Sequence[Hidden]
) -> np.ndarray:
    """Return log P(decided word), given all that is not hidden, (N,)."""
    source_texts = [decision.source for decision in decisions]
    target_texts = [decision.target for decision in decisions]
    sources, targets = translator.encode(source_texts), translator.encode_targets(target_texts)
    source_spans = _spans(translator.tokenizers.source, sources, source_texts)
    target_spans = _spans(translator.tokenizers.target, targets, target_texts)
    scores = translator.score(
        _without(sources, source_spans, [words.source for words in hidden]),
        _without(targets, target_spans, [words.target for words in hidden]),
    )
    decided = [
        spans[decision.word] for spans, decision in zip(target_spans, decisions, strict=True)
    ]
    log_probs = [score.log_probs[span] for score, span in zip(scores, decided, strict=True)]
    return np.array([pieces.sum() for pieces in log_probs])


def _spans(
    tokenizer: Tokenizer, sentences: EncodedSentences, texts: Sequence[str]
) -> list[list[slice]]:
    """Return the span of ids of each word of each sentence."""
    begin = len(tokenizer.begin_ids)  # such as a language token, which is not a word
    spans = []
    for text, ids, is_truncated in zip(texts, sentences.ids, sentences.is_truncated, strict=True):
        if is_truncated:
            raise ValueError(
                f"{reprlib.repr(text)} has more than {sentences.max_tokens} tokens, the model's "
                "limit; shorten it"
            )
        found, count = word_spans(tokenizer.pieces(ids[begin:])), len(text.split())
        if len(found) != count:
            raise ValueError(
                f"the vocabulary divides {reprlib.repr(text)} into {len(found)} words, and spaces "
                f"into {count}; an influence needs a SentencePiece vocabulary and a sentence "
                "without unusual characters"
            )
        spans.append([slice(span.start + begin, span.stop + begin) for span in found])
    return spans


def _without(
    sentences: EncodedSentences, spans: Sequence[list[slice]], words: Sequence[tuple[int, ...]]
) -> EncodedSentences:
    """Replace the pieces of some words in each sentence with the unknown token."""
    rows = [np.array(ids) for ids in sentences.ids]
    for row, spans_of_row, words_of_row in zip(rows, spans, words, strict=True):
        for word in words_of_row:
            row[spans_of_row[word]] = UNKNOWN_ID
    ids = [row.tolist() for row in rows]
    return EncodedSentences(ids, sentences.is_truncated, sentences.max_tokens)
