"""Errors about requests, and the responses that clients get for them."""

import reprlib

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

MAX_NAME = 255  # characters of a model's, label's, signature's or tensor's name
MISTAKE = "internal error; see the server's log"


class RequestError(Exception):
    """A rejected request, with an HTTP status; the message states the reason and the remedy."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Error(BaseModel):
    """The reason for a refusal, and the remedy."""

    error: str


class DeeplError(BaseModel):
    """The reason for a refusal, and the remedy."""

    message: str


def error_answer(path: str, status: int, message: str) -> JSONResponse:
    """Return an error in the form of the API that `path` belongs to.

    DeepL's errors are `{"message": ...}`, those of LibreTranslate and TensorFlow Serving `{"error":
    ...}`.
    """
    key = "message" if path.startswith("/v2/") else "error"
    headers = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({key: message}, status, headers)


def add_error_answers(app: FastAPI) -> None:
    """Answer every refusal with its reason as JSON."""

    @app.exception_handler(RequestError)
    async def refused(request: Request, error: RequestError) -> JSONResponse:
        return error_answer(request.url.path, error.status, str(error))

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, error: HTTPException) -> JSONResponse:
        """Refuse an unknown path; below /v1/ with 400, as TensorFlow Serving does."""
        path = request.url.path
        status = 400 if path.startswith("/v1/") else error.status_code
        return error_answer(path, status, f"Malformed request: {request.method} {path}")


def check_name(kind: str, name: str) -> None:
    """Refuse a name that is longer than any name in an export."""
    if len(name) > MAX_NAME:
        raise RequestError(
            f"the {kind} name {reprlib.repr(name)} has {len(name)} characters; "
            f"a name may have up to {MAX_NAME}"
        )
