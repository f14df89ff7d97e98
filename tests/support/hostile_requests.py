"""A client for TensorFlow Serving's REST API, and random requests."""

import http.client
import json
import random
import string
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from support.damage import damaged

INPUTS = {
    "serving_default": ("text",),
    "translate_beam": ("text",),
    "translate_prefix": ("text", "prefix"),
    "translate_ids": ("ids", "lengths"),
    "translate_aligned": ("text",),
    "align_ids": ("ids", "lengths", "target_ids", "target_lengths"),
    "score": ("source", "target"),
}
SIGNATURES = (*INPUTS, "none", "")
VALUES = (None, True, -1, 2**31, 1e308, "", "text", "\ud800", [], [[]], {}, {"b64": "?"}, [0] * 70)


class Client:
    """Asks a server.

    Args:
        server: Its address, `rest`.
        name: The model's name.
    """

    def __init__(self, server: SimpleNamespace, name: str) -> None:
        self.name = name
        self._address = urlsplit(server.rest).netloc
        self._connection = http.client.HTTPConnection(self._address, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def rest(self, path: str, body: bytes) -> tuple[int, Any]:
        """POST to /v1/models/`path`; return the response's status and JSON."""
        try:
            self._connection.request("POST", f"/v1/models/{path}", body)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # the connection timed out
            self._connection.close()
            self._connection.request("POST", f"/v1/models/{path}", body)
            response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def translations(self, texts: list[str]) -> list[str]:
        body = json.dumps({"inputs": texts}).encode()
        status, answer = self.rest(f"{self.name}:predict", body)
        assert status == 200, answer
        return answer["outputs"]["translation"]

    def path(self, asked: Mapping[str, Any]) -> str:
        version = f"/versions/{asked['version']}" if "version" in asked else ""
        label = f"/labels/{asked['label']}" if "label" in asked else ""
        return f"{self.name}{version}{label}:predict"

    def body(self, asked: Mapping[str, Any]) -> bytes:
        plain = {name: np.array(values).tolist() for name, values in asked["inputs"].items()}
        named = {key: asked[key] for key in ("signature_name",) if key in asked}
        return json.dumps({"inputs": plain, **named}).encode()


def text(draw: random.Random) -> str:
    letters = string.printable + "äß€Жは𝄞\u00a0\u200b\u0301"
    return "".join(draw.choices(letters, k=draw.choice((0, 1, 5, 20, 60))))


def drawn_request(draw: random.Random) -> dict[str, Any]:
    """Return a random request; about half of them must be rejected."""
    signature = draw.choice(SIGNATURES)
    asked: dict[str, Any] = {"signature_name": signature}
    rows = draw.choice((1, 1, 1, 2, 3, 3, 64, 65))
    names = list(INPUTS.get(signature or "serving_default", ("text",)))
    if draw.random() < 0.1:
        names.pop()
    if draw.random() < 0.1:
        names.append(draw.choice(("text", "ids", "x")))
    asked["inputs"] = {name: _values(draw, name, rows) for name in names}
    chance = draw.random()
    if chance < 0.1:
        asked["version"] = draw.choice((0, 8, 9, 10))
    elif chance < 0.2:
        asked["label"] = draw.choice(("stable", "canary", "none"))
    return asked


def _values(draw: random.Random, name: str, rows: int) -> Any:
    """Return values for an input, mostly with the right type and rank."""
    if draw.random() < 0.05:
        rows += 1
    kind = draw.choice((str, np.int32, np.float32)) if draw.random() < 0.1 else None
    kind = kind or (np.int32 if name.endswith(("ids", "lengths")) else str)
    rank = draw.randrange(3) if draw.random() < 0.1 else 1 + name.endswith("ids")
    shape = (rows, draw.randint(1, 9))[:rank]
    count = int(np.prod(shape))
    if kind is str:
        return np.array([text(draw) for _ in range(count)], object).reshape(shape)
    return np.array([draw.randint(0, 9) for _ in range(count)], kind).reshape(shape)


def damaged_body(content: bytes, draw: random.Random) -> bytes:
    """Return a body with damaged bytes or one changed value."""
    if draw.random() < 0.5:
        return damaged(content, draw)
    request = json.loads(content)
    holder = draw.choice([request, request.get("inputs", request)])
    key = draw.choice([*holder, "instances", "inputs", "signature_name", "x"])
    holder[key] = draw.choice(VALUES)
    return json.dumps(request).encode()
