"""Glossaries of DeepL's API, which the server keeps in memory."""

import asyncio
import csv
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from tfformer.serving.apis.fields import Key, Served, ServerState, described, fields_of
from tfformer.serving.errors import DeeplError, RequestError
from tfformer.serving.languages import Direction
from tfformer.text import Glossary, Term

MAX_BYTES = 64 * 2**20  # of all glossaries
BYTES_OF_GLOSSARY = 2_000  # besides its name and its terms
BYTES_OF_TERM = 300  # besides its texts
TSV = "text/tab-separated-values"

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": DeeplError} for status in (400, 403, 404, 413, 415)
}

router = APIRouter(prefix="/v2", tags=["DeepL"], responses=REFUSALS)


class NewGlossary(Key):
    """The terms of a language pair."""

    name: str = Field(min_length=1, max_length=1024)
    source_lang: str = Field(examples=["EN"])
    target_lang: str = Field(examples=["DE"])
    entries: str = Field(
        description="Per line a term, a tab and its translation; for csv, with a comma.",
        examples=["animal\tVieh"],
    )
    entries_format: Literal["tsv", "csv"] = "tsv"


class GlossaryInfo(BaseModel):
    """A glossary without its entries."""

    glossary_id: str
    name: str
    ready: bool = True
    source_lang: str
    target_lang: str
    creation_time: str
    entry_count: int


class GlossaryList(BaseModel):
    """The glossaries of the server."""

    glossaries: list[GlossaryInfo]


class GlossaryLanguages(BaseModel):
    """A language pair that a glossary may have."""

    source_lang: str
    target_lang: str


class GlossaryLanguagePairs(BaseModel):
    """All language pairs of the server."""

    supported_languages: list[GlossaryLanguages]


@router.post(
    "/glossaries",
    summary="Create a glossary",
    status_code=201,
    openapi_extra=described(NewGlossary),
)
async def create(
    fields: Annotated[NewGlossary, fields_of(NewGlossary)], state: Served
) -> GlossaryInfo:
    """Store a glossary until it is deleted or the server stops."""
    direction = state.directions.find(fields.source_lang, fields.target_lang)
    glossary = await glossary_of(fields.entries, fields.entries_format)
    if not glossary.terms:
        raise RequestError("the field entries has no term; send at least one line")
    info = GlossaryInfo(
        glossary_id=str(uuid.uuid4()),
        name=fields.name,
        source_lang=direction.source,
        target_lang=direction.target,
        creation_time=datetime.now(UTC).isoformat(),
        entry_count=len(glossary.terms),
    )
    used = sum(memory_of(*kept) for kept in state.glossaries.values())
    if used + memory_of(info, glossary) > MAX_BYTES:
        raise RequestError(
            f"the glossaries of this server would exceed {MAX_BYTES // 2**20} MiB; delete another "
            "glossary, or send fewer entries"
        )
    state.glossaries[info.glossary_id] = info, glossary
    return info


@router.get("/glossaries", summary="List the glossaries", dependencies=[fields_of(Key)])
async def listed(state: Served) -> GlossaryList:
    """Return all glossaries."""
    return GlossaryList(glossaries=[info for info, _ in state.glossaries.values()])


@router.get(
    "/glossaries/{glossary_id}", summary="Describe a glossary", dependencies=[fields_of(Key)]
)
async def shown(glossary_id: str, state: Served) -> GlossaryInfo:
    """Return a glossary without its entries."""
    return _stored(state, glossary_id)[0]


@router.get(
    "/glossaries/{glossary_id}/entries",
    summary="List the entries of a glossary",
    dependencies=[fields_of(Key)],
    response_class=Response,
    responses={200: {"content": {TSV: {"schema": {"type": "string"}}}}},
)
async def entries(glossary_id: str, state: Served) -> Response:
    """Return per line a term, a tab and its translation."""
    _, glossary = _stored(state, glossary_id)
    lines = [f"{term.source}\t{term.target}" for term in glossary.terms]
    return Response("\n".join(lines), media_type=TSV)


@router.delete(
    "/glossaries/{glossary_id}",
    summary="Delete a glossary",
    status_code=204,
    dependencies=[fields_of(Key)],
)
async def delete(glossary_id: str, state: Served) -> None:
    """Delete a glossary; requests that use it are still answered."""
    _stored(state, glossary_id)
    del state.glossaries[glossary_id]


@router.get(
    "/glossary-language-pairs",
    summary="List the language pairs that a glossary may have",
    dependencies=[fields_of(Key)],
)
async def language_pairs(state: Served) -> GlossaryLanguagePairs:
    """Return the language pairs of the models."""
    pairs = [
        GlossaryLanguages(source_lang=source, target_lang=target)
        for source, targets in state.directions.targets.items()
        for target in targets
    ]
    return GlossaryLanguagePairs(supported_languages=pairs)


async def glossary_of(
    entries: str | Mapping[str, str], entries_format: str = "tsv", field: str = "entries"
) -> Glossary:
    """Return the glossary in a field of a request; refuse an incorrect row."""

    def read() -> Glossary:
        rows: Iterable[Sequence[str]]
        if not isinstance(entries, str):
            rows = entries.items()
        elif entries_format == "csv":
            rows = csv.reader(entries.splitlines(keepends=True))
        else:
            rows = (line.split("\t") for line in entries.splitlines())
        columns = ([" ".join(column.split()) for column in row] for row in rows)
        return Glossary((Term(*[*row, "", ""][:2]) for row in columns), field)

    try:
        return await asyncio.to_thread(read)
    except (ValueError, csv.Error) as error:
        raise RequestError(str(error)) from None


def stored_glossary(state: ServerState, glossary_id: str, direction: Direction) -> Glossary | None:
    """Return the glossary of a request to translate; None without an id."""
    if not glossary_id:
        return None
    info, glossary = _stored(state, glossary_id)
    if (info.source_lang, info.target_lang) != (direction.source, direction.target):
        raise RequestError(
            f"the glossary {info.name!r} is for {info.source_lang} to {info.target_lang}, not for "
            f"{direction.source} to {direction.target}; use a glossary for these languages"
        )
    return glossary


def _stored(state: ServerState, glossary_id: str) -> tuple[GlossaryInfo, Glossary]:
    if glossary_id not in state.glossaries:
        raise RequestError(f"there is no glossary {glossary_id[:40]!r}; create it first", 404)
    return state.glossaries[glossary_id]


def memory_of(info: GlossaryInfo, glossary: Glossary) -> int:
    """Return an upper bound of the memory that a glossary takes."""
    texts = sum(  # a term is stored again, with spaces between its words
        3 * sys.getsizeof(term.source) + sys.getsizeof(term.target) for term in glossary.terms
    )
    terms = texts + BYTES_OF_TERM * len(glossary.terms)
    return terms + sys.getsizeof(info.name) + BYTES_OF_GLOSSARY
