"""The translation page, and the description of the APIs as OpenAPI and as a page."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse

from tfformer.engines.engine import BEAM, PREFIX
from tfformer.html_page import fill_page
from tfformer.serving.apis.fields import Served
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import directions_of
from tfformer.serving.security import content_security_policy

TRANSLATE_PAGE = Path(__file__).with_name("serve.html")
DOCS_PAGE = Path(__file__).with_name("docs.html")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def page(state: Served) -> HTMLResponse:
    """Return the translation page."""
    known = [m for m in state.models if BEAM in m.newest.signatures]
    if not known:
        raise RequestError(
            f"{', '.join(state.models.names)} has no signature {BEAM}, which the page "
            "needs; use the REST API",
            404,
        )
    data = {
        "models": [
            {
                "name": model.name,
                "languages": languages,
                "examples": _texts(model.newest.manifest.get("examples")),
                "hasAlignments": model.newest.can_align,
                "hasContinuations": PREFIX in model.newest.signatures,
            }
            for model in known
            for languages in [list(each[:2]) for each in directions_of(model)] or [[]]
        ],
        "keyRequired": state.keys.are_required,
    }
    return _filled(TRANSLATE_PAGE, data)


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Return the description of the APIs as a page."""
    return _filled(DOCS_PAGE, request.app.openapi())


def description(app: FastAPI) -> dict[str, Any]:
    """Return the description of the APIs as OpenAPI, with the languages of this server."""
    described = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # FastAPI's status; we answer 400
    state = app.state.serving
    directions = [
        f"{source} to {target}"
        for source, targets in state.directions.targets.items()
        for target in targets
    ]
    names = ", ".join(state.models.names)
    languages = f", from {', '.join(directions)}" if directions else ""
    described["info"]["description"] += f" Models: {names}{languages}."
    return described


def _filled(template: Path, data: object) -> HTMLResponse:
    text = fill_page(template, data)
    return HTMLResponse(text, headers={"Content-Security-Policy": content_security_policy(text)})


def _texts(value: object) -> list[str]:
    """Return a list of strings unchanged, and an empty list for any other value."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return value
    return []
