"""The server among silent, slow and too many clients.

Other pages of the same browser are among them.
"""

import asyncio
import base64
import hashlib
import http.client
import json
import re
import resource
import socket
from contextlib import suppress
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer
from support.servers import ask, run_client, save_scripted_model, served

from tfformer.serving import body
from tfformer.serving import connections as limits
from tfformer.serving.application import application
from tfformer.serving.browser_guard import HostGuard
from tfformer.serving.connections import Connections
from tfformer.serving.model import ServedModels

UNNAMED = SimpleNamespace(manifest={})  # a version that names no languages

ONE = {"instances": ["a"]}


def address_of(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host, int(port)


@pytest.mark.slow
def test_1200_silent_connections_do_not_stop_a_process_of_1024_files(tmp_path):
    """Nor do as many that have sent half a request, nor as many to gRPC."""
    save_scripted_model(tmp_path / "echo" / "1", "v1")
    with served(tmp_path / "echo") as server:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1024, hard))
        address = urlsplit(server.rest)
        rest, grpc = (address.hostname, address.port), address_of(server.grpc)
        half = b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: x"
        for place, beginning in ((rest, b""), (rest, half), (grpc, b"")):
            silent = []
            for _ in range(1200):
                connection = socket.create_connection(place, timeout=30)
                with suppress(OSError):  # gRPC may have closed it
                    connection.sendall(beginning)
                silent.append(connection)
            assert ask(server, "echo:predict", ONE)[0] == 200
            assert run_client("grpc", server.grpc).stdout == b"v1: one\nv1: two\n"
            for connection in silent:
                connection.close()
        assert ask(server, "echo:predict", ONE)[0] == 200


def test_a_server_at_work_on_all_its_connections_answers_503(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)

    async def scenario():
        go_on, busy = asyncio.Event(), set()

        async def wait(request):
            busy.add(request.protocol)
            await go_on.wait()
            return web.Response(text="done")

        app = web.Application()
        app.router.add_get("/", wait)
        runner = web.AppRunner(app)
        await runner.setup()
        connections = Connections(runner.server, busy)
        server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with ClientSession() as session:
            working = [asyncio.create_task(session.get(address)) for _ in range(2)]
            async with asyncio.timeout(30):
                while len(busy) < 2:
                    await asyncio.sleep(0.01)
            third = await session.get(address)
            refused = third.status, third.headers["Retry-After"], await third.json()
            go_on.set()
            answers = [(await answer).status for answer in working]
            busy.clear()
            answers.append((await session.get(address)).status)
        server.close()
        await runner.cleanup()
        return refused, answers

    (status, seconds, answer), answers = asyncio.run(scenario())
    assert (status, seconds) == (503, "1")
    assert answers == [200, 200, 200]
    assert re.match(r"the server is full: \d+ connections are at work; try again", answer["error"])


def test_a_body_that_does_not_arrive_gets_408(monkeypatch):
    monkeypatch.setattr(body, "BODY_SECONDS", 0.2)
    model = SimpleNamespace(name="echo", versions={1: None}, number=lambda *_: 1, newest=UNNAMED)

    async def scenario():
        async with TestServer(application(ServedModels([model]))) as server:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            head = "POST /v1/models/echo:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9"
            writer.write(f"{head}\r\n\r\n{{".encode())
            answer = await asyncio.wait_for(reader.readuntil(b"}"), 20)
            writer.close()
            return answer.decode()

    answer = asyncio.run(scenario())
    assert answer.startswith("HTTP/1.1 408 ")
    assert "the body did not arrive within 0.2 seconds" in answer


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
BROKEN = {
    "a header of 9,000 bytes": HEAD + b"X-A: " + b"a" * 9_000 + b"\r\n\r\n",
    "a path of 9,000 bytes": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "200 headers": HEAD + b"X-A: a\r\n" * 200 + b"\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a chunk without a size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "TLS": b"\x16\x03\x01\x00\xa5\x01",
}


@pytest.mark.parametrize("request_bytes", BROKEN.values(), ids=BROKEN)
def test_broken_http_gets_400_with_its_reason_and_no_line_in_the_log(request_bytes, caplog):
    async def scenario():
        runner = web.AppRunner(web.Application())
        await runner.setup()
        connections = Connections(runner.server, set())
        server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request_bytes)
        answer = await asyncio.wait_for(reader.read(), 20)  # to the end: it is closed
        writer.close()
        server.close()
        await runner.cleanup()
        return answer.decode()

    head, _, body = asyncio.run(scenario()).partition("\r\n\r\n")
    assert head.split()[1] == "400"
    assert "X-Content-Type-Options: nosniff" in head
    error = json.loads(body)["error"]
    assert error.startswith("the request cannot be read: ")
    assert ("send long texts in the body" in error) == (b"a" * 9_000 in request_bytes)
    assert not caplog.records


# Other pages of the same browser


def answer_to(server, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    """The answer to a request with these headers; the body is read."""
    connection = http.client.HTTPConnection(urlsplit(server.rest).netloc, timeout=60)
    body = json.dumps(ONE) if method == "POST" else None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    response.text = response.read().decode()
    connection.close()
    return response


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
        "is not this server's name; allow it with --allow-host"
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
    assert "a page of another site may not send requests" in json.loads(response.text)["error"]


def test_the_own_page_a_program_and_a_link_are_answered(server):
    host = urlsplit(server.rest).netloc
    own = {"Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin"}
    assert answer_to(server, "POST", "/v1/models/echo:predict", **own).status == 200
    assert answer_to(server, "POST", "/v1/models/echo:predict").status == 200
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert answer_to(server, "GET", "/", **link).status == 200


def test_an_allowed_name_is_a_host_and_an_origin():
    """As behind a proxy, which may keep the Host or not."""
    model = SimpleNamespace(name="echo", versions={1: None}, number=lambda *_: 1, newest=UNNAMED)

    async def statuses(hosts):
        async with TestClient(TestServer(application(ServedModels([model]), hosts))) as client:
            requests = [
                client.get("/v1/models/echo", headers={"Host": "proxy.example"}),
                client.post("/v1/models/echo:predict", headers={"Origin": "https://proxy.example"}),
            ]
            return [(await request).status for request in requests]

    assert asyncio.run(statuses(["proxy.example"])) == [200, 400]  # 400: an empty body
    assert asyncio.run(statuses([])) == [403, 403]
    assert HostGuard(["A.example"])._is_ours("a.example")
    assert HostGuard(own_host="A.example")._is_ours("a.example")


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
