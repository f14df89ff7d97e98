"""Errors as answers, each in the form of the API that was asked."""

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from tfformer.serving.body import MAX_BYTES
from tfformer.serving.errors import MISTAKE, RequestError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNSUPPORTED_TYPE": 415,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}
KEYS = {"/v2/": "message"}  # DeepL's; TensorFlow Serving's and LibreTranslate's is "error"


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error with its reason as JSON, so that none ends the server."""
    try:
        return await handler(request)
    except RequestError as error:
        return _answer(request, HTTP_STATUS[error.code], str(error))
    except web.HTTPRequestEntityTooLarge:
        message = (
            f"the body has more than {MAX_BYTES} bytes; send less at a time, or a text of any "
            "length as text/plain to /translate/stream"
        )
        return _answer(request, 413, message)
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
        return _no_route(request, error)
    except web.RequestPayloadError as error:
        return _answer(request, 400, f"the body cannot be read: {error}")
    except web.HTTPException as error:
        return _answer(request, error.status, error.text or error.reason)
    except Exception:
        logging.getLogger(__name__).exception("%s %s", request.method, request.path)
        return _answer(request, 500, MISTAKE)


def _no_route(request: web.Request, error: web.HTTPException) -> web.Response:
    """As TensorFlow Serving has it below /v1/, and as HTTP has it elsewhere."""
    status = 400 if request.path.startswith("/v1/") else error.status
    message = f"Malformed request: {request.method} {request.path}"
    response = _answer(request, status, message)
    if "Allow" in error.headers:
        response.headers["Allow"] = error.headers["Allow"]
    return response


def _answer(request: web.Request, status: int, message: str) -> web.Response:
    key = next((key for path, key in KEYS.items() if request.path.startswith(path)), "error")
    headers = {"Retry-After": "1"} if status == 503 else {}
    return web.json_response({key: message}, status=status, headers=headers)
