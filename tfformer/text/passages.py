"""A sentence with its markup.

A format's reader gives it and the translation fills it.
"""

from __future__ import annotations

from typing import NamedTuple


class Passage(NamedTuple):
    """A sentence to translate.

    Attributes:
        text: The sentence as a reader sees it.
    """

    text: str
