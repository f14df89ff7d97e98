"""The small server of LiteRT files, on a scripted translator."""

import asyncio
import io
import logging
import os
import platform
import subprocess
import sys
import threading
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from aiohttp import ClientSession, MultipartWriter
from aiohttp.test_utils import TestClient, TestServer

PROGRAM = Path(__file__).parents[2] / "export" / "on_device" / "serve.py"


@pytest.fixture(scope="module")
def serve():
    """The program as a module; it finds `translate.py` and the others beside it."""
    spec = spec_from_file_location("on_device_serve", PROGRAM)
    module = module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    for name in ("translate", "sentences", "copies"):
        sys.modules.pop(name, None)


class Backwards:
    """A translator of characters, which must never be used by two threads at once."""

    max_length = 20

    def __init__(self, seconds: float = 0) -> None:
        self.batches = []
        self._seconds = seconds
        self._lock = threading.Lock()

    def pieces(self, sentence: str) -> list[int]:
        return list(map(ord, sentence))

    def has(self, piece: str) -> bool:
        return False

    def code_of(self, text: str) -> str:
        return text[:7] if text.startswith(">>") else ""

    def translate(self, rows: list[list[int]]) -> list[str]:
        assert self._lock.acquire(blocking=False)
        time.sleep(self._seconds)
        self.batches.append([len(row) for row in rows])
        self._lock.release()
        return ["".join(map(chr, reversed(row))) for row in rows]


def fits(sentence: str) -> bool:
    return len(sentence) < 1_000


def with_client(serve, translators, scenario, languages=("en", "de")):
    async def run():
        app = serve.Server(serve.Workers(translators), list(languages)).application()
        async with TestClient(TestServer(app)) as client:
            return await scenario(client)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two?  Three!", ["One.", "Two?", "Three!"]),
        ("Mr. Smith met Dr. A. B. Jones.\nHe left", ["Mr. Smith met Dr. A. B. Jones.", "He left"]),
        ('"Yes." She said: v1.2.3 is out…', ['"Yes."', "She said: v1.2.3 is out…"]),
        ("猫です。犬です！", ["猫です。", "犬です！"]),
        (" \n\n\t", []),
    ],
)
def test_a_text_is_divided_into_sentences(serve, text, sentences):
    stretches = list(serve.stretches(text, fits))
    assert [stretch for stretch, is_sentence in stretches if is_sentence] == sentences
    assert "".join(stretch for stretch, _ in stretches) == text


@pytest.mark.parametrize(
    "text",
    ["." * 200_000 + "x", "a.b" * 70_000, "x " * 90_000, "A. " * 50_000, "a" + " " * 99_000 + "b"],
    ids=["stops", "no stops", "words", "initials", "spaces"],
)
def test_no_text_takes_long_to_divide(serve, text):
    start = time.process_time()
    assert "".join(stretch for stretch, _ in serve.stretches(text, fits)) == text
    assert time.process_time() - start < 5


def test_many_clients_get_their_own_texts_in_order(serve):
    translators = [Backwards(0.001), Backwards(0.001)]

    async def scenario(client):
        async def translate(number: int) -> None:
            lines = [f"s{number}:{'x' * (n % 7)}y{n}" for n in range(30)]
            body = {"q": "\n\n".join(lines), "source": "en", "target": "de"}
            async with client.post("/translate", json=body) as response:
                found = (await response.json())["translatedText"]
            assert found == "\n\n".join(line[::-1] for line in lines)

        await asyncio.gather(*map(translate, range(16)))

    with_client(serve, translators, scenario)
    sizes = [len(batch) for translator in translators for batch in translator.batches]
    assert sum(sizes) == 16 * 30
    assert max(sizes) == serve.BATCH


