"""Texts of any length, as the body of a request, are answered while they arrive."""

import asyncio
import io
import json
from collections.abc import AsyncIterator

import pytest
from support.served_texts import backwards, events, with_client

from tfformer.serving.apis import fields
from tfformer.text.segmentation import BLOCK

PLACE = "/translate/stream?source=en&target=de"
PLAIN, JSON = {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}


def long_text(characters: int) -> str:
    """A text of more characters; most are rules, which no model has to translate."""
    return f"One of many.\n{'-' * 2_000}\n" * (characters // 2_000)


def test_the_answer_begins_before_the_text_has_ended():
    first, rest = long_text(2 * BLOCK), "The end.\n" * 3
    first_event = asyncio.Event()

    async def text() -> AsyncIterator[bytes]:
        yield first.encode()
        await asyncio.wait_for(first_event.wait(), 60)
        yield rest.encode()

    async def scenario(client):
        async with client.post(PLACE, data=text(), headers=PLAIN) as response:
            beginning = await response.content.readuntil(b"\n\n")
            first_event.set()
            return response.status, events((beginning + await response.read()).decode())

    status, found = with_client(scenario, backwards("en-de", []))
    assert (status, found[-1]) == (200, ("end", {}))
    pieces = [data for _, data in found[:-1]]
    assert "".join(piece["source"] for piece in pieces) == first + rest
    for piece in pieces:
        source = piece["source"]
        assert piece["translation"] == (source[::-1] if piece["is_sentence"] else source)


def test_a_text_that_is_too_long_for_other_requests_is_streamed():
    text = " " * (fields.MAX_BYTES + 1) + "The end."

    async def scenario(client):
        as_json = io.BytesIO(json.dumps({"q": text}).encode())
        async with client.post(PLACE, data=as_json, headers=JSON) as response:
            refused = response.status, (await response.json())["error"]
        async with client.post(PLACE, data=io.BytesIO(text.encode()), headers=PLAIN) as response:
            return refused, events(await response.text())

    (status, reason), found = with_client(scenario, backwards("en-de", []))
    assert status == 413
    assert "a text of any length as text/plain to /translate/stream" in reason
    assert "".join(data["source"] for _, data in found[:-1]) == text
    assert found[-2][1]["translation"] == ".dne ehT"


@pytest.mark.parametrize("before", [b"", long_text(10 * BLOCK).encode()], ids=["first", "later"])
def test_a_text_that_is_not_utf_8_is_refused_or_ends_the_stream(before):
    async def scenario(client):
        async with client.post(
            PLACE, data=io.BytesIO(before + b"\xff!"), headers=PLAIN
        ) as response:
            return response.status, await response.text()

    status, answer = with_client(scenario, backwards("en-de", []))
    assert status == (200 if before else 400)
    assert "the text is not UTF-8 (invalid start byte); convert it first" in answer
    if before:
        assert [name for name, _ in events(answer)[-2:]] == ["piece", "error"]


def test_a_text_as_a_body_needs_its_languages_and_a_key():
    async def scenario(client):
        statuses = []
        for place in ("/translate/stream", "/translate/stream?target=de&api_key=none"):
            async with client.post(place, data=b"One.", headers=PLAIN) as response:
                statuses.append((response.status, (await response.json())["error"]))
        async with client.post(f"{PLACE}&api_key=key", data=b"One.", headers=PLAIN) as response:
            return statuses, events(await response.text())

    statuses, found = with_client(scenario, backwards("en-de", []), keys=["key"])
    assert [status for status, _ in statuses] == [403, 403]
    assert found[0][1]["translation"] == ".enO"
