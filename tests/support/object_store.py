"""A local server for Amazon's S3 API, whose requests tests can inspect."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class Quiet(WSGIRequestHandler):
    """A handler without logging."""

    def log(self, *_: object) -> None:
        """Do nothing."""


class ObjectStore:
    """The server, which runs during the block.

    Attributes:
        look: called with the method and the path of each request, before it is answered.
    """

    def __init__(self) -> None:
        self.look: Callable[[str, str], object] = lambda method, path: None
        self._answer = DomainDispatcherApplication(create_backend_app)
        self.server = make_server(
            "127.0.0.1", 0, self._application, threaded=True, request_handler=Quiet
        )
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def _application(self, environ: dict[str, Any], start: Callable) -> Any:
        self.look(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return self._answer(environ, start)

    @property
    def files(self) -> Any:
        """Return the store's fsspec file system, without its cache."""
        return fsspec.filesystem("s3", use_listings_cache=False)

    def bucket(self, name: str, content: dict[str, bytes] | None = None) -> str:
        """Create a bucket with these objects; return its address."""
        self.files.mkdir(name)
        for key, octets in (content or {}).items():
            self.files.pipe_file(f"{name}/{key}", octets)
        return f"s3://{name}"

    def content(self, bucket: str) -> dict[str, bytes]:
        """The objects of a bucket by their keys."""
        paths = self.files.find(bucket)
        return {path.partition("/")[2]: self.files.cat_file(path) for path in paths}


@contextmanager
def served() -> Iterator[ObjectStore]:
    """Run a store; during the block the environment variables point to it."""
    store = ObjectStore()
    thread = threading.Thread(target=store.server.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL": store.address}).items():
            patch.setitem(os.environ, name, value)
        yield store
    store.server.shutdown()
    store.server.server_close()
    thread.join()
