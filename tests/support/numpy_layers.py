"""The paper's layers in NumPy, in float64, and random weights to compare with."""

import numpy as np

from tfformer.special_ids import END_ID, START_ID


def randomized(layer, seed=1, scale=0.5):
    """Return the layer with random values in every weight.

    Zero biases and unit scales would hide a missing sum or product.
    """
    if not layer.built:
        layer.build(None)
    rng = np.random.default_rng(seed)
    layer.set_weights(
        [
            rng.normal(scale=scale, size=w.shape) if w.ndim == 2 else rng.normal(w, scale=scale)
            for w in layer.get_weights()
        ]
    )
    return layer


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(axis=-1, keepdims=True)  # so that exp() is at most 1
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def pair_log_probs(translator, source: str, target: str) -> tuple[np.ndarray, list[int]]:
    """Return log p (T, V) by the whole target at once, and the T target ids with the end token."""
    tokenizers, limit = translator.tokenizers, translator.max_length - 1
    source_ids = [*tokenizers.source.encode([source])[0][:limit], END_ID]
    target_ids = [*tokenizers.target.encode([target])[0][:limit], END_ID]
    inputs = {"source": np.array([source_ids]), "target": np.array([[START_ID, *target_ids[:-1]]])}
    return log_softmax(translator.model(inputs)[0]), target_ids


def target_log_probs(translator, source: str, target: str) -> np.ndarray:
    """Return log p of each target token and the end token."""
    log_probs, target_ids = pair_log_probs(translator, source, target)
    return log_probs[range(len(target_ids)), target_ids]


def smoothed_cross_entropy(logits, labels, smoothing):
    """(B, T, V), (B, T) -> (B, T) nats; `smoothing` is spread evenly over all tokens."""
    log_probs = log_softmax(logits)
    of_label = np.take_along_axis(log_probs, labels[..., np.newaxis], axis=-1)[..., 0]
    return -(1 - smoothing) * of_label - smoothing * log_probs.mean(axis=-1)


def numpy_positions(positions, d_model, layout="interleaved"):
    encoding = np.zeros((len(positions), d_model))
    for i in range(d_model // 2):
        angle = np.asarray(positions, np.float64) / 10000 ** (2 * i / d_model)
        sine, cosine = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, d_model // 2 + i)
        encoding[:, sine], encoding[:, cosine] = np.sin(angle), np.cos(angle)
    return encoding


def numpy_embedding(layer, ids):
    """(B, T) -> (B, T, D): scaled, with the positions added."""
    matrix = np.asarray(layer.embeddings, np.float64)
    return matrix[ids] * np.sqrt(matrix.shape[1]) + numpy_positions(
        range(ids.shape[1]), matrix.shape[1]
    )


def numpy_dense(layer, x):
    return x @ np.asarray(layer.kernel, np.float64) + (
        np.asarray(layer.bias) if layer.use_bias else 0
    )


def numpy_attention(layer, query, memory, mask=None):
    """Sentence by sentence and head by head: the output and the weights."""
    q = numpy_dense(layer.query, query)
    k, v = np.split(numpy_dense(layer.key_value, memory), 2, axis=-1)
    depth = q.shape[-1] // layer.num_heads
    shape = (len(query), layer.num_heads, query.shape[1], memory.shape[1])
    allowed = np.broadcast_to(True if mask is None else np.asarray(mask), shape)
    weights, heads = np.zeros(shape), np.zeros(q.shape)
    for b, h in np.ndindex(shape[:2]):
        cols = slice(h * depth, (h + 1) * depth)
        e = np.where(allowed[b, h], np.exp(q[b, :, cols] @ k[b, :, cols].T / np.sqrt(depth)), 0)
        weights[b, h] = e / e.sum(axis=-1, keepdims=True)
        heads[b, :, cols] = weights[b, h] @ v[b, :, cols]
    return numpy_dense(layer.output_projection, heads), weights


def numpy_normalization(layer, x):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + layer.epsilon)
    return x * np.asarray(layer.gamma) + np.asarray(layer.beta)


def numpy_feed_forward(layer, x):
    return numpy_dense(layer.outer, np.maximum(0, numpy_dense(layer.inner, x)))


def numpy_residual(residual, x, sublayer):
    if residual.norm == "post":
        return numpy_normalization(residual.normalization, x + sublayer(x))
    return x + sublayer(numpy_normalization(residual.normalization, x))


def numpy_encoder_layer(layer, x, mask):
    x = numpy_residual(
        layer.self_attention_residual,
        x,
        lambda h: numpy_attention(layer.self_attention, h, h, mask)[0],
    )
    return numpy_residual(
        layer.feed_forward_residual, x, lambda h: numpy_feed_forward(layer.feed_forward, h)
    )


def numpy_decoder_layer(layer, x, memory, mask, memory_mask):
    x = numpy_residual(
        layer.self_attention_residual,
        x,
        lambda h: numpy_attention(layer.self_attention, h, h, mask)[0],
    )
    x = numpy_residual(
        layer.cross_attention_residual,
        x,
        lambda h: numpy_attention(layer.cross_attention, h, memory, memory_mask)[0],
    )
    return numpy_residual(
        layer.feed_forward_residual, x, lambda h: numpy_feed_forward(layer.feed_forward, h)
    )
