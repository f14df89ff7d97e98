"""LibreTranslate's API."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tfformer.serving.apis.fields import MAX_BYTES, Served, ServerState, fields_of
from tfformer.serving.apis.fields import described as described_body
from tfformer.serving.apis.glossaries import glossary_of
from tfformer.serving.errors import Error, RequestError
from tfformer.serving.languages import AUTO, Detected, Direction, Directions, language_name
from tfformer.serving.queued_translator import in_order
from tfformer.text import Glossary

MAX_ALTERNATIVES = 10
MAX_TEXTS = 1_000  # in one request

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error} for status in (400, 403, 413, 415, 503)
}

router = APIRouter(tags=["LibreTranslate"], responses=REFUSALS)


class Languages(BaseModel):
    """The languages of a text and of its translation."""

    source: str = Field(AUTO, description="The language of the text; auto detects it.")
    target: str = Field(description="The language of the translation.", examples=["de"])
    api_key: str = Field("", description="A key, if the server requires one.")


class Translate(Languages):
    """A text, or several texts, to translate."""

    q: str | list[str] = Field(
        description="The text, or a list of texts.",
        examples=["The animal is tired. Where is the station?"],
    )
    format: Literal["text", "html"] = Field("text", description="The format of the text.")
    alternatives: int = Field(
        0, ge=0, le=9_999, description=f"Further translations, at most {MAX_ALTERNATIVES}."
    )
    glossary: dict[str, str] | str = Field(
        "",
        description="Translations of terms: an object, or lines with a term, a tab and its "
        "translation. LibreTranslate has no such field.",
        examples=[{"animal": "Vieh"}],
        json_schema_extra={"x-extension-of": "tfformer"},
    )
    confidence: bool = Field(
        False,
        description="Whether to return how sure the model is, from 0 to 1; a model without "
        "alignments refuses it. LibreTranslate has no such field.",
        json_schema_extra={"x-extension-of": "tfformer"},
    )


class Detect(BaseModel):
    """A text in an unknown language."""

    q: str = Field(description="The text.", examples=["The animal is tired."])
    api_key: str = Field("", description="A key, if the server requires one.")


class DetectedLanguage(BaseModel):
    """A language that a text may be in, with its probability in per cent."""

    language: str
    confidence: float


class Translated(BaseModel):
    """The translation of a text; for a list of texts, each value is a list."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    confidence: float | list[float] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815


class SourceLanguage(BaseModel):
    """A language that the server translates from."""

    code: str
    name: str
    targets: list[str]


@router.post(
    "/translate",
    summary="Translate a text, or a list of texts",
    response_model=Translated,
    response_model_exclude_none=True,
    openapi_extra=described_body(Translate),
)
async def translate(
    fields: Annotated[Translate, fields_of(Translate)], state: Served
) -> dict[str, Any]:
    """Return the translation; if `q` is a list, each value is a list."""
    glossary = await glossary_of(fields.glossary, field="glossary") if fields.glossary else None
    if isinstance(fields.q, str):
        return await _translated(state, fields, fields.q, glossary)
    if len(fields.q) > MAX_TEXTS:
        raise RequestError(f"q must be up to {MAX_TEXTS} texts; it is {len(fields.q)}")
    answers = await in_order(lambda text: _translated(state, fields, text, glossary), fields.q)
    names = answers[0] if answers else ["translatedText"]
    lists: dict[str, Any] = {}
    for name in names:
        lists[name] = [answer[name] for answer in answers]
    return lists


async def _translated(
    state: ServerState, fields: Translate, text: str, glossary: Glossary | None
) -> dict[str, Any]:
    direction, detected = await find_direction(state.directions, fields.source, fields.target, text)
    if fields.confidence and not direction.model.newest.can_align:
        raise RequestError(
            f"{direction.model.name} has no word alignments, which confidence needs; leave it out, "
            "or serve a run, or an export as saved_model or litert"
        )
    ranks = 1 + min(fields.alternatives, MAX_ALTERNATIVES)
    best, *others = [
        await state.translator.text(direction, text, fields.format, rank=rank, glossary=glossary)
        for rank in range(ranks)
    ]
    answer: dict[str, Any] = {"translatedText": best.text}
    if fields.alternatives:
        texts = dict.fromkeys(other.text for other in others)
        answer["alternatives"] = [each for each in texts if each != best.text]
    if fields.confidence:
        answer["confidence"] = await state.translator.confidence(direction, best.pairs)
    if detected is not None:
        answer["detectedLanguage"] = detected._asdict()
    return answer


async def find_direction(
    directions: Directions, source: str, target: str, text: str
) -> tuple[Direction, Detected | None]:
    """Return the direction between two languages, and the source language if it was detected."""
    if source not in ("", AUTO):
        return directions.find(source, target), None
    known = directions.sources_of(target)
    detected = (await directions.detect(text, known))[0] if known else Detected(AUTO, 0.0)
    return directions.find(detected.language, target), detected


@router.post(
    "/detect",
    summary="Guess the language of a text, among the languages of this server",
    response_model=list[DetectedLanguage],
    openapi_extra=described_body(Detect),
)
async def detect(fields: Annotated[Detect, fields_of(Detect)], state: Served) -> list[Any]:
    """Return the languages, most likely first."""
    return [language._asdict() for language in await state.directions.detect(fields.q)]


@router.get("/languages", summary="List the source languages with their target languages")
async def languages(state: Served) -> list[SourceLanguage]:
    """Return the languages."""
    return [
        SourceLanguage(code=source, name=language_name(source), targets=targets)
        for source, targets in state.directions.targets.items()
    ]


@router.get("/frontend/settings", summary="Tell a page what this server can do")
async def settings(state: Served) -> dict[str, Any]:
    """Return the settings."""
    targets = state.directions.targets
    source = next(iter(targets), AUTO)
    target = next(iter(targets.get(source, [])), "")
    return {
        "apiKeys": state.keys.are_required,
        "keyRequired": state.keys.are_required,
        "charLimit": MAX_BYTES,
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "frontendTimeout": 500,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
    }
