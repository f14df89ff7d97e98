"""Checks for function arguments; each raises a ValueError that names the value and the rule."""

import math
import numbers
from typing import TypeVar

Value = TypeVar("Value")


def require(name: str, value: Value, known: tuple[Value, ...]) -> Value:
    """Return the value of the argument `name` if it is one of `known`."""
    if value not in known:
        choices = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r} is not known; choose one of {choices}")
    return value


def require_size(name: str, size: int, least: int = 1) -> int:
    """Return a whole number, such as a NumPy integer, as a plain `int`.

    Keras accepts only plain integers as sizes, and JSON can encode only them.
    """
    if not isinstance(size, numbers.Integral) or size < least:
        raise ValueError(f"{name}={size!r} must be a whole number of at least {least}")
    return int(size)


def require_fraction(name: str, value: float) -> float:
    """Return a number from 0 to 1, both included, such as an epsilon, as a plain `float`."""
    if not 0 <= _number(name, value) <= 1:
        raise ValueError(f"{name}={value!r} must be from 0 to 1")
    return float(value)


def require_number(name: str, value: float, below: float = math.inf) -> float:
    """Return a number from 0 to below a limit, such as a rate or a factor, as a plain `float`."""
    if not 0 <= _number(name, value) < below:
        limit = "finite" if below == math.inf else f"below {below}"
        raise ValueError(f"{name}={value!r} must be at least 0 and {limit}")
    return float(value)


def _number(name: str, value: float) -> float:
    if not isinstance(value, numbers.Real):
        raise ValueError(f"{name}={value!r} is of type {type(value).__name__}; pass a number")
    return float(value)
