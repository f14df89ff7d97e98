"""A stand-in for a tokenizer whose ids a test can write by hand."""

import random

from tfformer.data.encoding import encode_text


class WordIds:
    """The word "7" has the id 7."""

    vocab_size = 10_000

    def encode(self, sentences):
        return [list(map(int, sentence.split())) for sentence in sentences]


def unlike_pairs(longest, mean):
    """Return 700 different sentence pairs with 1 to `longest - 1` numbers per side.

    Both sides of a pair have similar lengths, on average about `mean` numbers.
    """
    dice, most = random.Random(3), longest - 2
    pairs = []
    for number in range(700):
        length = min(most, int(dice.expovariate(1 / mean)))
        target_words = max(0, min(most, length + dice.randint(-6, 6)))
        pairs.append((f"{1000 + number}" + " 5" * length, f"{2000 + number}" + " 6" * target_words))
    return pairs


def encode_pairs(pairs, max_length=8, **options):
    """Encode sentence pairs of numbers as an `EncodedText`."""
    return encode_text(pairs, (WordIds(), WordIds()), max_length, **options)
