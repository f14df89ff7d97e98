"""Random damage to a file's content, and a summary of the outcomes."""

import random
from collections import Counter
from pathlib import Path

import h5py


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Damage content at one or three offsets, or truncate it.

    The bytes at an offset are flipped, removed, zeroed or changed to a digit.
    """
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 3))):
        start = draw.randrange(len(found))
        kind = draw.choice(("bit", "cut", "blank", "digit", "end"))
        if kind == "bit":
            found[start] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del found[start : start + draw.randint(1, 50)]
        elif kind == "blank":
            found[start : start + 64] = bytes(len(found[start : start + 64]))
        elif kind == "digit":
            found[start] = draw.choice(b"0123456789")
        else:
            del found[start:]
        found = found or bytearray(b"x")
    return bytes(found)


def weights_of(file: Path) -> dict[str, bytes]:
    """Return the numbers of each array in a file of weights, by its name."""
    arrays = {}

    def collect(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()].tobytes()

    with h5py.File(file) as opened:
        opened.visititems(collect)
    return arrays


def counted(outcomes: Counter[str]) -> str:
    count = f"{outcomes['wrong']} wrong of {outcomes.total():,}"
    return f"{count}, {outcomes['refused']:,} refused, {outcomes['harmless']:,} harmless"
