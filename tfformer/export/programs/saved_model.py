"""A program that runs a SavedModel's signatures without tfformer.

It runs them in a TensorFlow 1 Session.

    python -P saved_model.py FOLDER [MODULE...] < requests.json > answers.json

A Session restores variables as the C++ loader of TensorFlow Serving does, and fails where that
fails; the loader of TensorFlow 2 forgives more. Requests are [[signature, {input: values}], ...],
answers [{output: values}, ...]. A MODULE, such as tensorflow_text, is imported for the operations
that it brings.
"""

import gc
import importlib
import json
import sys
from typing import Any

if __name__ == "__main__":  # TensorFlow begins in half the time
    gc.disable()  # it makes 440,000 objects, of which none is garbage
    hidden = ("matplotlib", "pandas")  # which Keras looks for
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: no module
import tensorflow as tf


def main(folder: str, *modules: str) -> None:
    """Answer the requests of standard input with the SavedModel in a folder."""
    for module in modules:
        importlib.import_module(module)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def
        answers = [
            answer(session, signatures[name], inputs) for name, inputs in json.load(sys.stdin)
        ]
    print(json.dumps(answers))


def answer(
    session: tf.compat.v1.Session, signature: Any, inputs: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the outputs of a signature as nested lists."""
    feed = {signature.inputs[name].name: values for name, values in inputs.items()}
    outputs = session.run({name: tensor.name for name, tensor in signature.outputs.items()}, feed)
    return {name: plain(values.tolist()) for name, values in outputs.items()}


def plain(values: Any) -> Any:
    """Return nested lists with text in place of bytes."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values


if __name__ == "__main__":
    main(*sys.argv[1:])
