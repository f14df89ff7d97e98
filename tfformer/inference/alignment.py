"""Word alignments and the probabilities of words, from one pass over given pairs.

Words are separated by spaces and counted from 0. Shape letters: B pairs, S source tokens, T target
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.data.batches import token_batches
from tfformer.data.encoding import Sentences, pad
from tfformer.data.tokenizers import WORD_START, Tokenizers
from tfformer.special_ids import END_ID

if TYPE_CHECKING:
    from tfformer.inference.translator import Translator

START, END = "<s>", "</s>"
BATCH_TOKENS = 1_024
# Minimum weight of a link in each direction; these had the lowest error rates in validation
FROM_SOURCE, FROM_TARGET = 0.1, 0.6

Alignment = tuple[tuple[int, int], ...]  # (source word, target word), in order

# Source ids (B, S) and target ids (B, T), each row with the end token -> log P(token) in nats
# (B, T) and attention (B, T, S)
AlignIds = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Aligned(NamedTuple):
    """A sentence and its translation, with the attention and the probability of each token.

    Example:
        >>> attention = np.array([[0.1, 0.9, 0], [0.8, 0.1, 0.1], [0.7, 0.3, 0], [0, 0, 1]])
        >>> log_probs = np.log([0.9, 0.8, 0.5, 1])
        >>> source, target = ("▁Ja", "▁ja", "</s>"), ("▁Yes", "▁ye", "s", "</s>")
        >>> pair = Aligned(source, target, attention, log_probs)
        >>> pair.links(), pair.nearest_targets()
        (((0, 1), (1, 0)), ((0, 1), (1, 0)))
        >>> pair.word_confidences().round(2).tolist(), round(pair.confidence, 3)
        ([0.9, 0.4], 0.775)
    """

    source: tuple[str, ...]  # S pieces, the end token last; empty if the source is blank
    target: tuple[str, ...]  # T pieces, the end token last; empty if the source is blank
    attention: np.ndarray  # (T, S); a row sums to 1, less the weight of a tag, which S excludes
    log_probs: np.ndarray  # (T,) in nats

    def links(self) -> Alignment:
        """Link the words that attend to each other most.

        The links are the union of two directions (Och and Ney 2003): from each source word to the
        target word that attends to it most, with a weight of at least `FROM_SOURCE`, and from each
        target word to the source word to which it attends with at least `FROM_TARGET`.
        """
        weights = self._between_words()[:-1]
        if not weights.size:
            return ()
        words = weights[:, :-1]
        from_sources = (words == words.max(axis=0)) & (words >= FROM_SOURCE)
        is_linked = from_sources | (words >= FROM_TARGET)
        return tuple((i, j) for i, j in np.argwhere(is_linked.T).tolist())

    def nearest_targets(self) -> Alignment:
        """Link each source word to the target word that attends to it most.

        Each source word has exactly one link, which markup needs.
        """
        weights = self._between_words()[:-1, :-1]
        if not weights.size:
            return ()
        return tuple((i, int(j)) for i, j in enumerate(weights.argmax(axis=0)))

    def word_confidences(self) -> np.ndarray:
        """Return the probability of each target word, the product over its pieces."""
        starts = _first_pieces(_words(self.target[:-1]))
        return np.exp(np.add.reduceat(self.log_probs[:-1], starts) if starts else np.zeros(0))

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of all tokens; 1 if the source is blank."""
        return float(np.exp(self.log_probs.mean())) if self.target else 1.0

    def _between_words(self) -> np.ndarray:
        return between_words(self.attention, self.target, self.source)


