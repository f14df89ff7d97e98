"""The base of a recipe's sections: frozen, strictly typed, with errors of one line."""

import reprlib
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails


class Section(BaseModel):
    """Named values, checked when the section is made.

    A value must have the type of its key; only a whole number may stand for a float. An unknown key
    is an error.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Check plain values, as YAML and JSON give them, and fill in the defaults.

        Args:
            values: Key -> value.

        Returns:
            The section.

        Raises:
            ValueError: A key is unknown, or a value breaks a rule. The message is one line about
                the first of them.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(_message(cls, error.errors()[0])) from None

    def to_dict(self) -> dict[str, Any]:
        """Return key -> plain value; `from_dict` makes the same section from it."""
        return self.model_dump()


def _message(kind: type[BaseModel], error: ErrorDetails) -> str:
    """Name the key, its value and the rule that the value breaks."""
    if error["type"] == "value_error":  # raised by a validator, with a message of its own
        return str(error["ctx"]["error"])
    setting = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{setting} is not known; known are {', '.join(_known_keys(kind, error))}"
    value = reprlib.repr(error["input"])
    if error["type"] == "model_type":
        return f"{setting or 'the recipe'} must hold keys, not {value}"
    return f"{setting}={value} {error['msg'].replace('Input should', 'must')}"


def _known_keys(kind: type[BaseModel], error: ErrorDetails) -> list[str]:
    """Return the keys of the section that has the unknown one."""
    *sections, _ = error["loc"]
    for name in sections:
        annotation = kind.model_fields[str(name)].annotation
        assert annotation is not None
        kind = annotation
    return list(kind.model_fields)
