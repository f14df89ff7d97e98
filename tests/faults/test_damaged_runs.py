"""A damaged run is refused in one line, or reads as if it were whole."""

import random
import time
from collections import Counter
from pathlib import Path

import h5py
import pytest

from tfformer.config import Config
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import Run, Tokenizers, new_model

FILES = (
    "best.weights.h5",
    "best.weights.h5",
    "config.json",
    "tokenizer.model",
)  # one twice as often
LINES = ["one two three", "four five six", "eins zwei drei", "vier fünf sechs", "ten", "zehn"] * 20
RECIPE = {
    "model": {"num_layers": 2, "d_model": 16, "num_heads": 2, "d_ff": 24},
    "tokenizer": {"vocab_size": 29},
    "data": {"max_length": 20},
}


@pytest.fixture
def run(tmp_path) -> Run:
    tokenizer = Tokenizer.train(LINES, 29)
    run = Run.create(tmp_path / "run", Config.from_dict(RECIPE), Tokenizers(tokenizer, tokenizer))
    run.save_weights(new_model(run.config.model, run.tokenizers))
    return run


def meaning(path: Path) -> tuple:
    """Everything of a run that decides a translation."""
    run, arrays = Run.open(path), {}
    run.check_weights()

    def collect(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()].tobytes()

    with h5py.File(run.weights) as file:
        file.visititems(collect)
    config = run.config
    return config.model, config.decoding, config.data.max_length, run.tokenizers.digests, arrays


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Damage some content in one or three places, or at its end.

    A place is flipped, cut out, blanked or changed to a digit; the end is cut off.
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


@pytest.mark.slow
def test_no_damage_changes_the_meaning_of_a_run(run):
    draw, outcomes, expected = random.Random(25), Counter(), meaning(run.path)
    whole = {name: (run.path / name).read_bytes() for name in FILES}
    for _ in range(300):
        name = draw.choice(FILES)
        (run.path / name).write_bytes(damaged(whole[name], draw))
        start = time.process_time()
        try:
            assert meaning(run.path) == expected
            outcomes["harmless", name] += 1
        except (ValueError, OSError):
            outcomes["refused", name] += 1
        assert time.process_time() - start < 5
        (run.path / name).write_bytes(whole[name])
    for name in whole:
        assert outcomes["refused", name] > 20
