"""A small server with the part of the Hugging Face hub's API that downloads use."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlparse

from support.stated_digests import hub_digest

COMMIT = "c" * 40


class Hub:
    """Models by name, each a folder.

    Attributes:
        models: Name -> folder; a name that is absent is unknown.
        gated: Names of models whose terms must be accepted first.
        damaged: Paths of files whose content arrives changed.
        requests: The paths of the requested files.
    """

    def __init__(self) -> None:
        self.models: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.damaged: set[str] = set()
        self.cut_off: set[str] = set()
        self.requests: list[str] = []
        self.address = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a request."""
        words = path.strip("/").split("/")
        is_api = words[:2] == ["api", "models"]
        name = "/".join(words[2:4] if is_api else words[:2])
        segments = words[4:] if is_api else words[2:]
        if name not in self.models:
            return 401, {"X-Error-Code": "RepoNotFound"}, b"{}"
        if len(segments) > 1 and segments[1] not in ("main", "v1", COMMIT):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        folder = self.models[name]
        if is_api:
            files = sorted(folder.iterdir())
            if segments[:1] == ["tree"]:
                return _json([_entry(file) for file in files])
            siblings = [{"rfilename": file.name} for file in files]
            return _json({"id": name, "sha": COMMIT, "siblings": siblings})
        if name in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
        file = folder / segments[2]
        if not file.is_file():
            return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
        content = file.read_bytes()
        if file.name in self.damaged:
            content = bytes([content[0] ^ 1]) + content[1:]
        return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{hub_digest(file)}"'}, content


def _json(values: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(values).encode()


def _entry(file: Path) -> dict:
    digest, size = hub_digest(file), file.stat().st_size
    entry = {"type": "file", "path": file.name, "size": size, "oid": digest}
    if len(digest) == 64:
        entry["oid"] = "0" * 40
        entry["lfs"] = {"oid": digest, "size": size, "pointerSize": 130}
    return entry


@contextmanager
def serving() -> Iterator[Hub]:
    """Yield a hub that answers at its `address`."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._send(with_body=False)

        def do_GET(self) -> None:
            self._send(with_body=True)

        def _send(self, with_body: bool) -> None:
            path = urlparse(self.path).path
            status, headers, body = hub.answer(path)
            if with_body and "/resolve/" in path:
                hub.requests.append(path.rpartition("/")[2])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                is_cut = path.rpartition("/")[2] in hub.cut_off
                self.wfile.write(body[: len(body) // 2] if is_cut else body)
                self.close_connection = is_cut

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
