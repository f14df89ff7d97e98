"""A shortlist: each sentence is translated with the pieces that its source pieces suggest.

Shape letters: B sentences, S source tokens, M longest row of the table, V vocabulary, U candidates
of the batch.
"""

import numpy as np
import tensorflow as tf

from tfformer.data.encoding import IdRows
from tfformer.inference.logits import marked
from tfformer.special_ids import END_ID, PAD_ID

IMPOSSIBLE = -1e9  # the logit of a token that cannot follow


class Shortlist:
    """The candidates of each source piece.

    Args:
        table: Row i contains the ids of the target pieces that may translate source piece i. The
            row of the end token, with which every source ends, contains the most frequent pieces.
        vocab_size: The size V of the target vocabulary.
    """

    def __init__(self, table: IdRows, vocab_size: int) -> None:
        self.table = table
        self.vocab_size = vocab_size
        self._longest = int(table.lengths.max())  # M
        self._lengths = tf.constant(table.lengths, tf.int32)
        self._offsets = tf.constant(table.offsets[:-1], tf.int32)
        is_narrow = vocab_size <= np.iinfo(np.int16).max  # LiteRT gathers no unsigned integers
        ids = np.append(table.ids, END_ID).astype(np.int16 if is_narrow else np.int32)
        self._ids = tf.constant(ids)

    def candidates(
        self, source: tf.Tensor, prefix: tf.Tensor | None = None, spare: int = 0
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the pieces that a batch of sources (B, S) is translated with.

        Args:
            source: The sources.
            prefix: (B, P), the ids that the translations begin with, which are candidates too. If S
                and P are static, so is U: 4 + S * M + P, at most V, and `spare`.
            spare: Number of unused candidates to add.

        Returns:
            The ids (U,), ascending up to the unused candidates, and a bias (B, U): 0 for the
            candidates of a sentence, `IMPOSSIBLE` for other sentences' and for unused candidates.
            The four special ids are candidates of every sentence, and their index is their id.

        Example:
            >>> table = IdRows.of([[], [], [], [4, 5], [8], [7, 4]])
            >>> ids, bias = Shortlist(table, vocab_size=9).candidates(tf.constant([[5, 3], [4, 3]]))
            >>> ids.numpy().tolist()
            [0, 1, 2, 3, 4, 5, 7, 8]
            >>> (bias == 0).numpy().astype(int).tolist()
            [[1, 1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 0, 1]]
        """
        is_allowed = self.allowed(source, prefix)  # (B, V)
        is_used = tf.reduce_any(is_allowed, axis=0)  # (V,)
        widths = [source.shape[1], 0 if prefix is None else prefix.shape[1]]
        if None in widths:
            ids = tf.cast(tf.where(is_used)[:, 0], tf.int32)
        else:
            most = END_ID + 1 + widths[0] * self._longest + widths[1]
            ids = tf.math.top_k(tf.cast(is_used, tf.int32), min(most, self.vocab_size)).indices
        bias = tf.where(tf.gather(is_allowed, ids, axis=1), 0.0, IMPOSSIBLE)
        bias = tf.pad(bias, ((0, 0), (0, spare)), constant_values=IMPOSSIBLE)
        return tf.pad(ids, ((0, spare),), constant_values=PAD_ID), bias

    def allowed(self, source: tf.Tensor, prefix: tf.Tensor | None) -> tf.Tensor:
        """Return which pieces are candidates of each source (B, S) and prefix (B, P): (B, V)."""
        slot = tf.range(self._longest)
        index = tf.gather(self._offsets, source)[:, :, tf.newaxis] + slot  # (B, S, M)
        index = tf.minimum(index, self._ids.shape[0] - 1)
        rows = tf.shape(source)[0]
        entries = tf.reshape(tf.cast(tf.gather(self._ids, index), tf.int32), [rows, -1])
        is_entry = slot < tf.gather(self._lengths, source)[:, :, tf.newaxis]
        is_allowed = marked(entries, tf.reshape(is_entry, [rows, -1]), [rows, self.vocab_size])
        is_allowed |= tf.range(self.vocab_size) <= END_ID
        if prefix is None:
            return is_allowed
        return is_allowed | marked(prefix, prefix != PAD_ID, [rows, self.vocab_size])
