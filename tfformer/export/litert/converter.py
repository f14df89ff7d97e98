"""Run TensorFlow's LiteRT converter in another process, which frees its memory when it ends.

    python -m tfformer.export.litert.converter < arguments.json

`tf.lite` will be removed from TensorFlow. `ai-edge-litert` contains the schema of LiteRT files, but
no converter. `litert-converter`, which `litert-torch` uses, converts only MLIR modules. Whichever
converter comes next, only `_converted` has to change.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tfformer.export.parity import CHECKOUT, reason

PROGRAM = [sys.executable, "-m", "tfformer.export.litert.converter"]


def convert(
    save: Callable[[str], None], signatures: Sequence[str], quantize: str, path: Path
) -> None:
    """Write the LiteRT file of a SavedModel with these signatures; ValueError if that fails.

    `save` writes the SavedModel into a folder, while the other process imports TensorFlow.
    `quantize` is one of `QUANTIZATIONS`.
    """
    path = path.absolute()
    with (
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        subprocess.Popen(
            PROGRAM,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            cwd=CHECKOUT,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": "-1"},  # this process holds the GPU's memory
        ) as process,
    ):
        save(folder)
        arguments = json.dumps([folder, signatures, quantize, str(path)])
        _, errors = process.communicate(arguments)
    if process.returncode:
        raise ValueError(
            f"LiteRT's converter failed: {reason(process.returncode, errors)}; free some "
            "memory if it was killed, or export another format"
        )


def _write(folder: str, signatures: list[str], quantize: str, path: str) -> None:
    from ai_edge_litert.tools import flatbuffer_utils

    from tfformer.export.litert.compaction import compact
    from tfformer.export.litert.operators import use_builtins
    from tfformer.export.litert.quantization import quantize_weights

    converted = _converted(folder, signatures, quantize == "float16")
    model = flatbuffer_utils.convert_bytearray_to_object(converted)
    use_builtins(model)
    if quantize == "int8":
        quantize_weights(model)
    compact(model)
    Path(path).write_bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _converted(folder: str, signatures: list[str], in_float16: bool) -> bytes:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=signatures)
    converter.allow_custom_ops = True  # placeholders for LiteRT's operators
    if in_float16:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


if __name__ == "__main__":
    from tfformer.runtime.tensorflow import import_tensorflow

    import_tensorflow()
    if given := sys.stdin.read():  # empty if `save` failed
        _write(*json.loads(given))
