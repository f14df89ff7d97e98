"""The description of the server's APIs.

Programs read it as OpenAPI, people as a page.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tfformer.html_page import fill_page
from tfformer.serving import deepl
from tfformer.serving.application_keys import DIRECTIONS, MODELS
from tfformer.serving.browser_guard import content_security_policy
from tfformer.serving.languages import AUTO, Directions
from tfformer.serving.model import ServedModels
from tfformer.serving.request_fields import as_json
from tfformer.serving.rest_format import request_schemas
from tfformer.version import __version__

DESCRIPTION = Path(__file__).with_name("openapi.yaml")
PAGE = Path(__file__).with_name("openapi.html")

Schema = dict[str, Any]


def add_routes(app: web.Application) -> None:
    """Add the description and its page."""
    app.router.add_get("/openapi.json", _description)
    app.router.add_get("/docs", _page)


def description(models: ServedModels, directions: Directions) -> Schema:
    """Return the description of all routes, as OpenAPI 3.1 has it.

    Args:
        models: The models of this server, whose names and signatures are described.
        directions: The languages that it translates between.
    """
    described = deepcopy(_of_any_server())
    described["info"]["version"] = __version__
    parts = described["components"]
    for schema in (parts["parameters"]["name"]["schema"], parts["schemas"]["Model"]):
        schema["enum"] = models.names
    for name, codes in _languages(directions).items():
        if codes:
            parts["schemas"][name] |= {"enum": codes, "examples": codes[-1:]}
    parts["schemas"]["Predict"]["anyOf"] = _distinct(_predictions(models))
    return described


@cache
def _of_any_server() -> Schema:
    return yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))


def _languages(directions: Directions) -> dict[str, list[str]]:
    """The codes that each schema of a language has."""
    sources, targets = list(directions.targets), directions.target_languages
    return {
        "Source": [AUTO, *sources] if sources else [],
        "Target": targets,
        "DeeplSource": list(map(str.upper, sources)),
        "DeeplTarget": list(map(str.upper, deepl.with_variants(targets))),
    }


def _predictions(models: ServedModels) -> Iterator[Schema]:
    """The schemas of requests for each signature of each model."""
    for model in models:
        for name, signature in model.newest.signatures.items():
            yield from request_schemas(name, signature)


def _distinct(schemas: Iterable[Schema]) -> list[Schema]:
    found: list[Schema] = []
    for schema in schemas:
        if schema not in found:
            found.append(schema)
    return found


def _described(request: web.Request) -> Schema:
    return description(request.app[MODELS], request.app[DIRECTIONS])


async def _description(request: web.Request) -> web.Response:
    return as_json(_described(request))


async def _page(request: web.Request) -> web.Response:
    page = fill_page(PAGE, _described(request))
    headers = {"Content-Security-Policy": content_security_policy(page)}
    return web.Response(text=page, content_type="text/html", headers=headers)
