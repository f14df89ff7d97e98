"""The page to type into."""

from pathlib import Path

from aiohttp import web

from tfformer.html_page import fill_page
from tfformer.serving.application_keys import API_KEYS, MODELS
from tfformer.serving.browser_guard import content_security_policy
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import languages_of
from tfformer.serving.model import ServedModel

PAGE = Path(__file__).with_name("serve.html")
PAGE_SIGNATURE = "translate_beam"


def add_routes(app: web.Application) -> None:
    """Add the page."""
    app.router.add_get("/", _page)


async def _page(request: web.Request) -> web.Response:
    models = request.app[MODELS]
    known = [model for model in models if PAGE_SIGNATURE in model.newest.signatures]
    if not known:
        raise RequestError(
            "NOT_FOUND",
            f"{', '.join(models.names)} has no {PAGE_SIGNATURE}, which the page needs; "
            "use REST requests",
        )
    described = {
        "models": [_described(model) for model in known],
        "keyRequired": request.app[API_KEYS].are_required,
    }
    page = fill_page(PAGE, described)
    headers = {"Content-Security-Policy": content_security_policy(page)}
    return web.Response(text=page, content_type="text/html", headers=headers)


def _described(model: ServedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "languages": languages_of(model) or [],
        "examples": texts(model.newest.manifest.get("examples")),
        "hasAlignments": model.align is not None,
    }


def texts(value: object) -> list[str]:
    """Return a list of strings as it is, and an empty one in place of anything else."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return value
    return []
