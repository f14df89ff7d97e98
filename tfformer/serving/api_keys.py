"""Keys without which nobody may translate; off unless there are some."""

import hmac
from collections.abc import Collection, Mapping
from pathlib import Path

from tfformer.plain_values import read_text
from tfformer.serving.errors import RequestError

SCHEMES = ("deepl-auth-key", "bearer")  # in any case


class ApiKeys:
    """The keys of a server.

    Args:
        keys: All of them; none lets everybody in.

    Example:
        >>> keys = ApiKeys(["secret"])
        >>> keys.is_known("secret"), keys.is_known("guess"), ApiKeys([]).is_known("")
        (True, False, True)
    """

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = [key.encode() for key in keys]

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._keys)

    def is_known(self, key: str) -> bool:
        """Return whether a key is accepted, in a time that does not depend on the keys."""
        given = key.encode("utf-8", "surrogatepass")
        known = [hmac.compare_digest(given, one) for one in self._keys]
        return not known or any(known)

    def check(self, headers: Mapping[str, str], key: str = "") -> None:
        """Refuse a request without a known key.

        Args:
            headers: Headers of HTTP or metadata of gRPC; `authorization` may have the key.
            key: The key of a field, where an API has one.

        Raises:
            RequestError: There is no key, or a wrong one.
        """
        if not self.is_known(key or _header_key(headers)):
            raise RequestError("PERMISSION_DENIED", "the API key is missing or unknown")


def read_keys(path: str | Path | None) -> list[str]:
    """Return the keys of a file, one a line; none without a file.

    Raises:
        ValueError: There is no key in the file, or it is no small text file.
    """
    if path is None:
        return []
    keys = read_text(Path(path)).split()
    if not keys:
        raise ValueError(f"--api-keys {path} has no key; write one a line")
    return keys


def _header_key(headers: Mapping[str, str]) -> str:
    """The key behind a scheme.

    The headers of aiohttp know a name in any case, and gRPC's names are in lower case.
    """
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.lstrip(" ") if scheme.lower() in SCHEMES else ""
