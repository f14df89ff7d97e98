"""The routes of DeepL's API, version 2."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from aiohttp import web

from tfformer.serving.application_keys import API_KEYS, DIRECTIONS, TRANSLATIONS, USAGE
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import Direction, language_name
from tfformer.serving.request_fields import Fields, as_json, read_fields
from tfformer.serving.translations import BEAM, GREEDY, in_order

MAX_TEXTS = 50  # in one request, as DeepL has it
NO_LIMIT = 1_000_000_000_000  # characters, as DeepL says it of contracts without a limit
NEUTRAL = ("default", "prefer_more", "prefer_less")  # formality that a model may leave aside
FORMATS = {"": "text", "html": "html", "xml": "xml"}  # by tag_handling
SIGNATURES = {
    "latency_optimized": GREEDY,
    "quality_optimized": BEAM,
    "prefer_quality_optimized": BEAM,
}
SPLITS = ("1", "nonewlines", "0")
LINE_END = re.compile(r"(?<=\S)[ \t]*\r?\n[ \t]*(?=\S)")  # between two lines of a paragraph
UNSUPPORTED = (
    *("glossary_id", "glossary_ids", "style_id", "custom_instructions", "translation_memory_id"),
    *("ignore_tags", "splitting_tags", "non_splitting_tags"),
)
VARIANTS = {"en": ("en-US", "en-GB"), "pt": ("pt-PT", "pt-BR")}  # of targets: DeepL's clients ask


def add_routes(app: web.Application) -> None:
    """Add translation, languages and usage."""
    app.router.add_post("/v2/translate", _translate)
    app.router.add_get("/v2/languages", _languages)
    app.router.add_get("/v2/usage", _usage)


async def _translate(request: web.Request) -> web.Response:
    fields = await _read_allowed_fields(request)
    texts = fields.texts("text")
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise RequestError(
            "INVALID_ARGUMENT", f"text must be 1 to {MAX_TEXTS} texts; it is {len(texts)}"
        )
    _refuse_unsupported(fields)
    return as_json({"translations": await in_order(partial(_translated, request, fields), texts)})


async def _read_allowed_fields(request: web.Request) -> Fields:
    fields = await read_fields(request)
    request.app[API_KEYS].check(request.headers, fields.text("auth_key", ""))
    return fields


def _refuse_unsupported(fields: Fields) -> None:
    formality = fields.text("formality", "default")
    if formality not in NEUTRAL:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"formality {formality[:20]!r} is not supported; a model has the formality of its "
            f"training text. Choose one of {', '.join(NEUTRAL)}",
        )
    if given := [name for name in UNSUPPORTED if fields.holds(name)]:
        raise RequestError("INVALID_ARGUMENT", f"{', '.join(given)} is not supported; leave it out")


async def _translated(request: web.Request, fields: Fields, text: str) -> dict[str, Any]:
    direction = await _direction(request, fields, text)
    tags = fields.choice("tag_handling", FORMATS, "")
    model_type = fields.choice("model_type", SIGNATURES, "quality_optimized")
    split = fields.choice("split_sentences", SPLITS, "1")
    format = "lines" if split == "0" and not tags else FORMATS[tags]
    words = LINE_END.sub(" ", text) if split == "nonewlines" and not tags else text
    signature = SIGNATURES[model_type]
    translation = await request.app[TRANSLATIONS].text(direction, words, format, signature)
    request.app[USAGE].characters += len(text)
    answer: dict[str, Any] = {
        "detected_source_language": direction.source.upper(),
        "text": translation,
    }
    if fields.flag("show_billed_characters"):
        answer["billed_characters"] = len(text)
    if "model_type" in fields:
        answer["model_type_used"] = model_type.removeprefix("prefer_")
    return answer


async def _direction(request: web.Request, fields: Fields, text: str) -> Direction:
    """The direction that is asked for; without a source language the likeliest one."""
    directions = request.app[DIRECTIONS]
    target = fields.text("target_lang")
    source = fields.text("source_lang", "")
    if not source and (known := directions.sources_of(target)):
        source = (await directions.detect(text, known))[0].language
    return directions.find(source, target)


async def _languages(request: web.Request) -> web.Response:
    fields = await _read_allowed_fields(request)
    directions = request.app[DIRECTIONS]
    if fields.choice("type", ("source", "target"), "source") == "source":
        return as_json([_described(code) for code in directions.targets])
    codes = with_variants(directions.target_languages)
    return as_json([_described(code) | {"supports_formality": False} for code in codes])


def with_variants(codes: Iterable[str]) -> list[str]:
    """Return target languages as DeepL names them, some by their regions.

    Example:
        >>> with_variants(["de", "en"])
        ['de', 'en-US', 'en-GB']
    """
    return [one for code in codes for one in VARIANTS.get(code, (code,))]


def _described(code: str) -> dict[str, Any]:
    return {"language": code.upper(), "name": language_name(code)}


async def _usage(request: web.Request) -> web.Response:
    await _read_allowed_fields(request)
    count = request.app[USAGE].characters
    return as_json({"character_count": count, "character_limit": NO_LIMIT})
