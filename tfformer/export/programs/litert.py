"""A program that runs a LiteRT file's signatures without tfformer or TensorFlow.

    python -P litert.py FILE [MODULE...] < requests.json > answers.json

Requests are [[signature, {input: values}], ...], answers [{output: values}, ...]. A MODULE, such as
tensorflow_text, is imported for the operations that it brings, and then TensorFlow comes along.
"""

import importlib
import json
import sys
from types import ModuleType
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, InterpreterWithCustomOps


def main(file: str, *modules: str) -> None:
    """Answer the requests of standard input with a LiteRT file."""
    interpreter = load(file, [importlib.import_module(module) for module in modules])
    runners = {
        name: interpreter.get_signature_runner(name) for name in interpreter.get_signature_list()
    }
    answers = [answer(runners[name], inputs) for name, inputs in json.load(sys.stdin)]
    print(json.dumps(answers))


def load(file: str, modules: list[ModuleType]) -> Interpreter:
    """Return an interpreter that knows the operators of the modules."""
    if not modules:
        return Interpreter(model_path=file)
    operators = [
        operator for module in modules for operator in module.tflite_registrar.SELECT_TFTEXT_OPS
    ]
    return InterpreterWithCustomOps(custom_op_registerers=operators, model_path=file)


def answer(runner: Any, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the outputs of a signature as nested lists."""
    dtypes = {name: details["dtype"] for name, details in runner.get_input_details().items()}
    outputs = runner(**{name: array(values, dtypes[name]) for name, values in inputs.items()})
    return {name: plain(values.tolist()) for name, values in outputs.items()}


def array(values: list[Any], dtype: type) -> np.ndarray:
    """Return values of JSON as an input of this dtype."""
    if dtype is np.bytes_:
        return np.array([text.encode("utf-8") for text in values], dtype=object)
    return np.array(values, dtype)


def plain(values: Any) -> Any:
    """Return nested lists with text in place of bytes."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values


if __name__ == "__main__":
    main(*sys.argv[1:])
