"""A vocabulary of four letters, and pairs of sentences with these letters."""

import random

import pytest

from tfformer.data.tokenizers import Tokenizer


@pytest.fixture(scope="session")
def letters() -> Tokenizer:
    dice = random.Random(5)
    return Tokenizer.train(["".join(dice.choices("ab cd", k=30)) for _ in range(500)], 40)


@pytest.fixture(scope="session")
def letter_pairs() -> list[tuple[str, str]]:
    """400 distinct pairs, some of which do not fit into 20 tokens."""
    dice = random.Random(7)

    def text() -> str:
        return "".join(dice.choices("ab cd", k=dice.randint(20, 40)))

    return [(text(), text()) for _ in range(400)]
