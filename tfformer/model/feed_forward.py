"""The position-wise feed-forward sub-layer (Vaswani et al. 2017, section 3.3).

Shape letters: B batch, T positions, D d_model.
"""

from typing import Any, get_args

import keras
import tensorflow as tf

from tfformer import config
from tfformer.argument_checks import require, require_size
from tfformer.model.fast_layers import (
    Dense,
)
from tfformer.model.registry import DType, Regularizer, Shape, arguments_of, register

ACTIVATIONS = get_args(config.Activation)


@register
class FeedForward(keras.layers.Layer):
    """Position-wise max(0, x W1 + b1) W2 + b2 (section 3.3, eq. 2).

    Gelu or swish may take the place of relu.

    Args:
        d_model: Width of the model, the size of each vector.
        d_ff: Width of the hidden layer.
        activation: "relu", "gelu" or "swish".
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: `activation` is unknown, or a size is below 1.

    Example:
        >>> import numpy, tfformer
        >>> tfformer.FeedForward(d_model=8, d_ff=32)(numpy.ones((1, 3, 8))).shape
        TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
        self.d_model = require_size("d_model", d_model)
        self.d_ff = require_size("d_ff", d_ff)
        self.activation = require("activation", activation, ACTIVATIONS)
        self.supports_masking = True
        self.inner = Dense(self.d_ff, activation=activation, name="inner", dtype=self.dtype_policy)
        self.outer = Dense(self.d_model, name="outer", dtype=self.dtype_policy)

    def build(self, input_shape: Shape | None = None) -> None:
        """Create the weights of both projections."""
        self.inner.build((None, None, self.d_model))
        self.outer.build((None, None, self.d_ff))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Transform vectors (B, T, D), each by itself."""
        return self.outer(self.inner(x))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return (B, T, D), the shape of the input."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | arguments_of(self, ("d_model", "d_ff", "activation"))
