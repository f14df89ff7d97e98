"""A translation and its score, whatever engine found it."""

from typing import NamedTuple


class Translation(NamedTuple):
    """A translation of a sentence, and its score.

    Attributes:
        text: The translation.
        score: Log-probability in nats. A beam search divides it by `length_penalty(tokens,
            alpha)`; a greedy search (`beam_size` 1) does not.
    """

    text: str
    score: float
