"""Translate standard input with TensorFlow Serving over REST.

A line is a sentence; with `--format text` the input is a text of any form, which keeps its
paragraphs, addresses, numbers and the like (by `sentences.py` and `copies.py` beside this file).
The client needs Python alone.

python client_rest.py http://127.0.0.1:8501 phrasebook < sentences.en > sentences.de
"""

import argparse
import http.client
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, NoReturn
from urllib.parse import quote, urlsplit

from copies import Keeper, read_phrases, without_strays
from sentences import blocks, translated

BUSY = (429, 502, 503)  # HTTP: the same request may succeed later; translating twice does no harm
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds between tries

Translations = list[tuple[str, float]]  # with their scores


class RequestError(Exception):
    """The server will not answer this, now or later."""


class BusyError(Exception):
    """The server cannot answer now, but may later."""


def main() -> int:
    """Translate standard input; return the exit code."""
    options = parser(__doc__, server="the server's address, http://HOST:PORT").parse_args()
    return translate_input(options, lambda sentences, seconds: predict(options, sentences, seconds))


class Parser(argparse.ArgumentParser):
    """Arguments of the command line, of which a wrong one is one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser(description: str, server: str) -> argparse.ArgumentParser:
    """The arguments of either client."""
    made = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("server", metavar="SERVER", help=server)
    made.add_argument("model", metavar="MODEL", help="the model's name on the server")
    which = made.add_mutually_exclusive_group()
    which.add_argument("--version", type=int, metavar="N", help="the newest if left out")
    which.add_argument(
        "--label", metavar="L", help="such as stable or canary, in place of a version"
    )
    made.add_argument(
        "--beam", action="store_true", help="beam search in place of greedy search: better, slower"
    )
    made.add_argument("--scores", action="store_true", help="print score, tab, translation")
    made.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="B",
        help="sentences in a request; 32 if left out",
    )
    made.add_argument(
        "--deadline",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds for a batch, retries and all",
    )
    made.add_argument(
        "--format",
        choices=("lines", "text"),
        default="lines",
        help="lines, the default: a sentence a line; text: paragraphs, divided into sentences",
    )
    made.add_argument(
        "--keep", metavar="FILE", help="more words that come out as they went in, one a line (text)"
    )
    made.add_argument(
        "--max-words",
        type=int,
        default=60,
        metavar="N",
        help="of a sentence; a longer one is divided into clauses (text); 60 if left out",
    )
    return made


def translate_input(
    options: argparse.Namespace, predict: Callable[[list[str], float], Translations]
) -> int:
    """Print the translation of each line, in order.

    Returns the exit code: 1 after one line about the fault.
    """
    sys.stdout.reconfigure(encoding="utf-8", newline="")
    done = 0
    try:
        if options.batch_size < 1:
            raise ValueError(f"--batch-size {options.batch_size} must be at least 1")
        if options.keep and options.format != "text":
            raise ValueError("--keep goes with whole texts; set --format text")
        if options.format == "text":
            translate_text(options, predict)
            return 0
        for batch in batches(sys.stdin.buffer, options.batch_size):
            found = in_time(predict, batch, options.deadline)
            for line, (translation, score) in zip(batch, found, strict=True):
                translation = without_strays(translation, line)
                print(f"{score:.4f}\t{translation}" if options.scores else translation)
            sys.stdout.flush()
            done += len(batch)
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (RequestError, BusyError, ValueError) as error:
        after = "" if options.format == "text" else f"after {done} lines: "
        print(f"{sys.argv[0]}: {after}{' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def translate_text(
    options: argparse.Namespace, predict: Callable[[list[str], float], Translations]
) -> None:
    """Print the translation of a whole text while it is read; its whitespace stays as it is."""
    if options.scores:
        raise ValueError("--scores are of sentences; leave them out, or give --format lines")
    if options.max_words < 1:
        raise ValueError(f"--max-words {options.max_words} must be at least 1")

    keeper = Keeper(read_phrases(options.keep) if options.keep else [])

    def fits(sentence: str) -> bool:
        return len(keeper.masked(sentence).split()) <= options.max_words

    def translate(sentences: list[str]) -> list[str]:
        return [text for text, _ in in_time(predict, sentences, options.deadline)]

    text, keeping = blocks(sys.stdin.buffer), keeper.keeping(translate)
    for piece in translated(text, keeping, fits, options.batch_size, keeper.masked):
        sys.stdout.write(piece)
    sys.stdout.flush()


def batches(stream: BinaryIO, size: int) -> Iterator[list[str]]:
    """The lines of a UTF-8 stream, `size` at a time."""
    batch = []
    for number, line in enumerate(stream, start=1):
        try:
            batch.append(line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError:
            raise ValueError(f"line {number} is not UTF-8; convert the text to UTF-8") from None
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def in_time(
    predict: Callable[[list[str], float], Translations], batch: list[str], seconds: float
) -> Translations:
    """Ask until there is an answer.

    The waits become longer and longer while the server is busy.

    Raises:
        BusyError: There was none after `seconds`.
    """
    end = time.monotonic() + seconds
    for wait in waits():
        try:
            return predict(batch, max(end - time.monotonic(), 0.001))
        except BusyError as busy:
            if time.monotonic() + wait > end:
                raise BusyError(f"no answer within {seconds:g} seconds: {busy}") from None
        time.sleep(wait)
    raise AssertionError("there is always another wait")


def waits() -> Iterator[float]:
    """Yield waits, each about twice the last.

    They are never the same for all clients of a server that comes back.
    """
    wait = FIRST_WAIT
    while True:
        yield wait * random.uniform(0.5, 1.0)
        wait = min(2 * wait, LONGEST_WAIT)


def predict(options: argparse.Namespace, sentences: list[str], seconds: float) -> Translations:
    """One request, and what its answer means."""
    signature = "translate_beam" if options.beam else "serving_default"
    request = {
        "signature_name": signature,
        "instances": [{"text": sentence} for sentence in sentences],
    }
    try:
        status, body = post(options.server, path(options), json.dumps(request).encode(), seconds)
    except (OSError, http.client.HTTPException) as error:
        raise BusyError(
            f"{options.server} cannot be reached ({error or type(error).__name__})"
        ) from None
    if status != 200:
        kind = BusyError if status in BUSY else RequestError
        raise kind(f"{options.server} answered {status}: {message(body)}")
    try:
        rows = json.loads(body)["predictions"]
        if options.beam:
            found = [(row["translations"][0], float(row["scores"][0])) for row in rows]
        else:
            found = [(row["translation"], float(row["score"])) for row in rows]
        return [found[n] for n in range(len(sentences))]
    except (ValueError, KeyError, TypeError, IndexError):
        raise RequestError(
            f"{options.server} answered with something else than translations"
        ) from None


def path(options: argparse.Namespace) -> str:
    """Return the path of a request to the version that the options choose."""
    model = f"/v1/models/{quote(options.model, safe='')}"
    if options.version is not None:
        model += f"/versions/{options.version}"
    if options.label is not None:
        model += f"/labels/{quote(options.label, safe='')}"
    return f"{model}:predict"


def post(server: str, path: str, body: bytes, seconds: float) -> tuple[int, bytes]:
    """Status and body of the answer; OSError if there is none."""
    address = urlsplit(server)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError(f"{server!r} is no address; give http://HOST:PORT")
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname, address.port, timeout=seconds)
    try:
        connection.request(
            "POST", address.path.rstrip("/") + path, body, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def message(body: bytes) -> str:
    """The server's own words, or a proxy's."""
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
