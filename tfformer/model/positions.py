"""Sinusoidal positional encodings (Vaswani et al. 2017, section 3.5).

Shape letters: B batch, T positions, D d_model.
"""

from typing import Any, Unpack, get_args

import keras
import tensorflow as tf

from tfformer import config
from tfformer.argument_checks import require, require_size
from tfformer.model.base_layer import LayerOptions, SequenceLayer, arguments_of, register

POSITION_LAYOUTS = get_args(config.PositionLayout)
POSITION_TIMESCALES = get_args(config.PositionTimescale)


def positional_encoding(
    positions: tf.Tensor, d_model: int, layout: str = "interleaved", timescale: str = "paper"
) -> tf.Tensor:
    """Compute sines and cosines of pos / 10000^(2i / d_model) (section 3.5): (T, D) float32.

    The dtype is always float32: in bfloat16 neighbouring positions above 256 would be equal.

    Args:
        positions: Positions (T,), from 0 on.
        d_model: Width of the model, the size of each vector; must be even.
        layout: "interleaved" is the paper's order (sin, cos, sin, cos, ...); "halves" has all sines
            before all cosines.
        timescale: "paper": the i-th wavelength is 2 pi 10000^(2i / d_model). "t2t", as in
            Tensor2Tensor and Marian: 2 pi 10000^(i / (d_model / 2 - 1)), so that the last one is 2
            pi 10000.

    Example:
        >>> positional_encoding(tf.range(2), d_model=4).numpy().round(3)
        array([[0.   , 1.   , 0.   , 1.   ],
               [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """
    pairs = d_model // 2
    steps = pairs if timescale == "paper" else max(pairs - 1, 1)
    exponents = tf.range(pairs, dtype=tf.float32) / steps  # (D // 2,)
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * tf.pow(10000.0, -exponents)
    sines, cosines = tf.sin(angles), tf.cos(angles)  # each (T, D // 2)
    if layout == "halves":
        return tf.concat([sines, cosines], axis=-1)
    return tf.reshape(tf.stack([sines, cosines], axis=-1), (-1, d_model))


@register
class PositionalEncoding(SequenceLayer):
    """Adds positional encodings to embeddings (section 3.5).

    It has no weights and no length limit.

    Args:
        d_model: Width of the model, the size of each vector; must be even.
        layout: The order of sines and cosines, see `positional_encoding`.
        timescale: The range of their wavelengths, "paper" or "t2t".
        offset: The position of the first token; M2M100 counts from 2.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Raises:
        ValueError: `d_model` is odd or below 1, or `layout` or `timescale` is unknown.

    Example:
        >>> import numpy, tfformer
        >>> tfformer.PositionalEncoding(d_model=2)(numpy.zeros((1, 2, 2))).numpy().round(3)
        array([[[0.   , 1.   ],
                [0.841, 0.54 ]]], dtype=float32)
    """

    def __init__(
        self,
        d_model: int,
        layout: str = "interleaved",
        timescale: str = "paper",
        *,
        offset: int = 0,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.d_model = require_size("d_model", d_model)
        if self.d_model % 2:
            raise ValueError(
                f"d_model={d_model} is odd; sines and cosines come in pairs, so choose an even "
                "d_model"
            )
        self.layout = require("layout", layout, POSITION_LAYOUTS)
        self.timescale = require("timescale", timescale, POSITION_TIMESCALES)
        self.offset = require_size("offset", offset, least=0)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: self.d_model})

    def call(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int = 0,
        segment_positions: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Add the encodings of `position`, `position + 1`, ... to embeddings (B, T, D).

        With `segment_positions` (B, T), each below T, a token gets the encoding of `position` plus
        its segment position.
        """
        count = embeddings.shape[1] or tf.shape(embeddings)[1]  # T
        positions = position + self.offset + tf.range(count)  # (T,)
        encodings = positional_encoding(positions, self.d_model, self.layout, self.timescale)
        if segment_positions is not None:
            encodings = tf.gather(encodings, segment_positions)  # (B, T, D)
        return embeddings + tf.cast(encodings, embeddings.dtype)

    def get_config(self) -> dict[str, Any]:
        names = ("d_model", "layout", "timescale", "offset")
        return super().get_config() | arguments_of(self, names)
