"""Protection of a local server and its page from other pages.

Those may be open in the same browser. A page of another site can send requests to 127.0.0.1
(cross-site requests), and can read the answers once its own name points there (DNS rebinding). Both
show in the headers of a request. Fetch standard: Origin, Sec-Fetch-Site; Content Security Policy
Level 3.
"""

import base64
import hashlib
import ipaddress
import re
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
OWN_SITES = ("same-origin", "none")  # of Sec-Fetch-Site; none: typed by the user


class HostGuard:
    """Refuses requests that another site's page has sent.

    Args:
        hosts: Names, beside addresses and localhost, by which this server may be called; also by
            the pages of these names, as behind a proxy.
        own_host: The name at which it listens. Another port of it is another site.
    """

    def __init__(self, hosts: Collection[str] = (), own_host: str = "localhost") -> None:
        self._allowed = {host.lower() for host in hosts}
        own = {"localhost", own_host.lower(), socket.gethostname().lower()}
        self._hosts = self._allowed | own

    def check(self, request: web.Request) -> None:
        """Refuse a foreign `Host`, and a POST from another site.

        Raises:
            web.HTTPForbidden: The request is not for this server, or not from its own page.
        """
        for host in request.headers.getall("Host", []):
            if not self._is_ours(_hostname(f"//{host}")):
                raise web.HTTPForbidden(
                    text=f"the host {host[:100]!r} is not this server's name; "
                    "allow it with --allow-host"
                )
        if request.method == "POST":
            self._check_origin(request)

    def _check_origin(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        site = request.headers.get("Sec-Fetch-Site", "none")
        if origin is None and site in OWN_SITES:
            return  # a program, or the address bar
        if origin is not None and origin.partition("://")[2] == request.headers.get("Host"):
            return
        if origin is not None and _hostname(origin) in self._allowed:
            return  # a proxy has changed the Host
        raise web.HTTPForbidden(text="a page of another site may not send requests to this server")

    def _is_ours(self, hostname: str | None) -> bool:
        """An address cannot be rebound: only names can."""
        if hostname is None:
            return False
        try:
            ipaddress.ip_address(hostname)
        except ValueError:
            return hostname in self._hosts
        return True


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Keep browsers from framing an answer or guessing its type, by its headers."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def content_security_policy(page: str) -> str:
    """Return the Content Security Policy of a page.

    It allows the page's own scripts and styles, and requests to its own server.
    """
    scripts = " ".join(_hashes(page, "script"))
    styles = " ".join(_hashes(page, "style"))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> list[str]:
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)  # data have attributes
    digests = [hashlib.sha256(content.encode()).digest() for content in contents]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


def _hostname(address: str) -> str | None:
    """The host's name in lower case, without its port; None if there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