def test_the_sentences_of_a_page_are_shared_by_the_threads(serve):
    translators = [Backwards(), Backwards()]

    async def scenario(client):
        page = [f"s{'x' * n}" for n in range(15)]
        async with client.post("/translate", json={"q": page}) as response:
            assert (await response.json())["translatedText"] == [line[::-1] for line in page]

    with_client(serve, translators, scenario)
    assert sorted(len(batch) for one in translators for batch in one.batches) == [7, 8]


def test_a_long_sentence_is_divided_and_none_of_it_is_lost(serve):
    words = [f"w{n}" for n in range(50)]

    async def scenario(client):
        for text in (" ".join(words), "x" * 1_000):
            async with client.post("/translate", data={"q": text}) as response:
                yield_text = (await response.json())["translatedText"]
            assert sorted(yield_text.replace(" ", "")) == sorted(text.replace(" ", ""))

    translator = Backwards()
    with_client(serve, [translator], scenario)
    assert max(length for batch in translator.batches for length in batch) < translator.max_length


def test_the_code_of_a_language_begins_each_row_of_its_text(serve):
    asked = []

    class Multilingual(Backwards):
        def pieces(self, sentence):
            asked.append(sentence)
            return super().pieces(sentence)

    async def scenario(client):
        body = {"q": ">>fra<<One two three four five six. Go!"}
        async with client.post("/translate", json=body) as response:
            return (await response.json())["translatedText"]

    with_client(serve, [Multilingual()], scenario)
    assert asked
    assert all(sentence.startswith(">>fra<<") for sentence in asked)


def test_rules_and_numbers_are_no_sentences(serve):
    text = "One.\n---\n12.50\n2020-01-01"
    sentences = [stretch for stretch, is_sentence in serve.stretches(text, fits) if is_sentence]
    assert sentences == ["One."]


IN_PARTS = {"Content-Type": "multipart/form-data; boundary=a"}


def test_a_form_in_parts_is_read(serve):
    async def scenario(client):
        parts = MultipartWriter("form-data")
        for name, value in (("q", "One. Größe!"), ("source", "en"), ("target", "de")):
            parts.append(value).set_content_disposition("form-data", name=name)
        async with client.post("/translate", data=parts) as response:
            return await response.json()

    assert with_client(serve, [Backwards()], scenario) == {"translatedText": ".enO !eßörG"}


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        (
            {"Content-Type": "application/x-www-form-urlencoded; charset=foo"},
            b"q=One.",
            "unknown charset",
        ),
        ({"Content-Encoding": "gzip"}, b"no gzip at all", ""),
        (IN_PARTS, b"no form", "boundary"),
        (IN_PARTS, b"--a\r\nno header\r\n\r\nOne.\r\n--a--", "the form cannot be read"),
        (IN_PARTS, b'--a\r\nContent-Disposition: form-data; name="q"\r\n\r\nOne.', ""),
        (IN_PARTS, b"--a\r\nX: form-data\r\n\r\nOne.\r\n--a--", "name"),
        (
            IN_PARTS,
            b'--a\r\nContent-Disposition: form-data; name="q"; filename="f"\r\n\r\nOne.\r\n--a--',
            "q must be a text",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_the_clients_mistake(serve, headers, body, message):
    async def scenario(client):
        async with client.post("/translate", data=body, headers=headers) as response:
            return response.status, await response.json()

    status, answer = with_client(serve, [Backwards()], scenario)
    assert status == 400
    assert message in answer["error"]


def test_an_allowed_host_is_one_in_any_letters_and_behind_a_proxy(serve):
    async def scenario(client):
        async def status(**headers) -> int:
            async with client.post("/translate", json={"q": "One."}, headers=headers) as response:
                return response.status

        return [
            await status(Host="translate.example"),
            await status(Origin="https://Translate.Example"),
            await status(Origin="https://evil.example"),
        ]

    async def run():
        workers = serve.Workers([Backwards()])
        app = serve.Server(workers, ["en", "de"], ["Translate.Example"]).application()
        async with TestClient(TestServer(app)) as client:
            return await scenario(client)

    assert asyncio.run(run()) == [200, 200, 403]


def test_lists_languages_and_health_are_answered(serve):
    async def scenario(client):
        body = {"q": ["One.", ""], "source": "auto", "target": "de"}
        async with client.post("/translate", json=body) as response:
            assert await response.json() == {"translatedText": [".enO", ""]}
        languages = await (await client.get("/languages")).json()
        assert languages == [{"code": "en", "name": "en", "targets": ["de"]}]
        assert (await client.get("/healthz")).status == 200

    with_client(serve, [Backwards()], scenario)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "Expecting"),
        (b"[1]", 400, "must be a JSON object"),
        (b"\xff", 400, "utf-8"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"q": 7}', 400, "q must be a text or a list of texts"),
        (b'{"q": "\\ud800"}', 400, "surrogates not allowed"),
        (
            b'{"q": "<b>a</b>", "format": "html"}',
            400,
            "format must be text; it is 'html' (`tfformer",
        ),
        (b'{"q": "a", "target": "fr"}', 400, "target must be de; it is 'fr'"),
        (b" " * (2 * 2**20 + 1), 413, "Maximum request body size"),
    ],
)
def test_a_mistake_is_answered_with_its_reason(serve, body, status, message):
    async def scenario(client):
        async with client.post("/translate", data=io.BytesIO(body)) as response:
            return response.status, await response.json()

    found, answer = with_client(serve, [Backwards()], scenario)
    assert (found, set(answer)) == (status, {"error"})
    assert message in answer["error"]


