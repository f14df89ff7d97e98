"""The error that a request gets for an answer."""

import reprlib

MAX_NAME = 255  # characters of a model's, label's, signature's or tensor's name
MISTAKE = "the server has made a mistake; its log says which"
MAX_MESSAGE = 1_000  # characters: gRPC sends a message in a header, and headers have 8 kB


class RequestError(Exception):
    """A request that is refused.

    Args:
        code: The name of a gRPC status, such as `INVALID_ARGUMENT`.
        message: The reason and the remedy; shortened to `MAX_MESSAGE` characters.
    """

    def __init__(self, code: str, message: str) -> None:
        kept = message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 3]}..."
        super().__init__(kept)
        self.code = code


def check_name(kind: str, name: str) -> None:
    """Refuse a name that no export has.

    Raises:
        RequestError: The name has more than `MAX_NAME` characters.
    """
    if len(name) > MAX_NAME:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"the {kind} name {reprlib.repr(name)} has {len(name)} characters; "
            f"a name may have up to {MAX_NAME}",
        )
