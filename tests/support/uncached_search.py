"""Greedy search without a cache: the whole target is computed for each token."""

import functools

import numpy as np
import tensorflow as tf
from support.numpy_layers import log_softmax

from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID


def greedy_by_hand(model, source, prefix, limit):
    """Continue the ids of a prefix, until the end token or `limit` ids."""
    target = list(prefix)
    while len(target) < limit and target[-1:] != [END_ID]:
        target.append(int(next_log_probs(model, source, target).argmax()))
    return target


def next_log_probs(model, source, prefix):
    """Return log p (V,) of each token after a prefix."""
    logits = compiled(model)(tf.constant([source]), tf.constant([[START_ID, *prefix]]))
    return log_softmax(logits[0, -1].numpy().astype(np.float64))


@functools.cache
def compiled(model):
    ids = tf.TensorSpec((None, None), tf.int32)
    return tf.function(
        lambda source, target: model({"source": source, "target": target}), [ids, ids]
    )


def continuations_by_hand(translator, sentence, prefix, count):
    """Return texts and log-probabilities of `count` continuations of a prefix."""
    tokenizers, limit = translator.tokenizers, translator.max_length
    source = [*tokenizers.source.encode([sentence])[0][: limit - 1], END_ID]
    begun = tokenizers.target.encode([prefix])[0]
    log_probs = next_log_probs(translator.model, source, begun)
    log_probs[[PAD_ID, START_ID, UNKNOWN_ID]] = -np.inf
    tokens = np.argsort(-log_probs)[:count].tolist()
    rows = [greedy_by_hand(translator.model, source, [*begun, token], limit) for token in tokens]
    return tokenizers.target.decode(rows), log_probs[tokens]
