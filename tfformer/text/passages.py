"""A sentence with its markup: what a format's reader gives and the translation fills."""

from __future__ import annotations

from typing import NamedTuple


class Passage(NamedTuple):
    """A sentence to translate.

    Attributes:
        text: The sentence as a reader sees it.
    """

    text: str
