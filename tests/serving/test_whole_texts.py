"""Whole texts through the server: stream, cache, API keys, formats."""

import asyncio
import json
import re
import threading
import tracemalloc
import unittest.mock
from collections.abc import Callable

import numpy as np
import pytest
from support.alignments import last_word_first
from support.served_texts import backwards, client_of, events, in_thread, posted, with_client

from tfformer.engines.engine import PREFIXES, TEXTS
from tfformer.serving import queued_translator
from tfformer.serving.apis import glossaries
from tfformer.serving.application import application
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import Directions, _detector, _label, directions_of
from tfformer.serving.queued_translator import TranslatedPiece, TranslationCache
from tfformer.serving.security import read_keys
from tfformer.serving.served_models import ServedModels
from tfformer.text import Glossary, Segment, Term
from tfformer.text.languages import language_tag

LONG = "One two three four, five six seven eight nine ten."
TEXT = f"First one. Second one?\n\n  {LONG}\nFirst one."


def test_a_stream_gives_the_text_back_in_pieces():
    asked = []

    async def scenario(client):
        body = {"q": TEXT, "source": "en", "target": "de"}
        async with client.post("/translate/stream", json=body) as response:
            return response.headers, events(await response.text())

    headers, received = with_client(scenario, backwards("en-de", asked))
    assert headers["Content-Type"].startswith("text/event-stream")
    assert [name for name, _ in received] == ["piece"] * (len(received) - 1) + ["end"]
    pieces = [data for name, data in received if name == "piece"]
    assert "".join(piece["source"] for piece in pieces) == TEXT
    undivided = [piece for piece in pieces if piece["source"] != LONG]
    for piece in undivided:
        source = piece["source"]
        assert piece["translation"] == (source[::-1] if piece["is_sentence"] else source)
        assert piece["others"] == ([source] if piece["is_sentence"] else [])
    assert len(undivided) == len(pieces) - 1
    assert all(len(sentence.split()) <= 7 for sentence in asked)


def test_an_event_is_one_line_of_data_for_every_client():
    """JavaScript and Python's splitlines end a line at U+2028, too."""
    text = "One line.\u2028Another\x85 line."

    async def scenario(client):
        body = {"q": text, "source": "en", "target": "de"}
        async with client.post("/translate/stream", json=body) as response:
            return await response.text()

    lines = with_client(scenario, backwards("en-de", [])).splitlines()
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert "".join(piece["source"] for piece in data if piece) == text
    assert len(lines) == 3 * len(data)  # the name, the data and an empty line


def test_a_stream_may_name_its_model_and_refuses_what_it_cannot():
    async def scenario(client):
        async with client.post("/translate/stream", json={"q": "A.", "model": "mine"}) as response:
            named = events(await response.text())[0][1]["translation"]
        statuses = []
        for body in ({"q": "A."}, {"q": "A.", "target": "de"}, {"q": "A.", "model": "other"}):
            async with client.post("/translate/stream", json=body) as response:
                statuses.append((response.status, (await response.json())["error"]))
        return named, statuses

    named, [no_target, unknown, unknown_model] = with_client(scenario, backwards("mine", []))
    assert named == ".A"
    assert no_target == (400, "the field target is missing")
    assert unknown[0] == 400
    assert unknown[1] == (
        "translation to de is not supported, because no languages are stated; serve the model as "
        "en-de=MODEL"
    )
    assert unknown_model == (404, "there is no model 'other'; this server has 'mine'")


def test_a_stream_refuses_markup_by_name():
    async def scenario(client):
        body = {"q": "The <b>dog</b>.", "target": "de", "format": "html"}
        async with client.post("/translate/stream", json=body) as response:
            refusal = response.status, await response.json()
        async with client.post("/translate/stream", json=body | {"format": "text"}) as response:
            return refusal, response.status

    asked = []
    message = "the field format must be 'text'; it is 'html'"
    refusal, status = with_client(scenario, backwards("en-de", asked))
    assert refusal == (400, {"error": message})
    assert status == 200


def test_the_work_for_a_column_of_numbers_grows_with_its_lines(monkeypatch):
    """Not with their square, because other requests would have to wait."""
    reads = []

    class Number(Segment):
        @property
        def is_sentence(self) -> bool:
            reads.append(self.text)
            return False

    lines = [Number(f"{number}\n", True) for number in range(2_000)]
    monkeypatch.setattr(queued_translator, "segments", lambda *_: lines)

    async def scenario(client):
        body = {"q": "any", "source": "en", "target": "de"}
        async with client.post("/translate/stream", json=body) as response:
            return events(await response.text())

    received = with_client(scenario, backwards("en-de", []))
    assert [data["source"] for _, data in received[:-1]] == [line.text for line in lines]
    assert len(reads) <= 3 * len(lines)


