"""A translation and its score, whatever engine found it."""

from typing import NamedTuple


class Translation(NamedTuple):
    """A translation of a sentence, and its score.

    Attributes:
        text: The translation.
        score: Log-probability in nats, divided by `length_penalty(tokens, alpha)` in a beam search.
    """

    text: str
    score: float
