"""What a training resumes from."""

from pathlib import Path

import numpy as np


def state_of(run: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a run's `resume.npz`, except the history, which has times."""
    with np.load(run / "resume.npz") as arrays:
        return {name: arrays[name] for name in arrays.files if name != "history"}