async def send(server, body: dict) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection and request a stream."""
    reader, writer = await asyncio.open_connection(server.host, server.port, limit=1_000)
    content = json.dumps(body).encode()
    head = f"POST /translate/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}"
    writer.write(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + content)
    return reader, writer


ASKED = {"q": "A.", "source": "en", "target": "de"}


def stream_of(pieces: Callable) -> tuple[int, str]:
    """Return status and text of a stream with scripted pieces."""

    async def run():
        app = application(ServedModels([backwards("en-de", [])]))
        app.state.serving.translator.pieces = pieces
        async with (
            client_of(app) as client,
            client.post("/translate/stream", json=ASKED) as response,
        ):
            return response.status, await response.text()

    return asyncio.run(run())


def test_a_mistake_within_a_stream_is_its_last_event(caplog):
    async def pieces(direction, text):
        yield TranslatedPiece("a", "b", True, [])
        raise KeyError("a mistake")

    status, answer = stream_of(pieces)
    assert status == 200
    message = {"error": "internal error; see the server's log"}
    assert events(answer)[-1] == ("error", message)
    assert "a mistake" in caplog.text


def test_a_mistake_before_a_stream_is_answered_with_500(caplog):
    async def pieces(direction, text):
        raise KeyError("a mistake")
        yield

    status, answer = stream_of(pieces)
    assert status == 500
    assert "internal error" in json.loads(answer)["error"]


def test_the_work_for_a_client_that_has_gone_is_given_up():
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def text(*_, **__):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            given_up.set()

    async def scenario():
        app = application(ServedModels([backwards("en-de", [])]))
        app.state.serving.translator.text = text
        async with client_of(app) as client:
            request = asyncio.create_task(client.post("/translate", json=ASKED))
            await asyncio.wait_for(begun.wait(), 20)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
            await asyncio.wait_for(given_up.wait(), 20)

    asyncio.run(scenario())


@pytest.mark.parametrize("api", ["libretranslate", "deepl"])
def test_the_texts_of_one_request_run_together(api):
    """In order, in a few batches instead of one by one."""
    texts = [f"Page {letters(number)}." for number in range(40)]
    sizes = []
    model = backwards("en-de", [])
    run = model.newest.run

    def noting_sizes(signature, inputs):
        sizes.append(len(inputs["text"]))
        return run(signature, inputs)

    model.newest.run = noting_sizes
    if api == "deepl":
        body = {"text": texts, "source_lang": "EN", "target_lang": "DE"}
        [(_, answer)] = posted([model], ("/v2/translate", body))
        translations = [row["text"] for row in answer["translations"]]
    else:
        body = {"q": texts, "source": "en", "target": "de"}
        [(_, answer)] = posted([model], ("/translate", body))
        translations = answer["translatedText"]
    assert translations == [text[::-1] for text in texts]
    assert sum(sizes) == len(texts)
    assert len(sizes) < len(texts) / 2


def test_the_first_error_ends_the_work_for_the_other_texts():
    begun, given_up = [], []

    async def answer(text: str) -> str:
        begun.append(text)
        try:
            await asyncio.sleep(0 if text == "0" else 60)
        except asyncio.CancelledError:
            given_up.append(text)
            raise
        raise RequestError(f"{text} is refused")

    async def scenario():
        with pytest.raises(RequestError, match="0 is refused"):
            await queued_translator.in_order(answer, list(map(str, range(100))))
        return list(given_up)

    others = asyncio.run(scenario())
    assert sorted(others) == sorted(begun[1:])
    assert len(others) <= queued_translator.TEXTS_AT_ONCE


def test_the_first_error_of_a_stream_ends_the_work_for_its_other_sentences():
    given_up = asyncio.Event()

    async def text(direction, sentence):
        try:
            await asyncio.sleep(0 if sentence == "One." else 60)
        except asyncio.CancelledError:
            given_up.set()
            raise
        raise RequestError("the queue is full", 503)

    async def scenario():
        app = application(ServedModels([backwards("en-de", [])]))
        app.state.serving.translator.text = text
        body = ASKED | {"q": "One. Two."}
        async with client_of(app) as client, client.post("/translate/stream", json=body) as answer:
            return answer.status, given_up.is_set()

    assert asyncio.run(scenario()) == (503, True)


def test_a_line_that_the_model_would_truncate_is_refused():
    """DeepL's split_sentences=0 does not divide lines; other texts are divided."""
    asked = []
    body = {"text": [f"A dog.\n{LONG}"], "target_lang": "DE", "source_lang": "EN"}
    lines, sentences = posted(
        [backwards("en-de", asked)],
        ("/v2/translate", body | {"split_sentences": "0"}),
        ("/v2/translate", body),
    )
    reason = (
        "the sentence 'One two thre...ght nine ten.' has 10 tokens, and the model reads at most 7; "
        "send a shorter sentence"
    )
    assert lines == (400, {"message": reason})
    assert sentences[0] == 200
    assert " ".join(asked) == f"A dog. {LONG}"  # none of them twice


