"""The routes of TensorFlow Serving's REST API."""

import json

from aiohttp import web

from tfformer.serving import rest_format
from tfformer.serving.application_keys import API_KEYS, MODELS, QUEUE
from tfformer.serving.body import read_body
from tfformer.serving.model import ServedModel

NAME = "[^/:]+"
VERSIONS = ("", "/versions/{version:[0-9]{1,18}}", f"/labels/{{label:{NAME}}}")


def add_routes(app: web.Application) -> None:
    """Add status, metadata and prediction, of every model, version and label."""
    for version in VERSIONS:
        path = f"/v1/models/{{name:{NAME}}}{version}"
        app.router.add_get(path, _status)
        app.router.add_get(f"{path}/metadata", _metadata)
        app.router.add_post(f"{path}:predict", _predict)


async def _status(request: web.Request) -> web.Response:
    model, number = _asked(request)
    one = "version" in request.match_info or "label" in request.match_info
    numbers = [number] if one else list(model.versions)
    return web.json_response(rest_format.status(numbers))


async def _metadata(request: web.Request) -> web.Response:
    return web.json_response(rest_format.metadata(*_asked(request)))


async def _predict(request: web.Request) -> web.Response:
    request.app[API_KEYS].check(request.headers)
    model, number = _asked(request)
    version = model.versions[number]
    asked = rest_format.read_request(await read_body(request))
    name = rest_format.signature_name(asked)
    inputs = rest_format.read_inputs(asked, version.signature(name))
    outputs = await request.app[QUEUE].submit(version, name, inputs)
    answer = json.dumps(rest_format.answer(asked, outputs), ensure_ascii=False)
    return web.Response(text=answer, content_type="application/json")


def _asked(request: web.Request) -> tuple[ServedModel, int]:
    """The model and the number of its version that the path asks for."""
    model = request.app[MODELS].model(request.match_info["name"])
    number = request.match_info.get("version")
    label = request.match_info.get("label")
    return model, model.number(None if number is None else int(number), label)
