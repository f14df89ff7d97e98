"""A program that runs a SavedModel's signatures without tfformer.

It loads the SavedModel twice: in a TensorFlow 1 Session and by `tf.saved_model.load`.

    python -P saved_model.py FOLDER [MODULE...] < requests.json > answers.json

Each loader fails where the other does not. A Session restores variables like the C++ loader of
TensorFlow Serving. `tf.saved_model.load`, which Python users call, shares kernels between
functions. Requests are [[signature, {input: values}], ...]; the answers are
[[{output: values}, ...], ...] with a list per loader. A MODULE, such as tensorflow_text, is
imported for the operations that it registers.
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
    requests = json.load(sys.stdin)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def
        by_session = [
            session_answer(session, signatures[name], inputs) for name, inputs in requests
        ]
    functions = tf.saved_model.load(folder).signatures
    by_functions = [function_answer(functions[name], inputs) for name, inputs in requests]
    print(json.dumps([by_session, by_functions]))


def session_answer(
    session: tf.compat.v1.Session, signature: Any, inputs: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the outputs of a signature as nested lists."""
    feed = {signature.inputs[name].name: values for name, values in inputs.items()}
    outputs = session.run({name: tensor.name for name, tensor in signature.outputs.items()}, feed)
    return {name: plain(values.tolist()) for name, values in outputs.items()}


def function_answer(function: Any, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the outputs of a signature that `tf.saved_model.load` has restored."""
    _, specs = function.structured_input_signature
    tensors = {name: tf.constant(values, specs[name].dtype) for name, values in inputs.items()}
    return {name: plain(value.numpy().tolist()) for name, value in function(**tensors).items()}


def plain(values: Any) -> Any:
    """Return nested lists with text in place of bytes."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values


if __name__ == "__main__":
    main(*sys.argv[1:])
