"""Functions on the logits of a step: filters, rules and the most likely tokens.

The rules receive `ids` (R, L), whose first `count` () entries are the tokens so far.

Shape letters: R rows, V vocabulary, L length of the ids, N tokens of a row, W words.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

BLOCK = 64  # logits per block; the maxima of all blocks are compared first
ANY, NO_TOKEN = -1, -2  # used like ids: ANY matches every id, NO_TOKEN matches none
LARGE = 4096  # logits in a row; with fewer, comparing blocks costs more than it saves


def keep_top_k(logits: tf.Tensor, k: int) -> tf.Tensor:
    """Keep the k largest logits of each row (R, V); k = 0 keeps all.

    The other logits become the lowest float.
    """
    if not k:
        return logits
    count = tf.minimum(k, tf.shape(logits)[-1])
    smallest_kept = tf.math.top_k(logits, count).values[:, -1:]  # (R, 1)
    return tf.where(logits >= smallest_kept, logits, logits.dtype.min)


def keep_top_p(logits: tf.Tensor, p: float) -> tf.Tensor:
    """Keep the fewest logits of each row (R, V) that together reach probability p.

    The other logits become the lowest float; p = 1 keeps all.
    """
    if p >= 1.0:
        return logits
    ordered = tf.sort(logits, direction="DESCENDING")
    probabilities = tf.nn.softmax(ordered)
    cumulative = tf.cumsum(probabilities, axis=-1, exclusive=True)  # over all more likely tokens
    kept = tf.where(cumulative < p, ordered, ordered.dtype.max)
    smallest_kept = tf.reduce_min(kept, axis=-1, keepdims=True)  # (R, 1)
    return tf.where(logits >= smallest_kept, logits, logits.dtype.min)


def top_k(logits: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return values and ids (R, k) of the largest logits, as `tf.math.top_k` does, but faster.

    The k largest logits are in the k blocks with the largest maxima; only these blocks are
    searched, in vocabulary order, so that equal logits keep that order.
    """
    size = logits.shape[-1]
    if size is None or size // BLOCK <= k:
        return tf.math.top_k(logits, k)
    count, remainder = divmod(size, BLOCK)
    blocks = tf.reshape(logits[:, : count * BLOCK], [-1, count, BLOCK])
    _, best = tf.math.top_k(tf.reduce_max(blocks, axis=-1), k)  # (R, k)
    best = -tf.math.top_k(-best, k).values  # ascending
    values = tf.reshape(tf.gather(blocks, best, batch_dims=1), [-1, k * BLOCK])
    ids = tf.reshape(best[:, :, tf.newaxis] * BLOCK + tf.range(BLOCK), [-1, k * BLOCK])
    if remainder:
        last = tf.range(count * BLOCK, size)
        values = tf.concat([values, logits[:, count * BLOCK :]], axis=1)
        ids = tf.concat([ids, tf.zeros_like(ids[:, :1]) + last], axis=1)
    values, indices = tf.math.top_k(values, k)  # (R, k)
    return values, tf.gather(ids, indices, batch_dims=1)


