"""The description of the server's APIs.

Programs read it as OpenAPI, people as a page.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tfformer.html_page import fill_page
from tfformer.serving.browser_guard import content_security_policy
from tfformer.serving.request_fields import as_json
from tfformer.version import __version__

DESCRIPTION = Path(__file__).with_name("openapi.yaml")
PAGE = Path(__file__).with_name("openapi.html")


def add_routes(app: web.Application) -> None:
    """Add the description and its page."""
    app.router.add_get("/openapi.json", _description)
    app.router.add_get("/docs", _page)


@cache
def description() -> dict[str, Any]:
    """Return the description of all routes, as OpenAPI 3.1 has it."""
    described = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))
    described["info"]["version"] = __version__
    return described


async def _description(request: web.Request) -> web.Response:
    return as_json(description())


async def _page(request: web.Request) -> web.Response:
    page = fill_page(PAGE, description())
    headers = {"Content-Security-Policy": content_security_policy(page)}
    return web.Response(text=page, content_type="text/html", headers=headers)