@pytest.mark.parametrize(
    ("signatures", "missing"),
    [
        ({"serving_default": TEXTS, "score": TEXTS}, "translate_beam"),  # a language model
        ({"translate_ids": TEXTS}, "serving_default and no translate_beam"),  # --no-text
    ],
)
def test_a_model_that_does_not_translate_texts_is_refused_by_its_signatures(signatures, missing):
    model = backwards("en-de", [])
    model.newest.signatures = signatures
    [refusal] = posted([model], ("/translate", {"q": "A dog.", "source": "en", "target": "de"}))
    reason = (
        f"en-de has no signature {missing}, which texts need; serve a translation model, exported "
        "without --no-text"
    )
    assert refusal == (400, {"error": reason})


def test_a_request_of_too_many_texts_is_refused():
    body = {"q": ["A."] * 1_001, "source": "en", "target": "de"}
    [refusal] = posted([backwards("en-de", [])], ("/translate", body))
    assert refusal == (400, {"error": "q must be up to 1000 texts; it is 1001"})


def test_wordings_that_differ_in_capitals_alone_are_left_out():
    model = backwards("en-de", [])
    texts = ["In Maßen.", "IN Maßen.", "In Massen.", "in maßen."]  # no ß is ss
    wordings = np.array([[text.encode() for text in texts]], object)
    model.newest.run = lambda *_: {"translations": wordings, "scores": np.zeros(wordings.shape)}
    body = {"q": "A dog.", "source": "en", "target": "de", "alternatives": 3}
    [(_, answer)] = posted([model], ("/translate", body))
    assert answer == {"translatedText": "In Maßen.", "alternatives": ["In Massen."]}


def test_markup_stays_where_it_was():
    body = {"q": "<p>A <b>dog</b>.</p>", "target": "de", "format": "html"}
    deepl = {"text": ["<p>A dog.</p>"], "target_lang": "DE", "tag_handling": "html"}
    requests = ("/translate", body), ("/v2/translate", deepl)
    [(_, marked), (_, plain)] = posted([backwards("en-de", [])], *requests)
    assert re.findall(r"</?\w>", marked["translatedText"]) == ["<p>", "<b>", "</b>", "</p>"]
    assert plain["translations"][0]["text"] == "<p>.god A</p>"


def backwards_links(sources: list[str], targets: list[str]) -> list[list[tuple[int, int]]]:
    """Return the alignments of `backwards`, which puts the last word first."""
    assert all(target == source[::-1] for source, target in zip(sources, targets, strict=True))
    return list(map(last_word_first, sources))


def test_markup_goes_with_its_words_where_the_model_has_alignments():
    """The page has more sentences than a batch; sentences without markup are not aligned."""
    aligned = []

    def align(sources, targets):
        aligned.extend(sources)
        return backwards_links(sources, targets)

    lines = [f"<p><b>Line {letters(number)}</b> of one page.</p>" for number in range(100)]
    body = {"q": "".join([*lines, "<p>No tag.</p>"]), "target": "de", "format": "html"}
    [(_, answer)] = posted([backwards("en-de", [], align)], ("/translate", body))
    pages = [f"<p>.egap eno fo <b>{letters(n)[::-1]} eniL</b></p>" for n in range(100)]
    assert answer["translatedText"] == "".join([*pages, "<p>.gat oN</p>"])
    assert sorted(aligned) == sorted(f"Line {letters(n)} of one page." for n in range(100))


