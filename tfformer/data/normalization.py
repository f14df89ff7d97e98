"""Rules of normalisation that SentencePiece does not name, made of its own.

A SentencePiece model carries its rules within it, as a map from texts to texts, so that they are
the same in Python, in a graph, on a device and in a browser.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

SINGLE_QUOTES = "‘’‚‛"
DOUBLE_QUOTES = "“”„‟"
SOFT_HYPHEN = "\u00ad"
PLAIN = {  # "nmt_nfkc_plain" on top of "nmt_nfkc"
    **dict.fromkeys(SINGLE_QUOTES, "'"),
    **dict.fromkeys(DOUBLE_QUOTES, '"'),
    SOFT_HYPHEN: "",
}

# The units of a double array (darts-clone): a node's children lie at its place XOR its offset XOR
# the byte that leads to them.
LABEL = (1 << 31) | 0xFF
HAS_VALUE = 1 << 8
CHUNK = 4096  # nodes looked at together, each for 255 bytes


def plain_rules(charsmap: bytes) -> str:
    """Write a model's rules, and those of `PLAIN`, as SentencePiece reads them.

    Args:
        charsmap: The `precompiled_charsmap` of a model.

    Returns:
        A line for each rule: code points in hexadecimal, a tab, and those in their place.
    """
    rules = dict(rules_of(charsmap)) | PLAIN
    return "".join(f"{_code_points(text)}\t{_code_points(rules[text])}\n" for text in sorted(rules))


def rules_of(charsmap: bytes) -> Iterator[tuple[str, str]]:
    """Read the rules of a model.

    Args:
        charsmap: The `precompiled_charsmap` of a model: the size of a trie, the trie, and the texts
            that its values point to, each ended by NUL.

    Yields:
        A text and the one in its place.
    """
    (size,) = struct.unpack_from("<I", charsmap)
    units = np.frombuffer(charsmap, "<u4", size // 4, offset=4).astype(np.int64)
    texts = charsmap[4 + size :]
    keys = [b""]
    nodes = np.zeros(1, np.int64)
    while len(nodes):
        below = nodes ^ _offsets(units[nodes])
        for node in np.flatnonzero(units[nodes] & HAS_VALUE):
            start = int(units[below[node]]) & ~(1 << 31)
            yield keys[node].decode(), texts[start : texts.index(b"\0", start)].decode()
        parents, labels = _children(units, below)
        keys = [
            keys[parent] + bytes([label]) for parent, label in zip(parents, labels, strict=True)
        ]
        nodes = below[parents] ^ labels


def _offsets(units: np.ndarray) -> np.ndarray:
    """The offsets of units: 21 bits, of larger ones without the last 8."""
    return (units >> 10) << ((units & (1 << 9)) >> 6)


def _children(units: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of nodes, the number of the parent and the byte of each child."""
    labels = np.arange(1, 256)
    parents, bytes_ = [], []
    for start in range(0, len(below), CHUNK):
        places = below[start : start + CHUNK, np.newaxis] ^ labels  # (nodes, 255)
        is_inside = places < len(units)
        found = units[np.where(is_inside, places, 0)] & LABEL
        parent, label = np.nonzero(is_inside & (found == labels))
        parents.append(parent + start)
        bytes_.append(labels[label])
    return np.concatenate(parents), np.concatenate(bytes_)


def _code_points(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
