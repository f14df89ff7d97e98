"""Our LiteRT file, ids in and ids out, in turns with other engines (turns.py)."""

from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from turns import Translate, numbering, run


def load(folder: Path, threads: int) -> Translate:
    """Load the export of a folder."""
    interpreter = Interpreter(model_path=str(folder / "model.tflite"), num_threads=threads)
    runner = interpreter.get_signature_runner("translate")
    ids_of = numbering(folder)

    def translate(rows: list[list[str]]) -> list[int]:
        found = runner(
            ids=np.array(list(map(ids_of, rows)), np.int32),
            lengths=np.array([len(row) for row in rows], np.int32),
        )
        return np.count_nonzero(found["ids"], axis=1).tolist()

    return translate


if __name__ == "__main__":
    run(load)