def test_other_sites_and_too_many_sentences_are_refused(serve, monkeypatch):
    async def scenario(client):
        async def status(text: str, **headers) -> int:
            async with client.post("/translate", json={"q": text}, headers=headers) as response:
                return response.status

        return [
            await status("One."),
            await status("One.", Host="evil.example"),
            await status("One.", Origin="https://evil.example"),
            await status("One. " * 9),
            await status("One."),
        ]

    monkeypatch.setattr(serve, "MAX_WAITING", 8)
    assert with_client(serve, [Backwards()], scenario) == [200, 403, 403, 503, 200]


def test_a_request_may_have_more_sentences_than_wait_at_a_time(serve, monkeypatch):
    """Others come in between its parts, and are refused where their own would not fit."""
    monkeypatch.setattr(serve, "PART", 8)
    monkeypatch.setattr(serve, "MAX_WAITING", 12)
    translator = Backwards(seconds=0.02)
    long = " ".join(f"Go{number:03}." for number in range(100))
    done = []

    async def scenario(client):
        async def answer(text: str):
            async with client.post("/translate", json={"q": text}) as response:
                done.append(text)
                return (await response.json()).get("translatedText"), response.status

        first = asyncio.ensure_future(answer(long))
        while not translator.batches:
            await asyncio.sleep(0.005)
        return await asyncio.gather(first, answer("One. " * 4), answer("Two. " * 5))

    (found, status), short, refused = with_client(serve, [translator], scenario)
    assert found == " ".join(f"Go{number:03}."[::-1] for number in range(100))
    assert (status, short) == (200, (".enO " * 4, 200))
    assert refused[1] == 503
    assert done[-1] == long
    assert sum(map(len, translator.batches)) == 104


class Lossy(Backwards):
    """A translator that knows placeholders, of which it sometimes loses one or makes one up."""

    max_length = 40

    def has(self, piece: str) -> bool:
        return piece in ("⟦1⟧", "⟦2⟧")

    def translate(self, rows: list[list[int]]) -> list[str]:
        sentences = ["".join(map(chr, row)).upper() for row in rows]
        self.batches += sentences
        return [one.replace("LOSE ⟦1⟧", "LOSE").replace("X", "⟦2⟧") for one in sentences]


