"""A word alignment that no model made."""


def last_word_first(source: str) -> list[tuple[int, int]]:
    """The links of a sentence to its words in the opposite order."""
    count = len(source.split())
    return [(word, count - 1 - word) for word in range(count)]
