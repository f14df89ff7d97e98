"""A server's count of translated characters, as DeepL's API tells it."""

from dataclasses import dataclass


@dataclass
class Usage:
    """A count since the server began.

    Attributes:
        characters: The characters of all texts.
    """

    characters: int = 0
