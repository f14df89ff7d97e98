"""The position-wise feed-forward sub-layer (Vaswani et al. 2017, section 3.3).

Shape letters: B batch, T positions, D d_model.
"""

from typing import Any, Unpack

import keras
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.model.base_layer import (
    Activation,
    LayerOptions,
    SequenceLayer,
    Shape,
    arguments_of,
    register,
)
from tfformer.model.fast_layers import Dense


@register
class FeedForward(SequenceLayer):
    """Position-wise max(0, x W1 + b1) W2 + b2 (section 3.3, eq. 2).

    Another activation can replace relu.

    Args:
        d_model: Width of the model, the size of each vector.
        d_ff: Width of the hidden layer.
        activation: "relu", "gelu" or "swish", or any function of tensors. To save the layer,
            register the function with Keras.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

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
        activation: Activation = "relu",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.d_model = require_size("d_model", d_model)
        self.d_ff = require_size("d_ff", d_ff)
        self.activation = activation
        try:
            function = keras.activations.get(activation)
        except ValueError:
            raise ValueError(
                f"activation={activation!r} is not known; use relu, gelu, swish or a function"
            ) from None
        self.inner = Dense(self.d_ff, activation=function, name="inner", dtype=self.dtype_policy)
        self.outer = Dense(self.d_model, name="outer", dtype=self.dtype_policy)

    def build(self, input_shape: Shape | None = None) -> None:
        self.inner.build((None, None, self.d_model))
        self.outer.build((None, None, self.d_ff))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Transform each vector of (B, T, D) independently."""
        return self.outer(self.inner(x))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | arguments_of(self, ("d_model", "d_ff", "activation"))
