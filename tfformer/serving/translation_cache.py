"""Translations that were asked for lately, within a bound of memory."""

import sys

from cachetools import LRUCache

from tfformer.serving.request_queue import Runs

CACHE_BYTES = 64 * 2**20
Key = tuple[Runs, str, str]


class TranslationCache:
    """Sentences with their n-best lists.

    The sentences that were asked for longest ago make room.

    Args:
        max_bytes: The bound, in bytes.

    Example:
        >>> cache = TranslationCache()
        >>> version = object()
        >>> cache.keep(version, "translate_beam", "A dog.", ["Ein Hund."])
        >>> cache.find(version, "translate_beam", "A dog.")
        ['Ein Hund.']
        >>> cache.find(version, "translate_beam", "A cat.")
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._kept: LRUCache[Key, tuple[str, list[str]]] = LRUCache(max_bytes, getsizeof=_bytes)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, version: Runs, signature: str, sentence: str) -> list[str] | None:
        """Return the n-best list of a sentence, or None."""
        kept = self._kept.get((version, signature, sentence))
        return None if kept is None else kept[1]

    def keep(self, version: Runs, signature: str, sentence: str, best: list[str]) -> None:
        """Keep an n-best list, unless it is larger than the whole bound.

        Args:
            version: The version that translated; two versions never share a translation.
            signature: The signature that it ran.
            sentence: The source.
            best: Its translations, best first.
        """
        item = (sentence, best)
        if _bytes(item) <= self._kept.maxsize:
            self._kept[version, signature, sentence] = item


def _bytes(item: tuple[str, list[str]]) -> int:
    """About the memory of a sentence, its list and their places."""
    sentence, best = item
    return 400 + sys.getsizeof(sentence) + sum(map(sys.getsizeof, best))
