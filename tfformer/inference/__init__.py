"""Using a trained model: translation, generation, evaluation."""

from typing import NamedTuple


class Translation(NamedTuple):
    """A translation of a sentence with its score, as every engine returns it."""

    text: str  # the translation
    # Log-probability in nats, divided by `length_penalty(tokens, alpha)` in a beam search
    score: float
