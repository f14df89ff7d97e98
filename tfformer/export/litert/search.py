"""Runs a written LiteRT export, without TensorFlow.

Shape letters: B sentences, S source tokens, T target tokens, N beams.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfformer.special_ids import END_ID

FILE = "model.tflite"
GREEDY, BEAM = "translate", "translate_beam"  # signatures over ids


class Found(NamedTuple):
    """The best translations of some sentences, best first.

    Attributes:
        ids: Ids (B, N, T); a translation ends with its first end token.
        scores: Their scores (B, N).
    """

    ids: np.ndarray
    scores: np.ndarray


class LitertSearch:
    """An interpreter of an export, for one thread at a time.

    Args:
        folder: One exported version, whose files are those of its manifest.
        manifest: The manifest.

    Raises:
        ValueError: LiteRT is not installed, or the file cannot be loaded.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._is_static = bool(manifest.get("static"))
        self._signatures: Mapping[str, Any] = manifest["signatures"]
        self._longest = manifest["decoding"]["max_length"] - 1
        self._interpreter = _interpreter(folder / FILE)

    def run(self, rows: Sequence[Sequence[int]], signature: str) -> Found:
        """Translate sentences.

        Args:
            rows: The ids of B sentences; those that are too long are truncated.
            signature: `GREEDY` with a single translation each, or `BEAM`.
        """
        short = [row[: self._longest] for row in rows]
        batches = [[row] for row in short] if self._is_static else [short]
        found = [self._run(batch, signature) for batch in batches]
        longest = max(part.ids.shape[2] for part in found)  # of a static file, by the sources
        ids = np.concatenate([_lengthened(part.ids, longest) for part in found])
        return Found(ids, np.concatenate([part.scores for part in found]))

    def _run(self, rows: Sequence[Sequence[int]], signature: str) -> Found:
        lengths = np.array(list(map(len, rows)), np.int32)  # (B,)
        width, name = self._width_and_name(max(1, *lengths.tolist()), signature)
        ids = np.full((len(rows), width), END_ID, np.int32)  # (B, S)
        for row, values in zip(ids, rows, strict=True):
            row[: len(values)] = values
        found = self._interpreter.get_signature_runner(name)(ids=ids, lengths=lengths)
        if signature == BEAM:
            return Found(found["ids"], found["scores"])
        return Found(found["ids"][:, np.newaxis], found["score"][:, np.newaxis])

    def _width_and_name(self, most: int, signature: str) -> tuple[int, str]:
        """The places of ids for `most` tokens, and the signature that has them.

        A static file has one for each of a few widths, of which the narrowest is taken that has
        room for the end token too.
        """
        if not self._is_static:
            return most, signature
        names = {
            each["inputs"]["ids"]["shape"][1]: name
            for name, each in self._signatures.items()
            if name == signature or name.removeprefix(f"{signature}_").isdecimal()
        }
        width = min(width for width in names if width > most)
        return width, names[width]


def _lengthened(ids: np.ndarray, length: int) -> np.ndarray:
    """Add end tokens to ids (B, N, T), up to `length`."""
    missing = length - ids.shape[2]
    return np.pad(ids, [(0, 0), (0, 0), (0, missing)], constant_values=END_ID)


def _interpreter(file: Path) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ModuleNotFoundError:
        raise ValueError(
            f"{file.parent} is a LiteRT export, which needs LiteRT; install it with: "
            "pip install 'tfformer[litert]'"
        ) from None
    try:
        return Interpreter(model_path=str(file), num_threads=1)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"{file} cannot be loaded ({error}); copy the whole exported folder again, or export "
            "the run again"
        ) from None