def test_words_that_belong_together_are_told():
    """Models without alignments, and sentences that are too long for the model, have no links."""
    pair = {"q": "A dog.", "translation": ".god A"}
    asked = [
        pair | {"model": "mine"},
        pair | {"source": "en", "target": "de"},
        {"q": LONG, "translation": LONG[::-1], "model": "mine"},
        {"q": "A dog.", "model": "mine"},
        pair | {"model": "other"},
    ]
    models = [backwards("mine", [], backwards_links), backwards("en-de", [])]
    answers = posted(models, *(("/align", body) for body in asked))
    known, of_export, too_long, incomplete, unknown = answers
    words = {"confidence": pytest.approx(0.5), "word_confidences": [0.25, 1]}  # ".god", "A"
    assert known == (200, {"links": [[0, 1], [1, 0]]} | words)
    assert of_export == too_long == (200, UNKNOWN_WORDS)
    assert incomplete == (400, {"error": "the field translation is missing"})
    assert unknown[0] == 404


UNKNOWN_WORDS = {"links": [], "confidence": None, "word_confidences": []}


@pytest.mark.parametrize(("tokens", "links"), [(7, [[0, 1], [1, 0]]), (8, [])])
def test_the_tokens_of_a_translation_are_those_of_its_vocabulary(tokens, links):
    model = backwards("mine", [], backwards_links)
    model.newest.tokenizers.target.encode = lambda texts: [[5] * tokens for _ in texts]
    model.newest.count_tokens = lambda texts: [2 if text == "A dog." else 99 for text in texts]
    pair = {"q": "A dog.", "translation": ".god A", "model": "mine"}
    [(status, answer)] = posted([model], ("/align", pair))
    assert (status, answer["links"]) == (200, links)


def test_the_confidence_of_a_text_is_computed_where_it_is_asked_for():
    """It is the geometric mean over the tokens of all sentences, whatever their format."""
    align = unittest.mock.Mock(side_effect=backwards_links)
    asked = []
    models = [backwards("en-de", [], align), backwards("de-en", asked)]
    texts = {"source": "en", "target": "de"}
    page = {"q": "<p>A dog.</p><p>A cat.</p>", "format": "html", "confidence": True}
    not_asked, one, several, of_page, refused = posted(
        models,
        ("/translate", texts | {"q": "A dog."}),
        ("/translate", texts | {"q": "A dog. It is.", "confidence": True, "alternatives": 1}),
        ("/translate", texts | {"q": ["A dog.", ""], "confidence": True}),
        ("/translate", texts | page),
        ("/translate", {"q": "Hund", "source": "de", "target": "en", "confidence": True}),
    )
    assert not_asked == (200, {"translatedText": ".god A"})
    assert align.call_count == 4
    half = pytest.approx(0.5)  # the words .god, A and .tac
    assert one[1]["confidence"] == pytest.approx((1 / 4 * 1 * 1 / 3 * 1 / 2) ** (1 / 4))
    assert several[1]["confidence"] == [half, 1]
    assert of_page[1] == {"translatedText": "<p>.god A</p><p>.tac A</p>", "confidence": half}
    reason = (
        "de-en has no word alignments, which confidence needs; leave it out, or serve a run, or an "
        "export as saved_model or litert"
    )
    assert refused == (400, {"error": reason})
    assert asked == []


SOURCE_WORDS = (
    "[...document.querySelectorAll('#mirror .linked')].map(one => one.textContent).join()"
)
TARGET_WORDS = SOURCE_WORDS.replace("#mirror", "#translation")
SEVENTH = "The model is 14% sure of this word."


def test_the_page_marks_the_words_that_belong_together(browser):
    """The page marks only whole sentences without alignments or for another wording."""
    models = [backwards("mine", [], backwards_links), backwards("export", [])]
    with in_thread(*models) as server:
        browser.open(server.rest + "/")
        browser.until("document.readyState + document.activeElement.id", "completesource")
        browser.type("One. A tired <dog sleeps.")
        browser.until("document.querySelector('#state').textContent", "2 sentences.")
        second = "[data-number='2']"
        browser.hover(f"#translation {second}")
        words = f'document.querySelectorAll("#translation {second} .word").length'
        browser.until(words, 4)
        browser.hover(f"#translation {second} .word:nth-child(1)")
        browser.until(SOURCE_WORDS, "sleeps.")
        browser.until(TARGET_WORDS, ".speels")
        browser.hover(f"#mirror {second} .word:nth-child(3)")  # behind the text area
        browser.until(SOURCE_WORDS, "<dog")
        browser.until(TARGET_WORDS, "god<")
        browser.until(f'document.querySelector("#translation {second} .unsure").title', SEVENTH)
        assert browser.evaluate(f'document.querySelectorAll("{second} .unsure").length') == 3
        browser.hover("#translation [data-number='0']")
        browser.until(SOURCE_WORDS + " + " + TARGET_WORDS, "One..enO")

        browser.click(f"#translation {second}")
        browser.until("document.querySelectorAll('#wordings button').length", 1)
        browser.click("#wordings button")
        browser.until(words, 0)

        browser.evaluate("document.querySelector('#models').value = 1")
        browser.evaluate("document.querySelector('#models').dispatchEvent(new Event('change'))")
        browser.until("document.querySelector('#model').textContent", "export")
        browser.until("document.querySelector('#state').textContent", "2 sentences.")
        browser.hover(f"#translation {second}")
        browser.until("document.querySelectorAll('.chosen').length", 2)
        assert browser.evaluate("document.querySelectorAll('.word').length") == 0