def argmax(logits: tf.Tensor) -> tf.Tensor:
    """Return the id of the largest logit of each row, (R,) int32, faster than `tf.argmax`.

    Only the first block with the largest maximum is searched; among equal logits, the first wins.
    If the last block is not full, its window also covers the end of the previous block, whose
    logits are smaller.
    """
    size = logits.shape[-1]
    if size is None or size < LARGE:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)
    cut = size // BLOCK * BLOCK
    maxima = tf.reduce_max(tf.reshape(logits[:, :cut], [-1, cut // BLOCK, BLOCK]), axis=-1)
    if cut < size:
        remaining = tf.reduce_max(logits[:, cut:], axis=-1, keepdims=True)
        maxima = tf.concat([maxima, remaining], axis=1)
    block = tf.argmax(maxima, axis=-1, output_type=tf.int32)  # (R,)
    first = tf.minimum(block * BLOCK, size - BLOCK)
    window = first[:, tf.newaxis] + tf.range(BLOCK)  # (R, BLOCK)
    index = tf.argmax(tf.gather(logits, window, batch_dims=1), axis=-1, output_type=tf.int32)
    return first + index


def without(logits: tf.Tensor, token: int | None) -> tf.Tensor:
    """Give `token`, unless it is None, the lowest logit (R, V)."""
    if token is None:
        return logits
    size = logits.shape[-1] or tf.shape(logits)[-1]
    lowest = tf.one_hot(token, size, logits.dtype.min, dtype=logits.dtype)
    return logits + lowest  # LiteRT's select is slow


def penalize_repetition(
    logits: tf.Tensor, ids: tf.Tensor, count: tf.Tensor, penalty: float
) -> tf.Tensor:
    """Divide positive logits (R, V) of tokens in `ids` by a penalty, and multiply negative ones.

    This is the rule of Keskar et al. 2019 (CTRL, section 4.1), with the sign as in Transformers.
    """
    written = tf.zeros_like(ids, tf.bool) | (tf.range(tf.shape(ids)[1]) < count)
    penalized = tf.where(logits < 0, logits * penalty, logits / penalty)
    return tf.where(marked(ids, written, tf.shape(logits)), penalized, logits)


def forbid_repeated_ngrams(
    logits: tf.Tensor, ids: tf.Tensor, count: tf.Tensor, size: int
) -> tf.Tensor:
    """Give the lowest logit to tokens (R, V) that would repeat an n-gram of `ids`."""
    length = tf.shape(ids)[1]
    position = tf.range(length)
    ends = tf.zeros_like(ids, tf.bool) | ((position >= size - 1) & (position < count))  # (R, L)
    for distance in range(1, size):
        last = tf.gather(ids, tf.maximum(count - distance, 0), axis=1)  # (R,)
        before = tf.pad(ids, ((0, 0), (distance, 0)))[:, :length]
        ends &= before == last[:, tf.newaxis]
    return tf.where(marked(ids, ends, tf.shape(logits)), logits.dtype.min, logits)


def forbid_words(
    logits: tf.Tensor, ids: tf.Tensor, count: tf.Tensor, words: Sequence[Sequence[int]]
) -> tf.Tensor:
    """Give the lowest logit to tokens (R, V) that would complete one of the words (W)."""
    longest = max(2, *map(len, words)) - 1  # tokens of a word before its last
    beginnings = tf.constant([[ANY] * (longest + 1 - len(word)) + [*word[:-1]] for word in words])
    indices = count - longest + tf.range(longest)  # indices of the most recent tokens
    recent = tf.gather(ids, tf.maximum(indices, 0), axis=1)  # (R, longest)
    recent = tf.where(indices < 0, NO_TOKEN, recent)
    is_any = beginnings == ANY
    begun = tf.reduce_all(is_any | (recent[:, tf.newaxis] == beginnings), axis=2)  # (R, W)
    last = tf.zeros_like(begun, tf.int32) + tf.constant([word[-1] for word in words])
    return tf.where(marked(last, begun, tf.shape(logits)), logits.dtype.min, logits)


def marked(tokens: tf.Tensor, is_marked: tf.Tensor, shape: tf.Tensor | list[Any]) -> tf.Tensor:
    """Return a mask of `shape`, (R, V), that is True at the marked tokens (R, N) of each row."""
    rows = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[0])[:, tf.newaxis]
    indices = tf.stack([rows, tokens], axis=-1)  # (R, N, 2)
    return tf.scatter_nd(indices, tf.cast(is_marked, tf.int32), shape) > 0


def log_sum_exp(logits: tf.Tensor, best: tf.Tensor) -> tf.Tensor:
    """Return log(sum(exp(logits))) of each row, (R,), given the id of its largest logit.

    It equals x - log(softmax(x)) for any logit x, and is accurate for the largest, whose softmax is
    at least 1 / V. One operation computes the softmax; `tf.reduce_logsumexp` needs four passes.

    Example:
        >>> logits = tf.math.log([[1.0, 4.0, 3.0]])
        >>> float(tf.exp(log_sum_exp(logits, best=tf.constant([1])))[0])
        8.0
    """
    largest = tf.gather(logits, best, batch_dims=1)  # (R,)
    probability = tf.gather(tf.nn.softmax(logits), best, batch_dims=1)  # (R,)
    return largest - tf.math.log(probability)
