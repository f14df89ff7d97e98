"""Registration of classes with Keras, and checks of their arguments."""

import numbers
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


def require_sizes(**sizes: int) -> None:
    """Refuse sizes that are not whole numbers from 1.

    Args:
        **sizes: The arguments by name.

    Raises:
        ValueError: A size is too small or not a whole number.

    Example:
        >>> require_sizes(d_model=8, num_heads=0)
        Traceback (most recent call last):
        ValueError: num_heads=0 must be a whole number from 1
    """
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(f"{name}={size!r} must be a whole number from 1")


def require_rate(name: str, rate: float) -> float:
    """Return a dropout rate that is from 0 to below 1.

    Args:
        name: The argument's name, for the message.
        rate: The argument's value.

    Returns:
        The rate.

    Raises:
        ValueError: The rate is outside its range.

    Example:
        >>> require_rate("dropout", 1.5)
        Traceback (most recent call last):
        ValueError: dropout=1.5 must be at least 0 and below 1
    """
    if not 0 <= rate < 1:
        raise ValueError(f"{name}={rate!r} must be at least 0 and below 1")
    return rate


def arguments_of(layer: keras.layers.Layer, names: tuple[str, ...]) -> dict:
    """Return the constructor arguments of these names.

    Every layer keeps them as attributes.
    """
    return {name: getattr(layer, name) for name in names}