@pytest.mark.parametrize(
    ("text", "translation", "asked"),
    [
        ("See a@b.de.\n\n- 5 kg", "SEE a@b.de.\n\n- 5 kg", ["SEE ⟦1⟧."]),
        ("I lose {a} now.", "I {a} LOSE NOW.", ["I LOSE ⟦1⟧ NOW.", "I LOSE {A} NOW."]),
        (">>fra<<I lose 5.", ">>FRA<<I LOSE 5.", [">>FRA<<I LOSE ⟦1⟧.", ">>FRA<<I LOSE 5."]),
        ("x", "x", ["X"]),
        ("x y", "Y", ["X Y"]),
        ("{a}, {b}, 5", "{a}, {b}, 5", []),
        ("at {a}, {b}, 5", "AT {a}, {b}, 5", ["AT ⟦1⟧, ⟦2⟧, 5"]),
        ("at www.a.de/" + "b" * 50, "AT www.a.de/" + "b" * 50, ["AT ⟦1⟧"]),
    ],
)
def test_addresses_numbers_and_the_like_stay(serve, text, translation, asked):
    async def scenario(client):
        async with client.post("/translate", json={"q": [text, "Go."]}) as response:
            return await response.json()

    translator = Lossy()
    answer = with_client(serve, [translator], scenario)
    assert answer == {"translatedText": [translation, "GO."]}
    assert sorted(translator.batches) == sorted([*asked, "GO."])


def test_a_client_that_goes_gives_its_places_back(serve, monkeypatch):
    monkeypatch.setattr(serve, "MAX_WAITING", 8)
    workers = serve.Workers([Backwards(seconds=0.05)])
    rows = [[ord("a")]] * 8

    async def scenario():
        gone = asyncio.ensure_future(workers.translate(rows))
        await asyncio.sleep(0.01)
        with pytest.raises(serve.web.HTTPServiceUnavailable):
            await workers.translate(rows[:1])
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        return await workers.translate(rows)

    assert asyncio.run(scenario()) == ["a"] * 8


def test_a_manifest_that_may_never_end_is_not_read(serve, tmp_path):
    (tmp_path / "manifest.json").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not a regular file"):
        serve.languages_of(tmp_path)


def test_broken_http_leaves_no_traceback_in_the_log(serve, caplog):
    """Its answer is aiohttp's, 400; a mistake of the server's own is still written down."""
    server_log = logging.getLogger("aiohttp.server")
    server_log.addFilter(serve.is_own_mistake)

    async def scenario():
        app = serve.Server(serve.Workers([Backwards()]), []).application()
        app.router.add_get("/mistake", lambda _: 1 / 0)
        async with TestServer(app) as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(b"GET / HTTP/1.1\r\nX-A: " + b"a" * 9_000 + b"\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            logged = len(caplog.records)
            async with ClientSession() as session:
                mistake = await session.get(server.make_url("/mistake"))
            return answer, logged, mistake.status

    try:
        answer, logged, status = asyncio.run(scenario())
    finally:
        server_log.removeFilter(serve.is_own_mistake)
    assert answer.startswith(b"HTTP/1.0 400 ")
    assert logged == 0
    assert status == 500
    assert "ZeroDivisionError" in caplog.text


FREED = """
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
import serve

def kept() -> int:
    array = np.ones(25_000_000)  # 200 MB
    del array
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

before = kept()
serve.keep_memory()
with ThreadPoolExecutor(1) as threads:
    print(threads.submit(kept).result() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no mallopt")
@pytest.mark.parametrize(("settings", "is_kept"), [({}, True), ({"MALLOC_ARENA_MAX": "2"}, False)])
def test_the_memory_of_a_batch_is_kept_for_the_next_one(settings, is_kept):
    """Unless the environment has settings of its own."""
    command = [sys.executable, "-c", FREED, PROGRAM.parent]
    environment = os.environ | settings
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert (int(done.stdout) > 190_000_000) == is_kept
