"""The committed Marian checkpoints (scripts/oracles/make_marian_fixtures.py), put together as folders."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

FIXTURES = Path(__file__).parent / "marian"
NAMES = "ABCDEFGHI"


class Answers(NamedTuple):
    """The answers of transformers 5.23 about a checkpoint."""

    texts: dict  # expected.json
    arrays: dict[str, np.ndarray]  # expected.npz


def checkpoint(name: str, folder: Path) -> Path:
    """Copy a fixture and its SentencePiece models into a new folder; returns it."""
    target = folder / name
    target.mkdir()
    for file in [*(FIXTURES / name).iterdir(), FIXTURES / "source.spm", FIXTURES / "target.spm"]:
        if not file.name.startswith("expected"):
            shutil.copy(file, target)
    return target


def answers(name: str) -> Answers:
    texts = json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))
    with np.load(FIXTURES / name / "expected.npz") as arrays:
        return Answers(texts, dict(arrays))


def edit_json(path: Path, **changes) -> None:
    """Change keys of a JSON file; None takes a key away."""
    values = json.loads(path.read_text(encoding="utf-8")) | changes
    kept = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
