"""TensorFlow Serving's C++ loader for SavedModels. It is compiled against the installed wheel."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2

COMPILER = shutil.which("g++")
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # links a gigabyte in a second
NAME = "saved_model_loader"
OPERATIONS = ("_sentencepiece_tokenizer.so", "_fast_sentencepiece_tokenizer.so")


def compile_into(folder: Path) -> None:
    """Compile the program into a folder."""
    import tensorflow as tf

    wheel = Path(tf.__file__).parent
    libraries = [wheel / "libtensorflow_cc.so.2", wheel / "libtensorflow_framework.so.2"]
    source = Path(__file__).parent / f"{NAME}.cc"
    flags = ["-w", "-O0", *LINKER, *tf.sysconfig.get_compile_flags(), f"-Wl,-rpath,{wheel}"]
    command = [COMPILER, *flags, source, "-o", folder / NAME, *libraries]
    subprocess.run(list(map(str, command)), check=True)


def texts(program: Path, version: Path, signature: str, sentences: list[str]) -> list[str]:
    """Return the texts that a signature outputs for sentences."""
    saved = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
    described = saved.meta_graphs[0].signature_def[signature]
    by_type = {output.dtype: output.name for output in described.outputs.values()}
    tensors = [
        described.inputs["text"].name,
        by_type[types_pb2.DT_FLOAT],
        by_type[types_pb2.DT_STRING],
    ]
    names = [piece for tensor in tensors for piece in tensor.split(":")]
    text_folder = Path(importlib.util.find_spec("tensorflow_text").origin).parent
    operations = [text_folder / "python" / "ops" / name for name in OPERATIONS]
    done = subprocess.run(
        [program, version, *names, *operations],
        input="".join(sentence + "\n" for sentence in sentences),
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t")[1] for line in done.stdout.splitlines()]
