"""Our SavedModel, ids in and ids out, in turns with other engines (turns.py)."""

from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  its operations
from turns import Translate, numbering, run


def load(folder: Path, threads: int) -> Translate:
    """Load the export of a folder."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    model = tf.saved_model.load(str(folder))
    ids_of = numbering(folder)

    def translate(rows: list[list[str]]) -> list[int]:
        found = model.signatures["translate_ids"](
            ids=tf.constant(list(map(ids_of, rows)), tf.int32),
            lengths=tf.constant([len(row) for row in rows], tf.int32),
        )
        return np.count_nonzero(found["ids"].numpy(), axis=1).tolist()

    return translate


if __name__ == "__main__":
    run(load)
