"""The routes of LibreTranslate's API."""

from typing import Any

from aiohttp import web

from tfformer.serving.application_keys import API_KEYS, DIRECTIONS, MODELS, TRANSLATIONS
from tfformer.serving.body import MAX_BYTES
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import AUTO, Detected, Direction, Directions, language_name
from tfformer.serving.request_fields import Fields, as_json, query_fields, read_fields
from tfformer.serving.translations import Translations, in_order

FORMATS = ("text", "html")
MAX_ALTERNATIVES = 10
MAX_TEXTS = 1_000  # in one request


def add_routes(app: web.Application) -> None:
    """Add translation, languages, detection and the settings of a page."""
    app.router.add_post("/translate", _translate)
    app.router.add_post("/detect", _detect)
    app.router.add_get("/languages", _languages)
    app.router.add_get("/frontend/settings", _settings)


async def _translate(request: web.Request) -> web.Response:
    fields = await read_allowed_fields(request)
    texts = fields.texts("q")
    if len(texts) > MAX_TEXTS:
        raise RequestError(
            "INVALID_ARGUMENT", f"q must be up to {MAX_TEXTS} texts; it is {len(texts)}"
        )
    format = fields.choice("format", FORMATS, "text")
    alternatives = min(fields.number("alternatives"), MAX_ALTERNATIVES)

    async def translated(text: str) -> dict[str, Any]:
        return await _translated(request, fields, text, format, alternatives)

    answers = await in_order(translated, texts)
    if not fields.is_list("q"):
        return as_json(answers[0])
    names = answers[0] if answers else {"translatedText": []}

    def of_all(name: str) -> list[Any]:
        return [answer[name] for answer in answers]

    return as_json({name: of_all(name) for name in names})


async def read_allowed_fields(request: web.Request) -> Fields:
    """Return the fields of a request; RequestError if its key is not known."""
    return _allowed(request, await read_fields(request))


def allowed_query(request: web.Request) -> Fields:
    """Return the fields of a request's query; RequestError if its key is not known."""
    return _allowed(request, query_fields(request))


def _allowed(request: web.Request, fields: Fields) -> Fields:
    request.app[API_KEYS].check(request.headers, fields.text("api_key", ""))
    return fields


async def _translated(
    request: web.Request, fields: Fields, text: str, format: str, alternatives: int
) -> dict[str, Any]:
    direction, detected = await find_direction(request, fields, text)
    translations = request.app[TRANSLATIONS]
    answer: dict[str, Any] = {"translatedText": await translations.text(direction, text, format)}
    if alternatives:
        found = answer["translatedText"]
        others = await _others(translations, direction, text, format, alternatives)
        answer["alternatives"] = [one for one in dict.fromkeys(others) if one != found]
    if detected is not None:
        answer["detectedLanguage"] = detected._asdict()
    return answer


async def _others(
    translations: Translations, direction: Direction, text: str, format: str, count: int
) -> list[str]:
    """Texts of the second best sentences, of the third best and so on."""
    ranks = range(1, count + 1)
    return [await translations.text(direction, text, format, rank=rank) for rank in ranks]


async def find_direction(
    request: web.Request, fields: Fields, text: str
) -> tuple[Direction, Detected | None]:
    """Return the direction that a request asks for.

    The language comes with it where it had to be detected.

    Raises:
        RequestError: No model translates between these languages.
    """
    directions = request.app[DIRECTIONS]
    source, target = fields.text("source", AUTO), fields.text("target")
    if source != AUTO:
        return directions.find(source, target), None
    known = directions.sources_of(target)
    detected = (await directions.detect(text, known))[0] if known else Detected(AUTO, 0.0)
    return directions.find(detected.language, target), detected


async def named_direction(request: web.Request, fields: Fields, text: str) -> Direction:
    """Return the direction of the model that a request names, or of its languages.

    Raises:
        RequestError: There is no such model, or none translates between these languages.
    """
    if "model" in fields:
        return Directions.of(request.app[MODELS].model(fields.text("model")))
    return (await find_direction(request, fields, text))[0]


async def _detect(request: web.Request) -> web.Response:
    fields = await read_allowed_fields(request)
    detected = await request.app[DIRECTIONS].detect(fields.text("q"))
    return as_json([one._asdict() for one in detected])


async def _languages(request: web.Request) -> web.Response:
    targets = request.app[DIRECTIONS].targets
    return as_json(
        [
            {"code": source, "name": language_name(source), "targets": targets[source]}
            for source in targets
        ]
    )


async def _settings(request: web.Request) -> web.Response:
    targets = request.app[DIRECTIONS].targets
    source = next(iter(targets), AUTO)
    languages = {
        "source": {"code": source, "name": language_name(source)},
        "target": _named(targets.get(source, [])),
    }
    return as_json(
        {
            "apiKeys": request.app[API_KEYS].are_required,
            "keyRequired": request.app[API_KEYS].are_required,
            "charLimit": MAX_BYTES,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "frontendTimeout": 500,
            "language": languages,
        }
    )


def _named(codes: list[str]) -> dict[str, str]:
    code = next(iter(codes), "")
    return {"code": code, "name": language_name(code)}