def alignments(translator: Translator, sources: Sentences, targets: Sentences) -> list[Alignment]:
    """Align the words of each pair by the cross-attention of a trained model.

    The weights are those of the penultimate decoder layer (Garg et al. 2019,
    "Jointly Learning to Align and Translate with Transformer Models"): of the head that was trained
    to align (`training.guided_alignment`), otherwise the mean of all heads. See `Aligned.links`.

    Args:
        translator: A trained run.
        sources: The source sentences, or the result of `translator.encode`.
        targets: A translation of each source, or the result of `translator.encode_targets`.

    Returns:
        The links (source word, target word) of each pair. Blank sentences and words beyond the
        model's limit have no links.

    Raises:
        ValueError: The numbers of sources and targets differ, or the model is made from keras-hub.

    Example:
        This model is untrained; `Translator.load("my_run")` returns a trained one.

        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
        >>> model = tfformer.Transformer(9, 9, num_layers=1, d_model=8, num_heads=2, d_ff=8)
        >>> translator = tfformer.Translator(model, tokenizer, max_length=8)
        >>> tfformer.alignments(translator, ["a"], ["b"])
        [((0, 0),)]
    """
    return [pair.links() for pair in translator.aligned(sources, targets)]


def check_attention(translator: Translator) -> None:
    """Raise ValueError for a translator whose model does not return its attention."""
    if not translator.model.can_align:
        raise ValueError("a model from keras-hub does not return its attention; use another")


def pharaoh(alignment: Alignment) -> str:
    """Return an alignment in Pharaoh's format, such as "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def align_pairs(
    tokenizers: Tokenizers,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
    align_ids: AlignIds,
) -> list[Aligned]:
    """Align pairs of ids without end tokens; pairs of similar length share a batch."""
    blank = Aligned((), (), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
    aligned = [blank] * len(sources)
    # A tag or a language token is not a word of the sentence.
    begin, target_begin = (len(side.begin_ids) for side in (tokenizers.source, tokenizers.target))
    source_rows = [[*ids, END_ID] for ids in sources]
    target_rows = [[*(ids or tokenizers.target.begin_ids), END_ID] for ids in targets]
    lengths = [max(map(len, pair)) for pair in zip(source_rows, target_rows, strict=True)]
    order = [n for n in range(len(sources)) if sources[n]]
    order.sort(key=lengths.__getitem__)
    for numbers in token_batches(order, lengths, BATCH_TOKENS):
        batch = (pad([rows[n] for n in numbers]) for rows in (source_rows, target_rows))
        for n, log_probs, attention in zip(numbers, *align_ids(*batch), strict=True):
            source = (*tokenizers.source.pieces(sources[n][begin:]), END)
            target = (*tokenizers.target.pieces(targets[n][target_begin:]), END)
            rows = slice(target_begin, target_begin + len(target))
            attention = attention[rows, begin : begin + len(source)]
            aligned[n] = Aligned(source, target, attention, log_probs[rows])
    return aligned


def between_words(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """Return weights (..., R, C) between pieces as weights between words.

    Attention to a word is the sum over its pieces, attention from a word the mean over its pieces,
    so that rows still sum to 1 (Clark et al. 2019, "What Does BERT Look At?", section 4.1).
    """
    if not weights.size:
        return weights
    words = _words(rows)
    lengths = np.array([len(word) for word in words])[:, np.newaxis]
    weights = np.add.reduceat(weights, _first_pieces(_words(columns)), axis=-1)
    return np.add.reduceat(weights, _first_pieces(words), axis=-2) / lengths


def word_texts(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the text of each word; start and end tokens count as words."""
    return tuple("".join(word).replace(WORD_START, " ").strip() for word in _words(pieces))


def word_spans(pieces: Sequence[str]) -> list[slice]:
    """Return the span of pieces of each word; words are separated by spaces.

    Example:
        >>> word_spans(["▁The", "▁cat", "s", "."])
        [slice(0, 1, None), slice(1, 4, None)]
    """
    words = _words(pieces)
    starts = _first_pieces(words)
    return [slice(start, start + len(word)) for start, word in zip(starts, words, strict=True)]


def _words(pieces: Sequence[str]) -> list[list[str]]:
    """Group pieces by word. Start and end tokens count as words."""
    words: list[list[str]] = []
    for piece in pieces:
        if piece.startswith(WORD_START) or piece in (START, END) or not words:
            words.append([])
        words[-1].append(piece)
    return words


def _first_pieces(words: Sequence[list[str]]) -> list[int]:
    return [0, *accumulate(map(len, words))][: len(words)]
