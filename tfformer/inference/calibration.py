"""Calibrate the confidence of a model by a temperature (Guo et al. 2017).

A model is calibrated if 80 % of the tokens to which it gives the probability 0.8 are right. Here a
token is an argmax under teacher forcing, and it is right if it equals the reference's token. The
temperature T, by which logits are divided, changes probabilities but not the argmax. See "On
Calibration of Modern Neural Networks", sections 2 and 4.2.

Shape letters: D d_model, V vocabulary, N target tokens of all pairs, n target tokens of a batch.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tfformer.data.batches import token_batches
from tfformer.data.encoding import pad
from tfformer.data.sources import SentencePair
from tfformer.inference.alignment import BATCH_TOKENS
from tfformer.inference.text_model import check_finite
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Calibration, Tokenizers
from tfformer.runtime.tracing import traced
from tfformer.special_ids import END_ID, PAD_ID, START_ID

BINS = 15  # of equal width, as in Guo et al.
LOWEST, HIGHEST = 1 / 8, 8.0  # temperatures
ITERATIONS = 20
TOLERANCE = 1e-4  # relative change of 1 / T

Measure = Callable[[float], np.ndarray]  # 1 / T -> `readings` (N, 4)


def measuring(
    model: Transformer, tokenizers: Tokenizers, pairs: Sequence[SentencePair], max_length: int
) -> Measure | None:
    """Return a function that computes the `readings` of the target tokens, for `fit`.

    `pairs` are sentences with their reference translations, such as some of the validation text.
    Pairs with a blank side, or a side of more than `max_length` tokens, are left out; None is
    returned if no pair remains.
    """
    sides = zip((tokenizers.source, tokenizers.target), zip(*pairs, strict=True), strict=False)
    encoded = [side.encode(texts) for side, texts in sides]
    full = [pair for pair in zip(*encoded, strict=True) if all(pair)]
    rows = [[[*ids, END_ID] for ids in pair] for pair in full if max(map(len, pair)) < max_length]
    if not rows:
        return None
    ids, real = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, model.d_model))

    @traced(input_signature=[ids, ids])
    def hidden_of(source: tf.Tensor, previous: tf.Tensor) -> tf.Tensor:
        return model.hidden({"source": source, "target": previous})

    @traced(input_signature=[real, tf.TensorSpec((None,), tf.int32), tf.TensorSpec(())])
    def read(hidden: tf.Tensor, labels: tf.Tensor, sharpness: tf.Tensor) -> tf.Tensor:
        return readings(tf.cast(model.logits(hidden), tf.float32), labels, sharpness)

    lengths = [max(map(len, pair)) for pair in rows]
    order = sorted(range(len(rows)), key=lengths.__getitem__)
    tokens = []  # the decoder's output (n, D) and the labels (n,) of each batch, without padding
    for numbers in token_batches(order, lengths, BATCH_TOKENS):
        source, target = (pad([rows[n][side] for n in numbers]) for side in (0, 1))
        previous = np.pad(target, ((0, 0), (1, 0)), constant_values=START_ID)[:, :-1]
        is_real = target != PAD_ID
        is_real[:, : len(tokenizers.target.begin_ids)] = False  # given, such as a language token
        tokens.append((hidden_of(source, previous).numpy()[is_real], target[is_real]))
    return lambda sharpness: np.concatenate([read(*batch, sharpness) for batch in tokens])


def readings(logits: tf.Tensor, labels: tf.Tensor, sharpness: tf.Tensor) -> tf.Tensor:
    """Return four values per token, (..., 4) float32, for the temperature 1 / `sharpness`.

    They are the first and second derivative, with respect to `sharpness`, of the labels' (...)
    negative log-likelihood, the probability of the argmax of the logits (..., V), and 1 if the
    argmax is the label, otherwise 0.
    """
    probabilities = tf.nn.softmax(sharpness * logits)
    mean = tf.reduce_sum(probabilities * logits, axis=-1)
    deviations = logits - mean[..., tf.newaxis]
    variance = tf.reduce_sum(probabilities * deviations**2, axis=-1)
    of_label = tf.gather(logits, labels, axis=-1, batch_dims=labels.shape.rank)
    is_right = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
    confidence = tf.reduce_max(probabilities, axis=-1)
    values = (mean - of_label, variance, confidence, tf.cast(is_right, tf.float32))
    return tf.stack(values, axis=-1)


def fit(measure: Measure) -> Calibration:
    """Minimise the negative log-likelihood, which is convex in 1 / T, by Newton's method.

    It raises ValueError if a reading is not finite, because the weights are damaged.
    """
    sharpness = 1.0
    first = measured = measure(sharpness)
    for _ in range(ITERATIONS):
        check_finite(measured)
        slope, curvature = measured[:, :2].mean(axis=0, dtype=np.float64).tolist()
        better = sharpness - slope / max(curvature, 1e-9)
        better = min(max(better, sharpness / 2, 1 / HIGHEST), sharpness * 2, 1 / LOWEST)
        if abs(better - sharpness) < TOLERANCE * sharpness:
            break
        sharpness = better
        measured = measure(sharpness)
    before, after = (calibration_error(*values[:, 2:].T) for values in (first, measured))
    return Calibration(round(1 / sharpness, 4), len(first), round(before, 5), round(after, 5))


def calibration_error(confidences: np.ndarray, is_right: np.ndarray) -> float:
    """Return the expected calibration error of N predictions, between 0 and 1.

    Predictions are grouped into `BINS` intervals of confidence. The error is the mean, weighted by
    their sizes, of |accuracy - mean confidence| (Guo et al. 2017, equation 3).

    Example:
        >>> round(calibration_error(np.array([0.9, 0.9, 0.5]), np.array([1, 1, 0])), 4)
        0.2333
    """
    bins = np.ceil(np.asarray(confidences, np.float64) * BINS).astype(int)
    differences = np.bincount(bins, confidences - is_right)
    return float(np.abs(differences).sum() / len(confidences))
