"""Random damage to a file's content, and a summary of the outcomes."""

import random
from collections import Counter
from pathlib import Path

import h5py


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Damage content at one or three offsets, or truncate it.

    The bytes at an offset are flipped, removed, zeroed or changed to a digit.
    """
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 3))):
        start = draw.randrange(len(changed))
        kind = draw.choice(("bit", "cut", "blank", "digit", "end"))
        if kind == "bit":
            changed[start] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del changed[start : start + draw.randint(1, 50)]
        elif kind == "blank":
            changed[start : start + 64] = bytes(len(changed[start : start + 64]))
        elif kind == "digit":
            changed[start] = draw.choice(b"0123456789")
        else:
            del changed[start:]
        changed = changed or bytearray(b"x")
    return bytes(changed)


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
