"""The route that links the words of a sentence with those of its translation."""

from aiohttp import web

from tfformer.serving.application_keys import TRANSLATIONS
from tfformer.serving.libretranslate import named_direction, read_allowed_fields
from tfformer.serving.request_fields import as_json


def add_routes(app: web.Application) -> None:
    """Add the links of words."""
    app.router.add_post("/align", _align)


async def _align(request: web.Request) -> web.Response:
    fields = await read_allowed_fields(request)
    source, translation = fields.text("q"), fields.text("translation")
    direction = await named_direction(request, fields, source)
    links = await request.app[TRANSLATIONS].links(direction.model, source, translation)
    return as_json({"links": links})
