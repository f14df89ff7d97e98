#!/usr/bin/env python
"""Serves the folder of a LiteRT export, without TensorFlow and tfformer.

    pip install aiohttp ai-edge-litert sentencepiece numpy
    python serve.py models/mine-litert
    curl http://127.0.0.1:8502/translate -d q="The animal is tired. It sleeps."

It answers the clients of LibreTranslate: POST /translate with a text or a list of texts (JSON or a
form), GET /languages; and GET /healthz. Paragraphs, addresses, numbers and the like stay as they
are. It uses `translate.py`, `sentences.py` and `copies.py` beside it.
SIGTERM and Ctrl-C let the requests under way come to their end.
"""

import argparse
import asyncio
import contextlib
import ctypes
import ipaddress
import json
import logging
import math
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

try:
    from aiohttp import web
    from aiohttp.http_exceptions import HttpProcessingError
except ImportError:
    sys.exit("serve.py: aiohttp is missing; pip install aiohttp ai-edge-litert sentencepiece numpy")

sys.path.insert(0, str(Path(__file__).parent))
from copies import PLACEHOLDERS, Keeper, Marked, with_words
from sentences import stretches
from translate import Parser, Translator, manifest_text, newest_version

BATCH = 32  # sentences that run together at most
PART = 512  # sentences of a request that wait at a time
MAX_WAITING = 4_096  # sentences of all requests
MAX_BYTES = 2 * 2**20  # of a request
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
DRAIN_SECONDS = 20  # for the requests under way when the server is told to end
# Options of glibc's mallopt, by the numbers of malloc.h -> their values.
KEEPING_MEMORY = {
    -8: 1,  # M_ARENA_MAX: one heap for all threads, as those of a thread end at 64 MB
    -4: 0,  # M_MMAP_MAX: nothing is mapped beside the heap
    -1: 2**30,  # M_TRIM_THRESHOLD: bytes at the heap's end that may be free
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TranslatesRows(Protocol):
    """A translator as `translate.py` has it."""

    max_length: int

    def pieces(self, sentence: str) -> list[int]:
        """Return a sentence as ids of pieces."""

    def has(self, piece: str) -> bool:
        """Return whether a text is one piece of the vocabularies."""

    def code_of(self, text: str) -> str:
        """Return the code of a language that a text begins with, or nothing."""

    def translate(self, rows: list[list[int]]) -> list[str]:
        """Return the translations of rows of pieces."""


class Stretch(NamedTuple):
    """A part of a text: a sentence with its pieces, or what stands between two.

    Attributes:
        text: Its characters.
        marked: The sentence with placeholders, if it is one.
        row: The pieces of that.
        code: The code of its text's language.
    """

    text: str
    marked: Marked | None = None
    row: list[int] = []
    code: str = ""


class Waiting(NamedTuple):
    """A sentence that waits for its turn, as pieces, and the place of its translation."""

    row: list[int]
    answer: asyncio.Future[str]


class Workers:
    """Translators, each with a thread, and the sentences that wait for one of them.

    Sentences of like length run together, whoever sent them.

    Args:
        translators: One for each thread; none may be used by two threads at once.
        batch: The most sentences that run together.
    """

    def __init__(self, translators: list[TranslatesRows], batch: int = BATCH) -> None:
        self._batch = batch
        self._model = translators[0]
        self._keeper = Keeper(placeholders=list(filter(self._model.has, PLACEHOLDERS)))
        self._free = list(translators)
        self._threads = ThreadPoolExecutor(len(translators))
        self._waiting: list[Waiting] = []
        self._places = 0  # that requests have taken for their sentences

    def divided(self, text: str) -> list[Stretch]:
        """Return the stretches of a text, of which each sentence is short enough for the model.

        A code such as `>>fra<<` at its beginning names the language of all its sentences.
        """
        code = self._model.code_of(text)

        def fits(sentence: str) -> bool:
            marked = self._keeper.marked(sentence)
            return len(self._model.pieces(code + marked.text)) < self._model.max_length

        found = stretches(text[len(code) :], fits, self._keeper.masked)
        return [self._stretch(stretch, code) if one else Stretch(stretch) for stretch, one in found]

    def row(self, sentence: str) -> list[int]:
        """Return a sentence as pieces; of one that is too long for the model, its beginning."""
        return self._model.pieces(sentence)[: self._model.max_length - 1]

    async def translate(self, rows: list[list[int]]) -> list[str]:
        """Return the translations of sentences given as pieces, of which there may be any number.

        Raises:
            web.HTTPServiceUnavailable: Too many sentences wait.
        """
        places = min(len(rows), PART)
        if self._places + places > MAX_WAITING:
            raise web.HTTPServiceUnavailable(text="too many sentences are waiting; try again later")
        self._places += places
        try:
            parts = [rows[start : start + PART] for start in range(0, len(rows), PART)]
            return [one for part in parts for one in await self._translated(part)]
        finally:
            self._places -= places

    async def _translated(self, rows: list[list[int]]) -> list[str]:
        """Let sentences wait together for their translations."""
        loop = asyncio.get_running_loop()
        waiting = [Waiting(row, loop.create_future()) for row in rows]
        self._waiting += waiting
        self._begin()
        return await asyncio.gather(*(one.answer for one in waiting))

    def _stretch(self, sentence: str, code: str) -> Stretch:
        """A sentence with its pieces; without words beside those that stay it stays as it is."""
        marked = self._keeper.marked(sentence)
        if not marked.has_text:
            return Stretch(sentence)
        return Stretch(sentence, marked, self.row(code + marked.text), code)

    def _begin(self) -> None:
        """Give every free translator something to do."""
        while self._free and self._take_away_abandoned():
            translator = self._free.pop()
            batch = self._take()
            rows = [one.row for one in batch]
            work = asyncio.get_running_loop().run_in_executor(
                self._threads, translator.translate, rows
            )
            work.add_done_callback(partial(self._finish, translator, batch))

    def _take_away_abandoned(self) -> bool:
        """Forget sentences whose clients have gone; return whether any are left."""
        self._waiting = [one for one in self._waiting if not one.answer.done()]
        return bool(self._waiting)

    def _take(self) -> list[Waiting]:
        """Remove the oldest sentence, and those nearest to its length.

        The other free translators keep their share of the sentences.
        """
        length = len(self._waiting[0].row)
        order = sorted(self._waiting, key=lambda one: abs(len(one.row) - length))
        share = math.ceil(len(order) / (len(self._free) + 1))
        batch = order[: min(share, self._batch)]
        taken = set(map(id, batch))
        self._waiting = [one for one in self._waiting if id(one) not in taken]
        return batch

    def _finish(
        self, translator: TranslatesRows, batch: list[Waiting], work: asyncio.Future[list[str]]
    ) -> None:
        self._free.append(translator)
        error = work.exception()
        for number, one in enumerate(batch):
            if one.answer.done():
                continue
            if error is None:
                one.answer.set_result(work.result()[number])
            else:
                one.answer.set_exception(error)
        self._begin()


async def translate_texts(texts: list[str], workers: Workers) -> list[str]:
    """Return the translations of texts; all that is no sentence stays as it is.

    The sentences of all texts wait together, so that those of like length run together. Those of
    which the model has lost a placeholder are translated as they are too.
    """
    in_thread = partial(asyncio.get_running_loop().run_in_executor, None)
    divided = await in_thread(lambda: [workers.divided(text) for text in texts])
    sentences = [one for stretches in divided for one in stretches if one.marked]
    first = await workers.translate([one.row for one in sentences])
    pairs = zip(sentences, first, strict=True)
    lost = [one.code + one.text for one, translation in pairs if one.marked.lacks(translation)]
    rows = await in_thread(lambda: list(map(workers.row, lost))) if lost else []
    again = await workers.translate(rows)
    marked = [one.marked for one in sentences]
    filled = iter(await in_thread(with_words, marked, first, again))
    translations = []
    for found in divided:
        parts = [next(filled) if one.marked else one.text for one in found]
        translations.append("".join(parts))
    return translations


# --- The server -----------------------------------------------------------------------------------


class Server:
    """The routes of one model.

    Args:
        workers: The workers that translate.
        languages: The codes of source and target, or nothing.
        hosts: Names, beside addresses and localhost, by which browsers may call the server.
    """

    def __init__(self, workers: Workers, languages: list[str], hosts: Collection[str] = ()) -> None:
        self._workers = workers
        self._languages = languages
        self._allowed = {host.lower() for host in hosts}
        self._hosts = {"localhost", socket.gethostname().lower(), *self._allowed}

    def application(self) -> web.Application:
        """Return the server but the listening."""
        middlewares = [answer_errors, self._check_sender]
        app = web.Application(client_max_size=MAX_BYTES, middlewares=middlewares)
        app.router.add_post("/translate", self._translate)
        app.router.add_get("/languages", self._known)
        app.router.add_get("/healthz", self._health)
        return app

    @web.middleware
    async def _check_sender(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse the pages of other sites: a foreign `Origin` or host name."""
        host = urlsplit(f"//{request.host}").hostname or ""
        if not is_address(host) and host not in self._hosts:
            raise web.HTTPForbidden(text=f"the host {host[:100]!r} is not this server's name")
        origin = request.headers.get("Origin", f"http://{request.host}")
        is_own = origin.partition("://")[2] == request.host
        if not (is_own or urlsplit(origin).hostname in self._allowed):  # a proxy changes the Host
            raise web.HTTPForbidden(text="a page of another site may not send requests")
        return await handler(request)

    async def _translate(self, request: web.Request) -> web.Response:
        fields = await read_fields(request)
        self._check_languages(fields)
        check_format(fields)
        query = fields.get("q")
        is_list = isinstance(query, list)
        texts = [checked(text) for text in (query if is_list else [query])]
        translations = await translate_texts(texts, self._workers)
        return web.json_response({"translatedText": translations if is_list else translations[0]})

    def _check_languages(self, fields: dict[str, Any]) -> None:
        for name, known in zip(("source", "target"), self._languages, strict=False):
            if fields.get(name, known) not in (known, "auto"):
                raise ValueError(f"{name} must be {known}; it is {str(fields[name])[:20]!r}")

    async def _known(self, request: web.Request) -> web.Response:
        if not self._languages:
            return web.json_response([])
        source, target = self._languages
        return web.json_response([{"code": source, "name": source, "targets": [target]}])

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every mistake of a client with its reason, in LibreTranslate's form."""
    try:
        return await handler(request)
    except (ValueError, web.RequestPayloadError) as error:
        return web.json_response({"error": str(error) or "the body cannot be read"}, status=400)
    except web.HTTPException as error:
        return web.json_response({"error": error.text or error.reason}, status=error.status)


async def read_fields(request: web.Request) -> dict[str, Any]:
    """Return the fields of JSON or a form; ValueError if it is neither."""
    if request.content_type in FORMS:
        try:
            return dict(await request.post())
        except LookupError:
            raise ValueError("the form has an unknown charset; send it as UTF-8") from None
        except (AssertionError, HttpProcessingError, RuntimeError):  # of a form in parts
            raise ValueError("the form cannot be read") from None
    try:
        fields = json.loads((await request.read()).decode("utf-8"))
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("the body must be a JSON object")
    return fields


def check_format(fields: dict[str, Any]) -> None:
    """Raise ValueError if the text is in another format than this server divides."""
    if (format := fields.get("format") or "text") != "text":
        remedy = "`tfformer serve` takes html too"
        raise ValueError(f"format must be text; it is {str(format)[:20]!r} ({remedy})")


def checked(text: object) -> str:
    """Return a text; ValueError if it is none, or no Unicode."""
    if not isinstance(text, str):
        raise ValueError("q must be a text or a list of texts")
    return text.encode("utf-8").decode("utf-8")


def is_address(host: str) -> bool:
    """Return whether a host is an address, which nobody can make point elsewhere."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_own_mistake(record: logging.LogRecord) -> bool:
    """Return whether an error is the server's; a client that speaks no HTTP only gets 400."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def languages_of(folder: Path) -> list[str]:
    """Return the codes of the languages that a manifest names, or nothing."""
    languages = json.loads(manifest_text(folder / "manifest.json")).get("languages")
    return languages if isinstance(languages, list) and len(languages) == 2 else []


def keep_memory() -> None:
    """Keep the memory of a batch for the next one, where the C library is glibc.

    Otherwise each batch has its megabytes mapped and filled with zeros anew. Settings of the
    environment come first.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in KEEPING_MEMORY.items():
            mallopt(option, value)


def main() -> None:
    """Serve the folder of the command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="of a version, or of all: the newest counts")
    parser.add_argument("--host", default="127.0.0.1", metavar="H")
    parser.add_argument("--port", type=int, default=8502, metavar="P")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="threads, by default 2")
    parser.add_argument("--beam", action="store_true", help="beam search, if the export has it")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    if options.workers < 1:
        raise ValueError("--workers must be at least 1")
    if not 0 <= options.port < 2**16:
        raise ValueError(f"--port {options.port} must be at least 0 and below {2**16}")
    keep_memory()
    translators = [Translator(options.folder, beam=options.beam) for _ in range(options.workers)]
    languages = languages_of(newest_version(Path(options.folder)))
    server = Server(Workers(translators), languages, [options.host, *options.allow_host])
    logging.getLogger("aiohttp.server").addFilter(is_own_mistake)
    web.run_app(
        server.application(),
        host=options.host,
        port=options.port,
        shutdown_timeout=DRAIN_SECONDS,
        handler_cancellation=True,
        access_log=None,
    )


if __name__ == "__main__":
    try:
        main()
    except (ValueError, KeyError, OSError, RuntimeError, ImportError) as error:
        print(f"serve.py: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
