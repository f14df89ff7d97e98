"""The base class of a recipe's sections: frozen, strictly typed, with one-line errors."""

import reprlib
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

RULES = {  # pydantic's error types, in words for readers who do not know Python
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "literal_error": "must be {expected}",
}


class Section(BaseModel):
    """Named values, checked when the section is created.

    A value must have the type of its key, except that an integer is accepted as a float. An unknown
    key is an error.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Check plain values, as in YAML and JSON, and fill in the defaults.

        An unknown key or an invalid value raises ValueError with one line about the first such key.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(_message(cls, error.errors()[0])) from None

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some values changed; the whole section is checked again."""
        return self.from_dict({**dict(self), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return key -> plain value; `from_dict` makes the same section from it."""
        return self.model_dump()


def _message(kind: type[BaseModel], error: ErrorDetails) -> str:
    """Name the key, its value and the rule that the value breaks."""
    if error["type"] == "value_error":  # raised by a validator that writes the message
        return str(error["ctx"]["error"])
    setting = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        *sections, _ = error["loc"]
        for name in sections:
            annotation: Any = kind.model_fields[str(name)].annotation
            kind = annotation
        return f"{setting} is not known; the known keys are {', '.join(kind.model_fields)}"
    value = reprlib.repr(error["input"])
    if error["type"] == "model_type":
        return f"{setting or 'the recipe'} must be a mapping of keys, not {value}"
    rule = RULES.get(error["type"], error["msg"])
    return f"{setting}={value} {rule.format_map(error.get('ctx', {}))}"
