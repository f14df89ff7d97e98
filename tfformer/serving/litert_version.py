"""A LiteRT export as a version of a server.

Its file takes ids and gives ids; texts become ids, and ids texts, here.
"""

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef, TensorInfo

from tfformer.engines.artifact import open_export
from tfformer.export.litert.search import BEAM, GREEDY, LitertSearch
from tfformer.export.saved_model_signatures import CHARACTERS_PER_TOKEN
from tfformer.serving.version import Arrays, Version, encoded

MAX_INTERPRETERS = 4  # each has a thread, and weights packed for itself
PART = 16  # sentences that an interpreter takes together at most


class LitertVersion(Version):
    """One exported version, run by LiteRT.

    It has the signatures over text that a SavedModel of the same run has. Where the file has no
    beam search, the beam is one translation wide.

    Args:
        folder: The version's own folder, such as `models/mine/1`.

    Raises:
        ValueError: The folder holds other files than its manifest, or LiteRT is not installed.
    """

    def __init__(self, folder: Path) -> None:
        manifest, self._tokenizers = open_export(folder)
        super().__init__(manifest, self._tokenizers, SIGNATURES)
        best = BEAM if BEAM in manifest["signatures"] else GREEDY
        self._searches = {"serving_default": GREEDY, "translate_beam": best}
        self._count = min(os.cpu_count() or 1, MAX_INTERPRETERS)
        self._threads = ThreadPoolExecutor(self._count, "litert")
        self._free: SimpleQueue[LitertSearch] = SimpleQueue()
        for _ in range(self._count):
            self._free.put(LitertSearch(folder, manifest))

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Run a signature on checked inputs; see `Version.run`.

        Sentences of like length run together, each part of them in a thread of its own.
        """
        rows = self._rows(inputs["text"])
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        parts = list(_parts(order, self._count))
        search = self._searches[signature]
        found = self._threads.map(
            lambda part: self._translated([rows[number] for number in part], search), parts
        )
        texts, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
        back = np.argsort(order)
        if signature == "serving_default":
            return {"translation": texts[back, 0], "score": scores[back, 0]}
        return {"translations": texts[back], "scores": scores[back]}

    def _rows(self, texts: np.ndarray) -> list[list[int]]:
        """The ids of texts in UTF-8, of which the characters count that can matter."""
        most = CHARACTERS_PER_TOKEN * (self.max_tokens + 1)
        short = [text.decode("utf-8", "replace")[:most] for text in texts]
        return encoded(self._tokenizers.source.encode, short)

    def _translated(self, rows: list[list[int]], search: str) -> tuple[np.ndarray, np.ndarray]:
        """The texts (B, N) of the best translations of B rows, and their scores (B, N)."""
        interpreter = self._free.get()
        try:
            found = interpreter.run(rows, search)
        finally:
            self._free.put(interpreter)
        size, beams, length = found.ids.shape
        texts = self._tokenizers.target.decode(found.ids.reshape(-1, length).tolist())
        in_utf_8 = np.array([text.encode() for text in texts], object)
        return in_utf_8.reshape(size, beams), found.scores


def _parts(numbers: Sequence[int], count: int) -> Iterator[Sequence[int]]:
    """The numbers in parts of like size, at least as many as interpreters."""
    size = min(PART, math.ceil(len(numbers) / count))
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _signature(**outputs: TensorInfo) -> SignatureDef:
    return SignatureDef(
        inputs={"text": _tensor("text", tf.string, 1)},
        outputs=outputs,
        method_name="tensorflow/serving/predict",
    )


def _tensor(name: str, dtype: tf.DType, rank: int) -> TensorInfo:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=-1)] * rank)
    return TensorInfo(name=name, dtype=dtype.as_datatype_enum, tensor_shape=shape)


SIGNATURES = {
    "serving_default": _signature(
        translation=_tensor("translation", tf.string, 1), score=_tensor("score", tf.float32, 1)
    ),
    "translate_beam": _signature(
        translations=_tensor("translations", tf.string, 2), scores=_tensor("scores", tf.float32, 2)
    ),
}
