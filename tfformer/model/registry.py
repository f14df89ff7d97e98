"""Registration of classes with Keras, and checks of their arguments."""

from typing import TypeVar

import keras

Value = TypeVar("Value")

register = keras.saving.register_keras_serializable(package="tfformer")

Shape = tuple[int | None, ...]


def require(name: str, value: Value, known: tuple[Value, ...]) -> Value:
    """Return `value` if it is one of `known`.

    Args:
        name: The argument's name, for the message.
        value: The argument's value.
        known: The values that it may have.

    Returns:
        The value.

    Raises:
        ValueError: The value is not known; the message lists those that are.

    Example:
        >>> require("norm", "pre", ("post", "pre"))
        'pre'
        >>> require("norm", "sandwich", ("post", "pre"))
        Traceback (most recent call last):
        ValueError: norm='sandwich' is not known; choose one of 'post', 'pre'
    """
    if value not in known:
        choices = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r} is not known; choose one of {choices}")
    return value


def arguments_of(layer: keras.layers.Layer, names: tuple[str, ...]) -> dict:
    """Return the constructor arguments of these names.

    Every layer keeps them as attributes.
    """
    return {name: getattr(layer, name) for name in names}
