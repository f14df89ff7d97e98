"""DeepL's API, version 2."""

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tfformer.engines.engine import BEAM, GREEDY
from tfformer.serving.apis.fields import Key, Served, ServerState, described, fields_of
from tfformer.serving.apis.glossaries import stored_glossary
from tfformer.serving.apis.libretranslate import find_direction
from tfformer.serving.errors import DeeplError, RequestError
from tfformer.serving.languages import Direction, language_name
from tfformer.serving.queued_translator import in_order

MAX_TEXTS = 50  # per request, DeepL's limit
NO_LIMIT = 1_000_000_000_000  # characters; DeepL's value for contracts without a limit
SIGNATURES = {
    "latency_optimized": GREEDY,
    "quality_optimized": BEAM,
    "prefer_quality_optimized": BEAM,
}
LINE_END = re.compile(r"(?<=\S)[ \t]*\r?\n[ \t]*(?=\S)")  # between two lines of a paragraph
UNSUPPORTED = (
    *("glossary_ids", "style_id", "custom_instructions", "translation_memory_id"),
    *("ignore_tags", "splitting_tags", "non_splitting_tags"),
)
FORMALITY = {"more": ("<Sie>", "<formal>"), "less": ("<du>", "<informal>")}  # tags of a model
VARIANTS = {"en": ("en-US", "en-GB"), "pt": ("pt-PT", "pt-BR")}  # for DeepL's clients

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": DeeplError} for status in (400, 403, 404, 413, 415, 503)
}

router = APIRouter(prefix="/v2", tags=["DeepL"], responses=REFUSALS)


class DeeplRequest(Key):
    """Up to 50 texts to translate."""

    model_config = ConfigDict(extra="allow")

    text: Annotated[
        list[str], BeforeValidator(lambda text: [text] if isinstance(text, str) else text)
    ] = Field(min_length=1, max_length=MAX_TEXTS, examples=[["A dog."]])
    target_lang: str = Field(description="The language of the translation.", examples=["DE"])
    source_lang: str = Field("", description="The language of the texts; detected if left out.")
    tag_handling: Literal["", "html", "xml"] = Field(
        "", description="The markup of the texts; XML that is not well-formed is refused."
    )
    split_sentences: Literal["1", "nonewlines", "0"] = Field(
        "1",
        description="For text without markup: 0 treats each line as one sentence, and refuses a "
        "line that is longer than the model's limit; nonewlines treats line ends as spaces.",
    )
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] = Field(
        "default",
        description="Needs a model with tags for it; without, prefer_more and prefer_less are "
        "ignored, more and less refused.",
    )
    model_type: Literal["latency_optimized", "quality_optimized", "prefer_quality_optimized"] = (
        Field("quality_optimized", description="latency_optimized selects greedy search.")
    )
    glossary_id: str = Field("", description="A glossary of these languages.")
    show_billed_characters: bool = False


class DeeplTranslation(BaseModel):
    """The translation of one text."""

    detected_source_language: str
    text: str
    billed_characters: int | None = None
    model_type_used: str | None = None


class DeeplTranslations(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[DeeplTranslation]


class Language(BaseModel):
    """A language of this server."""

    language: str
    name: str
    supports_formality: bool | None = None


class Usage(BaseModel):
    """Characters translated since the server started; the limit is DeepL's value for no limit."""

    character_count: int
    character_limit: int = NO_LIMIT


class Listed(Key):
    """Which languages are listed."""

    type: Literal["source", "target"] = "source"


@router.post(
    "/translate",
    summary=f"Translate up to {MAX_TEXTS} texts",
    response_model_exclude_none=True,
    openapi_extra=described(DeeplRequest),
)
async def translate(
    fields: Annotated[DeeplRequest, fields_of(DeeplRequest)], state: Served
) -> DeeplTranslations:
    """Return the translations, in the order of the texts."""
    if given := [name for name in UNSUPPORTED if (fields.model_extra or {}).get(name)]:
        raise RequestError(f"{', '.join(given)} is not supported; leave it out")
    translations = await in_order(lambda text: _translated(state, fields, text), fields.text)
    return DeeplTranslations(translations=translations)


async def _translated(state: ServerState, fields: DeeplRequest, text: str) -> DeeplTranslation:
    direction, _ = await find_direction(
        state.directions, fields.source_lang, fields.target_lang, text
    )
    format: str = fields.tag_handling
    words = text
    if not format:
        format = "lines" if fields.split_sentences == "0" else "text"
        if fields.split_sentences == "nonewlines":
            words = LINE_END.sub(" ", text)
    formality = fields.formality.removeprefix("prefer_")
    if formality != "default":
        if tag := _formality_tag(direction, formality):
            direction = direction._replace(tag=tag)
        elif formality == fields.formality:
            beside = f" beside {direction.tag}" if direction.tag else ""
            raise RequestError(
                f"formality={formality} is not supported: {direction.model.name} has no tag for "
                f"it{beside}; send prefer_{formality}, or leave it out"
            )
    signature = SIGNATURES[fields.model_type]
    glossary = stored_glossary(state, fields.glossary_id, direction)
    translation = await state.translator.text(
        direction, words, format, signature, glossary=glossary
    )
    state.characters += len(text)
    source = direction.source.upper()
    answer = DeeplTranslation(detected_source_language=source, text=translation.text)
    if fields.show_billed_characters:
        answer.billed_characters = len(text)
    if "model_type" in fields.model_fields_set:
        answer.model_type_used = fields.model_type.removeprefix("prefer_")
    return answer


def _formality_tag(direction: Direction, formality: str) -> str:
    """Return the model's tag for "more" or "less" formality.

    It is "" if the model has none, or if the direction has a tag: a sentence has one tag.
    """
    tags = () if direction.tag else direction.model.newest.tags
    return next((tag for tag in FORMALITY[formality] if tag in tags), "")


_TYPE = {
    "name": "type",
    "in": "query",
    "schema": {"type": "string", "enum": ["source", "target"], "default": "source"},
}


@router.get(
    "/languages",
    summary="List the source languages, or the target languages",
    response_model_exclude_none=True,
    openapi_extra={"parameters": [_TYPE]},
)
async def languages(fields: Annotated[Listed, fields_of(Listed)], state: Served) -> list[Language]:
    """Return the languages."""
    if fields.type == "source":
        return [
            Language(language=code.upper(), name=language_name(code))
            for code in state.directions.targets
        ]
    formal = {each.target for each in state.directions if _formality_tag(each, "less")}
    return [
        Language(
            language=code.upper(), name=language_name(code), supports_formality=known in formal
        )
        for known in state.directions.target_languages
        for code in VARIANTS.get(known, (known,))
    ]


@router.get(
    "/usage",
    summary="Count the characters that this API has translated since the server started",
    dependencies=[fields_of(Key)],
)
async def usage(state: Served) -> Usage:
    """Return the count."""
    return Usage(character_count=state.characters)
