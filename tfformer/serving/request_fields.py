"""The fields of a request as known APIs send them.

They come as JSON, as a form or in the query string.
"""

import json
import reprlib
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from tfformer.serving.body import read_body, read_form
from tfformer.serving.errors import RequestError
from tfformer.serving.rest_format import read_request

FORM = "application/x-www-form-urlencoded"
FORM_IN_PARTS = "multipart/form-data"
MAX_FIELDS = 1_000  # of a form
MAX_NUMBER = 9_999


class Fields:
    """Checked values by name; a mistake is a `RequestError` that names the field.

    Args:
        values: Strings, lists of strings, numbers and truth values by name.

    Example:
        >>> fields = Fields({"q": "A dog.", "alternatives": "2"})
        >>> fields.text("q"), fields.number("alternatives"), fields.text("format", "text")
        ('A dog.', 2, 'text')
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def holds(self, name: str) -> bool:
        """Return whether the field holds more than an empty string or list."""
        return self._values.get(name) not in (None, "", [])

    def is_list(self, name: str) -> bool:
        """Return whether the field holds a list."""
        return isinstance(self._values.get(name), list)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; without a default there must be one."""
        if name not in self and default is not None:
            return default
        self._require(name)
        return _unicode(name, self._values[name])

    def texts(self, name: str) -> list[str]:
        """Return a list of strings; a single string is a list of one."""
        self._require(name)
        value = self._values[name]
        items = value if isinstance(value, list) else [value]
        return [_unicode(name, item) for item in items]

    def number(self, name: str) -> int:
        """Return a whole number from 0 to 9,999; 0 if there is none."""
        if name not in self:
            return 0
        value = self._values[name]
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6:
            value = int(value)
        if type(value) is not int or not 0 <= value <= MAX_NUMBER:
            raise _wrong(name, value, f"a whole number from 0 to {MAX_NUMBER}")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; false if there is none."""
        if name not in self:
            return False
        value = self._values[name]
        if str(value).lower() not in ("true", "false", "1", "0"):
            raise _wrong(name, value, "true or false")
        return str(value).lower() in ("true", "1")

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of the choices; the empty one is as if it were left out."""
        value = self.text(name, default)
        if value not in choices:
            names = ", ".join(filter(None, choices))
            raise _wrong(name, value, f"one of {names}{', or left out' * ('' in choices)}")
        return value

    def _require(self, name: str) -> None:
        if name not in self:
            raise RequestError("INVALID_ARGUMENT", f"the field {name} is missing")


async def read_fields(request: web.Request) -> Fields:
    """Return the fields of a request.

    Args:
        request: Its body is JSON, a form of either kind or empty. The body counts before the query.

    Raises:
        RequestError: The body is of another type, or not of the type that it claims.
    """
    if request.content_type == FORM_IN_PARTS:
        return Fields(_query(request) | _fields(await read_form(request)))
    body = _body_fields(request.content_type, await read_body(request))
    return Fields(_query(request) | body)


def query_fields(request: web.Request) -> Fields:
    """Return the fields of a request's query alone."""
    return Fields(_query(request))


def _query(request: web.Request) -> dict[str, Any]:
    return _fields([(name, value) for name, value in request.query.items()])


def _body_fields(content_type: str, body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    if content_type == "application/json":
        return read_request(body)
    if content_type != FORM:
        raise RequestError(
            "UNSUPPORTED_TYPE",
            f"the body is {content_type}; send application/json or a form, as {FORM} or "
            f"{FORM_IN_PARTS}",
        )
    try:
        text = body.decode("utf-8")
        return _fields(
            parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
        )
    except ValueError as error:
        raise RequestError("INVALID_ARGUMENT", f"the form cannot be read: {error}") from None


def _fields(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Strings by name; a name that comes more than once has a list."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: found if len(found) > 1 else found[0] for name, found in values.items()}


def _unicode(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(name, ascii(value), "Unicode, without half a surrogate pair") from None
    return value


def _wrong(name: str, value: object, rule: str) -> RequestError:
    return RequestError(
        "INVALID_ARGUMENT", f"the field {name} must be {rule}; it is {reprlib.repr(value)}"
    )


def as_json(content: object, status: int = 200) -> web.Response:
    """Return an answer in JSON, with letters of all languages as they are."""
    text = json.dumps(content, ensure_ascii=False)
    return web.Response(text=text, status=status, content_type="application/json")
