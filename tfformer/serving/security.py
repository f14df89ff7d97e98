"""API keys, and protection of a local server and its page from other web pages.

A page from another site, open in the same browser, can send requests to 127.0.0.1 (cross-site
requests), and can read the responses once its host name resolves to that address (DNS rebinding).
Both can be detected from the request's headers. Fetch standard: Origin, Sec-Fetch-Site; Content
Security Policy Level 3.
"""

import base64
import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from tfformer.serving.errors import RequestError
from tfformer.storage.whole_files import read_text

SCHEMES = ("deepl-auth-key", "bearer")  # in the header Authorization
HEADERS = {  # in every response
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
HOST_NAME = re.compile(r"[\w.:-]+")  # also the characters of IPv6
ALLOWED_SITES = ("same-origin", "none")  # values of Sec-Fetch-Site; none: typed by the user


class ApiKeys:
    """The API keys of a server; with an empty collection, requests need no key."""

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = [key.encode() for key in keys]

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._keys)

    def is_known(self, key: str) -> bool:
        """Return whether a key is accepted, in constant time."""
        given = key.encode("utf-8", "surrogatepass")
        known = [hmac.compare_digest(given, stored) for stored in self._keys]
        return not known or any(known)

    def check(self, headers: Headers, key: object = None) -> None:
        """Reject a request without a known key in its `Authorization` header or in `key`."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if not key and scheme.lower() in SCHEMES:
            key = given.lstrip(" ")
        if not self.is_known(str(key or "")):
            raise RequestError("the API key is missing or unknown", 403)


def read_keys(path: str | Path | None) -> list[str]:
    """Return the keys in a text file, one per line; an empty list without a file."""
    if path is None:
        return []
    keys = read_text(Path(path)).split()
    if not keys:
        raise ValueError(f"--api-keys {path} contains no key; write one key per line")
    for number, key in enumerate(keys, 1):
        if not key.isascii():  # a header would contain it in an unknown encoding
            raise ValueError(
                f"--api-keys {path}: key {number} has a character outside ASCII; use ASCII keys"
            )
    return keys


class HostGuard:
    """Rejects requests sent by pages from other sites.

    An IP address is always accepted as the host, because only names can be rebound. `hosts` are
    further host names of this server, such as a proxy's, whose ports are ignored; pages from these
    hosts may send requests. ValueError: one of them is not a host.
    """

    def __init__(self, hosts: Collection[str] = (), listening_host: str = "localhost") -> None:
        self._allowed = {_given_name(host) for host in hosts}
        allowed = {"localhost", listening_host.lower(), socket.gethostname().lower()}
        self._hosts = self._allowed | allowed

    def check(self, method: str, headers: Headers) -> None:
        """Refuse a foreign `Host`, and a POST from another site."""
        for host in headers.getlist("host"):
            name = _hostname(f"//{host}")
            if not self._is_ours(name):
                raise RequestError(
                    f"the host {(name or host)[:100]!r} is not a name of this server; allow it "
                    "with --allow-host",
                    403,
                )
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        if method != "POST" or (origin is None and site in ALLOWED_SITES):
            return  # sent by a program, or from the address bar
        if origin is not None and origin.partition("://")[2] == headers.get("host"):
            return
        if origin is not None and _hostname(origin) in self._allowed:
            return  # a proxy has changed the Host
        raise RequestError(
            "a page from another site must not send requests to this server; allow its host with "
            "--allow-host",
            403,
        )

    def _is_ours(self, hostname: str | None) -> bool:
        if hostname is None:
            return False
        try:
            ipaddress.ip_address(hostname)
        except ValueError:
            return hostname in self._hosts
        return True


def _given_name(host: str) -> str:
    """Return the name in a host, which may have a port, or in an address with a scheme."""
    try:
        parts = urlsplit(host if "://" in host else f"//{host}")
        name, _ = parts.hostname, parts.port  # ValueError: the port is not a number
    except ValueError:
        name = None
    if not name or not HOST_NAME.fullmatch(name) or parts.path.strip("/"):
        raise ValueError(
            f"--allow-host {host!r} is not a host; write a name such as example.com, or an address "
            "such as [::1]"
        )
    return name


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def content_security_policy(page: str) -> str:
    """Return the Content Security Policy of a page.

    It allows the page's inline scripts and styles, and requests to the page's server.
    """
    scripts = " ".join(_hashes(page, "script"))
    styles = " ".join(_hashes(page, "style"))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> list[str]:
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)  # data has attributes
    digests = [hashlib.sha256(content.encode()).digest() for content in contents]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