def test_a_word_of_the_page_is_replaced_by_mouse_and_by_keys(browser):
    """The model continues a prefix with the next word, with it in capitals, and with no word."""
    model = backwards("mine", [])
    run = model.newest.run

    def continue_or_run(signature, inputs):
        if signature != "translate_prefix":
            return run(signature, inputs)
        [text], [prefix] = inputs["text"], inputs["prefix"]
        begun, turned = prefix.decode().split(), text.decode()[::-1].split()
        rest = turned[len(begun) :]
        rows = [[*begun, *rest], [*begun, *[word.upper() for word in rest[:1]], *rest[1:]], begun]
        translations = np.array([[" ".join(row).encode() for row in rows]], object)
        return {"translations": translations, "probabilities": np.array([[0.6, 0.3, 0.004]])}

    model.newest.run = continue_or_run
    model.newest.check_prefixes = lambda prefixes: None
    model.newest.signatures = model.newest.signatures | {"translate_prefix": PREFIXES}
    translation, focus, items = (
        "document.querySelector('#translation').textContent",
        "document.activeElement.textContent",
        "[...document.querySelectorAll('#alternatives:popover-open button')]"
        ".map(item => item.innerText.replace('\\n', ' ')).join('|')",
    )
    with in_thread(model) as server:
        browser.open(server.rest + "/")
        browser.until("document.readyState + document.activeElement.id", "completesource")
        browser.type("A dog sleeps. Why?")
        browser.until("document.querySelector('#state').textContent", "2 sentences.")
        assert browser.evaluate(translation) == ".speels god A ?yhW"
        browser.click("[data-number='0'] .word:nth-of-type(2)")
        browser.until(items, "god A 60%|GOD A 30%|(end) < 1%")
        browser.click("#alternatives button:nth-child(2)")
        browser.until(translation, ".speels GOD A ?yhW")
        assert browser.evaluate(focus) == "GOD"
        browser.press("ArrowRight", 39)
        browser.press("Enter", 13)
        browser.until(items, "A 60%|(end) < 1%")  # the same word twice
        browser.press("ArrowDown", 40)
        browser.until(focus, "(end) < 1%")
        browser.press("Escape", 27)
        browser.until(items, "")
        assert browser.evaluate(focus) == "A"


