"""The server protects itself against other pages in the same browser."""

import asyncio
import base64
import hashlib
import json
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import Headers
from support import servers
from support.served_texts import Scripted, client_of, scripted

from tfformer.serving.application import application
from tfformer.serving.errors import RequestError
from tfformer.serving.security import HostGuard
from tfformer.serving.served_models import ServedModels

ONE = {"instances": ["a"]}


def answer_to(server, method: str, path: str, **headers: str) -> SimpleNamespace:
    """Return the response to a request with these headers."""
    body = json.dumps(ONE) if method == "POST" else None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return servers.answer_to(server, method, path, body, named)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/v1/models/echo"), ("POST", "/v1/models/echo:predict")],
)
def test_a_foreign_host_is_refused(server, method, path, host):
    """A page at evil.example whose name now points to 127.0.0.1 (DNS rebinding)."""
    response = answer_to(server, method, path, Host=host)
    assert response.status == 403
    assert (
        "is not a name of this server; allow it with --allow-host"
        in json.loads(response.text)["error"]
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8501", "192.0.2.7:80"]
)
def test_an_address_and_localhost_are_no_foreign_host(server, host):
    assert answer_to(server, "GET", "/v1/models/echo", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:9999", "Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "none"},
    ],
)
def test_a_post_of_another_sites_page_is_refused(server, headers):
    response = answer_to(server, "POST", "/v1/models/echo:predict", **headers)
    assert response.status == 403
    assert "a page from another site must not send requests" in json.loads(response.text)["error"]


def test_the_own_page_a_program_and_a_link_are_answered(server):
    host = urlsplit(server.rest).netloc
    headers = {"Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin"}
    assert answer_to(server, "POST", "/v1/models/echo:predict", **headers).status == 200
    assert answer_to(server, "POST", "/v1/models/echo:predict").status == 200
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert answer_to(server, "GET", "/", **link).status == 200


def test_an_allowed_name_is_a_host_and_an_origin():
    """As behind a proxy, which may keep or replace the Host header."""
    model = scripted("echo", Scripted())

    async def statuses(hosts):
        async with client_of(application(ServedModels([model]), hosts)) as client:
            requests = [
                client.get("/v1/models/echo", headers={"Host": "proxy.example"}),
                client.post("/v1/models/echo:predict", headers={"Origin": "https://proxy.example"}),
            ]
            answers = [await request for request in requests]
            for answer in answers:
                await answer.read()
            return [answer.status for answer in answers]

    assert asyncio.run(statuses(["proxy.example"])) == [200, 400]  # 400: an empty body
    assert asyncio.run(statuses([])) == [403, 403]
    assert HostGuard(["A.example"])._is_ours("a.example")
    assert HostGuard(listening_host="A.example")._is_ours("a.example")


@pytest.mark.parametrize(
    "given", ["example.com:8443", "Example.com", "https://example.com:8443/", "example.com:"]
)
def test_an_allowed_name_may_have_a_port(given):
    """It then has any port; the refusal of another host names what the option takes."""
    guard = HostGuard([given])
    for host in ("example.com:8443", "example.com", "EXAMPLE.COM:80"):
        guard.check("GET", Headers({"host": host}))
    guard.check("POST", Headers({"host": "localhost", "origin": "https://example.com:8443"}))
    message = "the host 'other.example' is not a name of this server; allow it with --allow-host"
    with pytest.raises(RequestError, match=message):
        guard.check("GET", Headers({"host": "other.example:8443"}))


@pytest.mark.parametrize(
    "given", ["", ":8443", "https://", "[", "2001:db8::1", "*", "a b", "a,b", "http//a"]
)
def test_an_allowed_host_must_be_one(given):
    message = f"--allow-host {given!r} is not a host; write a name such as example.com"
    with pytest.raises(ValueError, match=re.escape(message)):
        HostGuard([given])


def test_every_answer_tells_browsers_not_to_frame_or_guess(server):
    for method, path in (("GET", "/"), ("GET", "/v1/models/echo"), ("GET", "/none"), ("POST", "/")):
        headers = answer_to(server, method, path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_the_pages_policy_allows_its_own_script_and_no_other(server):
    response = answer_to(server, "GET", "/")
    scripts = re.findall(r"<script>(.*?)</script>", response.text, flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in scripts]
    allowed = "script-src {};".format(" ".join(f"'sha256-{digest.decode()}'" for digest in digests))
    assert scripts
    assert allowed in response.headers["Content-Security-Policy"]
    assert "unsafe" not in response.headers["Content-Security-Policy"]
