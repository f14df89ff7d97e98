"""A stand-in for a tokenizer whose ids a test can write by hand."""

from tfformer.data.encoding import encode_text


class WordIds:
    """The word "7" has the id 7."""

    vocab_size = 10_000

    def encode(self, sentences):
        return [[int(word) for word in sentence.split()] for sentence in sentences]


def encode_pairs(pairs, max_length=8, **options):
    """Pairs of sentences of numbers as an `EncodedText`."""
    return encode_text(pairs, (WordIds(), WordIds()), max_length, **options)
