"""Shared by our Keras classes: registration, argument types, a base class for layers."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

import keras
import tensorflow as tf

register = keras.saving.register_keras_serializable(package="tfformer")

Activation: TypeAlias = str | Callable[[tf.Tensor], tf.Tensor]
Shape: TypeAlias = tuple[int | None, ...]
DType: TypeAlias = str | keras.DTypePolicy | None  # None for Keras' global policy
Regularizer: TypeAlias = str | keras.regularizers.Regularizer | None


class LayerOptions(TypedDict, total=False):
    """Keyword arguments of any Keras layer or model."""

    trainable: bool  # whether the weights are trained; by default they are
    dtype: DType  # A dtype such as "mixed_bfloat16", or a dtype policy
    name: str | None  # the name of the layer
    activity_regularizer: Regularizer  # Keras' regulariser of the output


class SequenceLayer(keras.layers.Layer):
    """A layer that maps vectors (B, T, D) to vectors of the same shape and propagates masks.

    As in any Keras layer with `supports_masking`, the input's padding mask (B, T) becomes the
    output's mask. A mask over attention scores is not propagated.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking = True

    def compute_mask(self, inputs: tf.Tensor, previous_mask: tf.Tensor | None = None) -> tf.Tensor:
        is_over_positions = previous_mask is not None and len(previous_mask.shape) == 2
        return previous_mask if is_over_positions else None

    def compute_output_shape(
        self, input_shape: Shape | None = None, *other_shapes: Shape, **named_shapes: Shape
    ) -> Shape:
        """Return the first input's shape; `summary` passes it by the name of `call`'s argument."""
        first_shape = input_shape or next(iter(named_shapes.values()))
        return tuple(first_shape)


def arguments_of(layer: keras.layers.Layer, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the constructor arguments with these names, which every layer stores as attributes."""
    return {name: getattr(layer, name) for name in names}
