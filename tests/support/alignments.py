"""An artificial word alignment."""


def last_word_first(source: str) -> list[tuple[int, int]]:
    """Return the links from a sentence's words to the same words in reverse order."""
    count = len(source.split())
    return [(word, count - 1 - word) for word in range(count)]
