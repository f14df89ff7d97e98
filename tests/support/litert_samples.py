"""Sample sentences for LiteRT files, and a function that runs a signature."""

import itertools
from pathlib import Path

import numpy as np

from tfformer.data.sources import read_pairs

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 40)]
SENTENCES += ["", "The dog", "The dog " * 60, "the Ж 😀 dog"]


def run_signature(version: Path, signature: str, **inputs: list) -> dict[str, np.ndarray]:
    """Run a signature of the LiteRT file of an exported version, without an engine."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=str(version / "model.tflite")).get_signature_runner(signature)
    return runner(**{name: np.array(values, np.int32) for name, values in inputs.items()})
