"""The parameters of handlers: the server's state, and the fields of a request.

Clients send the fields as JSON, as a form or in the query string.
"""

import reprlib
from collections.abc import Collection, Iterable
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from tfformer.serving.errors import RequestError
from tfformer.serving.languages import Directions
from tfformer.serving.queued_translator import QueuedTranslator
from tfformer.serving.request_queue import RequestQueue
from tfformer.serving.security import ApiKeys
from tfformer.serving.served_models import ServedModels
from tfformer.text import Glossary

MAX_BYTES = 2 * 2**20  # in the body of a request
MAX_FIELDS = 1_000  # fields in a form
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

Fields = TypeVar("Fields", bound=BaseModel)


class Key(BaseModel):
    """The field that every request to DeepL's API has."""

    auth_key: str = Field("", description="A key, if the server requires one.")


class ServerState:
    """The data that requests share."""

    def __init__(self, models: ServedModels, keys: Collection[str] = ()) -> None:
        self.models = models
        self.queue = RequestQueue()
        self.keys = ApiKeys(keys)
        self.directions = Directions(models)
        self.translator = QueuedTranslator(self.queue)
        self.glossaries: dict[str, tuple[Any, Glossary]] = {}  # id -> DeepL's description, terms
        self.characters = 0


async def _state(request: Request) -> ServerState:
    return request.app.state.serving


Served = Annotated[ServerState, Depends(_state)]  # a parameter of a handler


def fields_of(model: type[Fields]) -> Any:
    """Return a dependency that reads a request's fields and checks its API key.

    The body may be JSON, a URL-encoded or multipart form, or empty; its fields override those in
    the query string. A field that is null is left out.
    """

    async def read(request: Request, state: Served) -> Fields:
        values = await _values(request)
        state.keys.check(request.headers, values.get("api_key") or values.get("auth_key"))
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return model.model_validate(given)
        except ValidationError as error:
            raise RequestError(_reason(error)) from None

    return Depends(read)


def _reason(error: ValidationError) -> str:
    """Return one line about the first mistake in a request, with the field and its value."""
    first = error.errors()[0]
    field = first["loc"][0]
    if first["type"] == "missing":
        return f"the field {field} is missing"
    _, _, rule = first["msg"].partition(" should ")  # Input should ..., String should ...
    reason = f"must {rule}" if rule else f"is incorrect ({first['msg']})"
    return f"the field {field} {reason}; it is {reprlib.repr(first['input'])}"


def described(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a body that `fields_of` reads, for `openapi_extra`."""
    schema = model.model_json_schema()
    content = {kind: {"schema": schema} for kind in (JSON, FORM, MULTIPART)}
    return {"requestBody": {"required": True, "content": content}}


async def _values(request: Request) -> dict[str, Any]:
    query = _collected(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == MULTIPART:
        try:
            form = await request.form(max_fields=MAX_FIELDS, max_part_size=MAX_BYTES)
        except (HTTPException, ValueError, KeyError) as error:
            reason = error.detail if isinstance(error, HTTPException) else error
            raise RequestError(f"the form cannot be read: {reason}") from None
        return query | _collected(form.multi_items())
    body = await request.body()
    if not body:
        return query
    if kind == JSON:
        return query | read_object(body)
    if kind == FORM:
        return query | _form(body)
    raise RequestError(
        f"the body's type is {kind or 'not stated'}; send {JSON}, or a form as {FORM} or "
        f"{MULTIPART}",
        415,
    )


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request (UTF-8)."""
    try:
        values = from_json(body)
    except ValueError as error:
        raise RequestError(f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(values, dict):
        raise RequestError(f"the body must be a JSON object; it is a {type(values).__name__}")
    return values


def _form(body: bytes) -> dict[str, Any]:
    """Read a form in UTF-8; Starlette would read it as Latin-1."""
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise RequestError(f"the form cannot be read: {error}") from None
    return _collected(pairs)


def _collected(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return name -> value; the values of a repeated name are a list."""
    lists: dict[str, list[Any]] = {}
    for name, value in pairs:
        lists.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in lists.items()}
