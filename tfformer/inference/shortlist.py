"""A shortlist: each sentence is translated with the pieces that its source pieces suggest.

A search then computes a few hundred logits per step in place of the whole vocabulary.

Shape letters: B sentences, S source tokens, M longest row of the table, V vocabulary, U candidates
of the batch, R rows being decoded, D d_model.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfformer.data.encoding import IdRows
from tfformer.inference.logits import marked
from tfformer.special_ids import END_ID, PAD_ID

IMPOSSIBLE = -1e9  # the logit of a token that cannot follow
SPECIAL = END_ID + 1  # padding, unknown, start and end are candidates of every sentence


class Candidates(NamedTuple):
    """The pieces that a batch is translated with.

    Their first ids are the special ids, so a search may use the index of a candidate as its id.
    """

    ids: tf.Tensor  # (U,) int32, ascending; unused places at the end are padding
    bias: tf.Tensor  # (B, U) float32, 0 for the candidates of a sentence, otherwise `IMPOSSIBLE`


class Shortlist:
    """The candidates of each source piece.

    Args:
        table: Row i contains the ids of the target pieces that may translate source piece i. The
            row of the end token, with which every source ends, contains the most frequent pieces.
        vocab_size: The size V of the target vocabulary.

    Example:
        >>> table = IdRows.of([[], [], [], [4, 5], [8], [7, 4]])
        >>> sources = tf.constant([[5, 3], [4, 3]])
        >>> ids, bias = Shortlist(table, vocab_size=10).candidates(sources)
        >>> ids.numpy().tolist()
        [0, 1, 2, 3, 4, 5, 7, 8]
        >>> (bias == 0).numpy().astype(int).tolist()
        [[1, 1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 0, 1]]
    """

    def __init__(self, table: IdRows, vocab_size: int) -> None:
        self.table = table
        self.vocab_size = vocab_size
        lengths = table.lengths
        self._longest = max(1, int(lengths.max()))  # M
        self._most_frequent = int(lengths[END_ID])
        self._lengths = tf.constant(lengths, tf.int32)
        self._offsets = tf.constant(table.offsets[:-1], tf.int32)
        narrow = vocab_size <= np.iinfo(np.int16).max  # LiteRT cannot gather unsigned integers
        ids = np.append(table.ids, END_ID)  # never empty
        self._ids = tf.constant(ids.astype(np.int16 if narrow else np.int32))

    def candidates(self, source: tf.Tensor, spare: int = 0) -> Candidates:
        """Return the candidates of the sources (B, S), with `spare` unused ones at the end.

        If S is static, so is U.
        """
        is_own = self._is_own(source)  # (B, V)
        is_used = tf.reduce_any(is_own, axis=0)  # (V,)
        if source.shape[1] is None:
            ids = tf.cast(tf.where(is_used)[:, 0], tf.int32)
        else:
            most = SPECIAL + self._most_frequent + (source.shape[1] - 1) * self._longest
            ids = tf.math.top_k(tf.cast(is_used, tf.int32), min(most, self.vocab_size)).indices
        bias = tf.where(tf.gather(is_own, ids, axis=1), 0.0, IMPOSSIBLE)
        bias = tf.pad(bias, ((0, 0), (0, spare)), constant_values=IMPOSSIBLE)
        return Candidates(tf.pad(ids, ((0, spare),), constant_values=PAD_ID), bias)

    def _is_own(self, source: tf.Tensor) -> tf.Tensor:
        """Return which pieces are candidates of each sentence, (B, V) bool."""
        slot = tf.range(self._longest)
        first = tf.gather(self._offsets, source)[:, :, tf.newaxis]  # (B, S, 1)
        is_named = slot < tf.gather(self._lengths, source)[:, :, tf.newaxis]  # (B, S, M)
        index = tf.minimum(first + slot, self._ids.shape[0] - 1)
        named = tf.cast(tf.gather(self._ids, index), tf.int32)  # (B, S, M)
        rows = tf.shape(source)[0]
        named, is_named = (tf.reshape(x, [rows, -1]) for x in (named, is_named))
        is_own = marked(named, is_named, [rows, self.vocab_size])
        return is_own | (tf.range(self.vocab_size) < SPECIAL)
