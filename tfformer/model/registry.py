"""Registration of classes with Keras, and the types of their arguments."""

from typing import Any

import keras

register = keras.saving.register_keras_serializable(package="tfformer")

Shape = tuple[int | None, ...]
DType = str | keras.DTypePolicy | None  # None for Keras' global policy
Regularizer = str | keras.regularizers.Regularizer | None


def arguments_of(layer: keras.layers.Layer, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the constructor arguments of these names.

    Every layer keeps them as attributes.
    """
    return {name: getattr(layer, name) for name in names}