def letters(number: int) -> str:
    """Write a number in letters, because digits would survive the reversal."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_many_texts_at_once_keep_their_order():
    async def scenario(client):
        async def translate(number: int) -> str:
            lines = "\n".join(f"Page {letters(number)} line {letters(n)}." for n in range(30))
            body = {"q": lines, "source": "en", "target": "de"}
            async with client.post("/translate", json=body) as response:
                return lines, (await response.json())["translatedText"]

        return await asyncio.gather(*map(translate, range(40)))

    for lines, translation in with_client(scenario, backwards("en-de", [])):
        assert translation == "\n".join(line[::-1] for line in lines.split("\n"))


def test_the_cache_answers_what_was_asked_before():
    asked, text = [], {"q": "A dog. A cat.", "source": "en"}
    requests = [("/translate", text | {"target": target}) for target in ("de", "de", "fr")]
    answers = posted([backwards("en-de", asked), backwards("en-fr", asked)], *requests)
    assert {status for status, _ in answers} == {200}
    assert asked == ["A dog.", "A cat."] * 2  # once for each model


def test_the_cache_has_a_bound_and_forgets_the_oldest():
    version = threading.Lock()  # any object that can be dropped
    cache = TranslationCache(max_bytes=10_000)
    for number in range(1_000):
        cache.keep(version, "beam", str(number), ["x"])
        cache.find(version, "beam", "0")
    assert 10 < len(cache) < 25
    assert cache.find(version, "beam", "0") == ["x"]
    assert cache.find(version, "beam", "999") == ["x"]
    assert cache.find(version, "beam", "1") is None
    cache.keep(version, "beam", "large", ["x" * 20_000])
    assert cache.find(version, "beam", "large") is None


def test_glossaries_have_a_limit_of_memory(monkeypatch):
    monkeypatch.setattr(glossaries, "MAX_BYTES", 5_500)
    fields = {"name": "x", "source_lang": "en", "target_lang": "de"}
    entries = ("", "a\tb", "c\t" + "d" * 1_000, "e\tf", "g\th")
    bodies = [("/v2/glossaries", fields | {"entries": lines}) for lines in entries]
    empty, *others = posted([backwards("en-de", [])], *bodies)
    assert (empty[0], "entries has no term" in empty[1]["message"]) == (400, True)
    assert [status for status, _ in others] == [201, 400, 201, 400]
    assert "delete another glossary, or send fewer entries" in others[-1][1]["message"]


@pytest.mark.parametrize(
    "word", ["a{}", "{} term", "\u5317{}", "\u5317 {}", "\U0001f680{}", "a{} b "]
)
@pytest.mark.parametrize("count", [1, 33])
def test_the_stated_memory_of_a_glossary_is_enough(word, count):
    info = glossaries.GlossaryInfo(
        **dict.fromkeys(("glossary_id", "source_lang", "target_lang", "creation_time"), "x"),
        name="x",
        entry_count=499,
    )
    tracemalloc.start()
    terms = (Term((word * count).format(*[n] * count), "t" * n) for n in range(1, 500))
    glossary = Glossary(terms)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used <= glossaries.memory_of(info, glossary) <= 5 * used


def test_keys_are_asked_for_where_there_are_some(tmp_path):
    async def scenario(client):
        async def status(path: str, body: dict, **headers) -> int:
            async with client.post(path, json=body, headers=headers) as response:
                return response.status

        fields = {"q": "A.", "source": "en", "target": "de"}
        deepl = {"text": ["A."], "target_lang": "DE"}
        refused = [
            await status("/translate", fields),
            await status("/translate", fields | {"api_key": "guess"}),
            await status("/translate/stream", fields),
            await status("/v2/translate", deepl, Authorization="DeepL-Auth-Key guess"),
            await status("/v2/translate", deepl, Authorization="DeepL-Auth-Key"),
            await status("/v2/translate", deepl, Authorization="Basic second"),
            await status("/v2/glossaries", {"name": "x", "entries": "a\tb"}),
            await status("/v1/models/en-de:predict", {"instances": ["A."]}),
        ]
        allowed = [
            await status("/translate", fields | {"api_key": "first"}),
            await status("/translate/stream", fields, Authorization="Bearer second"),
            await status("/v2/translate", deepl, Authorization="DeepL-Auth-Key second"),
            await status("/v2/translate", deepl, Authorization="deepl-auth-key  first"),
            await status("/v2/translate", deepl, Authorization="BEARER second"),
        ]
        settings = await (await client.get("/frontend/settings")).json()
        return refused, allowed, settings["keyRequired"]

    (tmp_path / "keys").write_bytes("\ufefffirst\r\nsecond\r\n".encode())  # as Notepad writes
    model = backwards("en-de", [])
    statuses = with_client(scenario, model, keys=read_keys(tmp_path / "keys"))
    assert statuses == ([403] * 8, [200] * 5, True)
    (tmp_path / "none").write_text("\n")
    with pytest.raises(ValueError, match="contains no key; write one key per line"):
        read_keys(tmp_path / "none")
    (tmp_path / "umlaut").write_text("first\nschlüssel\n", encoding="utf-8")
    with pytest.raises(ValueError, match="key 2 has a character outside ASCII; use ASCII keys"):
        read_keys(tmp_path / "umlaut")
    with pytest.raises(ValueError, match="/dev/zero is not a regular file; use a regular file"):
        read_keys("/dev/zero")


def test_languages_are_the_recipes_or_else_the_names():
    said = {"languages": ["en", "de"]}
    model = backwards("mine", [], **said)
    assert directions_of(model) == [("en", "de", model, "")]
    model = backwards("en-fr", [], languages=None)
    assert directions_of(model) == [("en", "fr", model, "")]
    assert directions_of(backwards("mine", [])) == []
    model = backwards("mine", [], languages=["eng_Latn", "zho_Hans"])
    assert directions_of(model) == [("en", "zh-hans", model, "")]
    codes = [("en", "zh-Hans"), ("eng_Latn", "zho_Hans"), ("en-GB", "ZH_HANS")]
    for source, target in codes:
        assert Directions([model]).find(source, target) == ("en", "zh-hans", model, "")


def test_the_detector_knows_each_of_its_languages_by_its_tag():
    labels, _ = _detector().predict("a", k=-1, threshold=-1.0)
    codes = {label.removeprefix("__label__") for label in labels}
    assert len(codes) > 170
    assert {code for code in codes if _label(language_tag(code)) not in labels} == set()


def test_an_endless_code_of_a_request_is_not_kept():
    tracemalloc.start()
    for letter in "abcdefgh":
        with pytest.raises(RequestError, match="is not supported"):
            Directions([]).find("en", letter * 10**6)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 10**6


def several_ways(asked, align=None, tags=("<de>", "<en>"), **manifest):
    model = backwards("mine", asked, align, **manifest)
    model.newest.tags = tags
    return model


def test_a_model_of_several_directions_gets_the_tag_of_the_target():
    """Each sentence has the tag, which words and markup ignore."""
    asked = []
    align = unittest.mock.Mock(return_value=[((0, 1), (1, 0), (2, 1))])
    model = several_ways(asked, align, directions=[["en", "de"], ["de", "en"]])
    answers = posted(
        [model],
        ("/translate", {"q": "A dog. A cat.", "source": "en", "target": "de"}),
        ("/align", {"q": "One dog.", "translation": "a b", "source": "de", "target": "en"}),
        ("/align", {"q": "x", "translation": "y", "model": "mine", "source": "de", "target": "en"}),
        ("/translate", {"q": "x", "source": "fr", "target": "de"}),
        (
            "/v2/translate",
            {
                "text": "<de> x\ny",
                "source_lang": "DE",
                "target_lang": "EN",
                "split_sentences": "0",
            },
        ),
    )
    assert asked == ["<de> A dog.", "<de> A cat.", "<en> <de> x", "<en> y"]
    assert answers[1][1]["links"] == [[0, 0], [1, 1]]
    assert [call.args[0] for call in align.call_args_list] == [["<en> One dog."], ["<en> x"]]
    assert answers[3][1]["error"].endswith("choose one of en to de, de to en")


@pytest.mark.parametrize(
    ("languages", "asked_for"),
    [
        ({"target": "en"}, "<en> Der Hund schläft."),  # only de has this target
        ({"source": "auto", "target": "fr"}, "<fr> Der Hund schläft."),  # detected among de and en
        ({"source": "de", "target": "EN-gb"}, "<en> Der Hund schläft."),
        ({}, "<de> Der Hund schläft."),
    ],
)
def test_the_target_chooses_among_the_directions_of_a_named_model(languages, asked_for):
    asked = []
    pairs = [["en", "de"], ["de", "en"], ["de", "fr"], ["en", "fr"]]
    models = [backwards("fr-it", []), several_ways(asked, directions=pairs)]
    q = "Der Hund schläft."

    async def scenario(client):
        body = {"q": q, "model": "mine"}
        async with client.post("/translate/stream", json=body | languages) as response:
            assert response.status == 200
            await response.text()
        async with client.post("/translate/stream", json=body | {"target": "it"}) as response:
            return response.status, (await response.json())["error"]

    refusal = with_client(scenario, *models)
    assert asked == [asked_for]
    assert refusal == (
        400,
        "translation to it is not supported; choose one of en to de, de to en, de to fr, en to fr",
    )


@pytest.mark.parametrize(
    ("formality", "asked_for"),
    [
        ("default", "A dog."),
        ("more", "<Sie> A dog."),
        ("prefer_more", "<Sie> A dog."),
        ("less", "<du> A dog."),
        ("prefer_less", "<du> A dog."),
    ],
)
def test_deepls_formality_is_a_tag(formality, asked_for):
    asked = []
    model = several_ways(asked, tags=("<Sie>", "<du>"), languages=["en", "de"])
    body = {"text": ["A dog."], "target_lang": "DE", "formality": formality}
    assert posted([model], ("/v2/translate", body))[0][0] == 200
    assert asked == [asked_for]


def test_deepls_formality_needs_tags():
    asked = []
    body = {"text": ["A dog."], "target_lang": "DE"}
    requests = [
        ("/v2/translate", body | {"formality": formality})
        for formality in ("more", "less", "prefer_more", "prefer_less")
    ]
    more, less, *preferred = posted([several_ways(asked, languages=["en", "de"])], *requests)
    assert more[0] == less[0] == 400
    assert "formality=more is not supported: mine has no tag for it; send prefer_more" in str(more)
    assert [status for status, _ in preferred] == [200, 200]
    assert set(asked) == {"A dog."}


def test_deepls_formality_does_not_replace_the_tag_of_a_direction():
    """A sentence has one tag; without that of its direction, the model must guess the language."""
    asked = []
    model = several_ways(asked, tags=("<de>", "<Sie>", "<du>"), directions=[["en", "de"]])
    body = {"text": ["A dog."], "target_lang": "DE", "formality": "more"}
    refused, preferred = posted(
        [model],
        ("/v2/translate", body),
        ("/v2/translate", body | {"formality": "prefer_less"}),
    )
    assert "formality=more is not supported: mine has no tag for it beside <de>; " in str(refused)
    assert (preferred[0], asked) == (200, ["<de> A dog."])


def test_a_region_is_found_by_its_language():
    models = [backwards("en-de", []), backwards("de-en", []), backwards("fr-en", [])]
    directions = Directions(models)
    assert directions.find("EN-GB", "de-AT").model is models[0]
    assert directions.sources_of("en-US") == ["de", "fr"]
    assert directions.targets == {"en": ["de"], "de": ["en"], "fr": ["en"]}
    french = "Le chien est fatigué."
    assert asyncio.run(directions.detect(french))[0].language == "fr"
    assert asyncio.run(directions.detect(french, ["en", "de"]))[0].language != "fr"
    with pytest.raises(RequestError, match="de to fr is not supported; choose one of en to de"):
        directions.find("de", "fr")


@pytest.mark.parametrize(
    ("text", "codes", "language"),
    [
        ("Das ist ein schöner Hund.", ["eng", "deu"], "deu"),
        ("Das ist ein schöner Hund.", ["eng_latn", "deu_latn"], "deu_latn"),
        ("Jeg vet ikke hva jeg skal gjøre i morgen.", ["en", "nb"], "nb"),
        ("Jeg vet ikke hva jeg skal gjøre i morgen.", ["eng_latn", "nob_latn"], "nob_latn"),
        ("Ang aso ay natutulog sa bahay.", ["en", "tl"], "tl"),
        ("Ang aso ay natutulog sa bahay.", ["eng_latn", "tgl_latn"], "tgl_latn"),
    ],
)
def test_a_language_is_detected_whatever_the_form_of_its_code(text, codes, language):
    detected = asyncio.run(Directions([]).detect(text, codes))
    assert detected[0].language == language
    assert detected[0].confidence > 70


def test_a_text_in_none_of_the_languages_has_one_of_them():
    detected = asyncio.run(Directions([]).detect("你好世界，今天天气很好。", ["en", "de"]))
    assert [language for language, _ in detected] == ["en", "de"]


def test_a_text_whose_language_cannot_be_detected_is_refused():
    """With a remedy that /detect, which has no field for the language, can name too."""
    text = {"q": "A dog."}
    asked = ("/translate", text | {"target": "de"}), ("/detect", text)
    models = [backwards(code, [], languages=[code, code]) for code in ("xx", "yy")]
    [_, detected] = posted(models, *asked)
    models = [backwards(code, [], languages=[code, "de"]) for code in ("xx", "yy")]
    [translated, _] = posted(models, *asked)
    reason = (
        "the language of the text cannot be detected among xx, yy; name it when you request a "
        "translation"
    )
    assert translated == detected == (400, {"error": reason})
    [unstated] = posted([backwards("mine", [])], asked[1])
    reason = (
        "the language of the text cannot be detected: no languages are stated; serve the model as "
        "en-de=MODEL"
    )
    assert unstated == (400, {"error": reason})


def test_the_description_names_the_routes_models_and_languages_of_its_server():
    async def scenario(client):
        return await (await client.get("/openapi.json")).json()

    described = with_client(scenario, backwards("mine", [], languages=["en", "de"]))
    assert described["openapi"].startswith("3.1")
    assert described["info"]["description"].endswith("Models: mine, from en to de.")
    assert described["paths"].keys() == {
        *("/translate", "/translate/stream", "/continue", "/align", "/detect", "/languages"),
        *("/frontend/settings", "/v2/translate", "/v2/languages", "/v2/usage"),
        *("/v2/glossaries", "/v2/glossaries/{glossary_id}", "/v2/glossary-language-pairs"),
        "/v2/glossaries/{glossary_id}/entries",
        *("/v1/models/{name}", "/v1/models/{name}/metadata", "/v1/models/{name}:predict"),
        *("/health", "/healthz", "/readyz"),
    }
