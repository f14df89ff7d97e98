"""Dynamic-range int8 for a LiteRT model: each row of a weight matrix as whole numbers with a scale of its own.

Knows no translation. Activations stay float32; LiteRT's products round each row of them as they go. TensorFlow's own
quantiser stores an embedding twice where it is also the output's weight, once for each scheme; here a matrix is stored
once, whatever uses it.
"""

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

LARGEST = 127
OPERATORS = schema.BuiltinOperator


def quantize(model: schema.ModelT) -> None:
    """Change, in place, the float32 matrices that are only multiplied with (as weights) or looked up in by rows."""
    quantized: dict[int, tuple[int, schema.QuantizationParametersT]] = {}  # buffer -> its int8 buffer, its scales
    for subgraph in model.subgraphs:
        for number in sorted(_matrices(model, subgraph)):
            tensor = subgraph.tensors[number]
            if tensor.buffer not in quantized:
                quantized[tensor.buffer] = _add_rows(model, tensor)
            tensor.buffer, tensor.quantization = quantized[tensor.buffer]
            tensor.type = schema.TensorType.INT8
            _tell_operators(model, subgraph, number)
    _forget_unused_buffers(model)


def _matrices(model: schema.ModelT, subgraph: schema.SubGraphT) -> set[int]:
    """The constant float32 matrices of which every use can be quantised."""
    good, bad = set(), set()
    for operator in subgraph.operators:
        for place, number in enumerate(operator.inputs):
            (good if _takes_rows(model, subgraph, operator, place) else bad).add(int(number))
    return {number for number in good - bad if _is_matrix(model, subgraph.tensors[number])}


def _takes_rows(model, subgraph, operator: schema.OperatorT, place: int) -> bool:
    code = _code(model, operator)
    if code == OPERATORS.GATHER:  # LiteRT's embedding lookup, which knows scales, wants a plain list of ids
        options, ids = operator.builtinOptions, subgraph.tensors[operator.inputs[1]]
        return place == 0 and (options.axis, options.batchDims) == (0, 0) and len(_shape(ids)) == 1
    return code == OPERATORS.FULLY_CONNECTED and place == 1


def _is_matrix(model: schema.ModelT, tensor: schema.TensorT) -> bool:
    is_constant = model.buffers[tensor.buffer].data is not None
    return is_constant and tensor.type == schema.TensorType.FLOAT32 and len(_shape(tensor)) == 2


def _shape(tensor: schema.TensorT) -> list[int]:
    return [] if tensor.shape is None else list(tensor.shape)


def _add_rows(model: schema.ModelT, tensor: schema.TensorT) -> tuple[int, schema.QuantizationParametersT]:
    rows = np.frombuffer(model.buffers[tensor.buffer].data.tobytes(), np.float32).reshape(tensor.shape)
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / LARGEST
    buffer = schema.BufferT()
    buffer.data = np.rint(rows / scales[:, np.newaxis]).astype(np.int8).reshape(-1).view(np.uint8)
    model.buffers.append(buffer)
    parameters = schema.QuantizationParametersT()
    parameters.scale = scales
    parameters.zeroPoint = np.zeros(len(scales), np.int64)
    parameters.quantizedDimension = 0
    return len(model.buffers) - 1, parameters


def _tell_operators(model: schema.ModelT, subgraph: schema.SubGraphT, number: int) -> None:
    for operator in subgraph.operators:
        if number not in operator.inputs:
            continue
        if _code(model, operator) == OPERATORS.GATHER:
            operator.opcodeIndex = _add_code(model, OPERATORS.EMBEDDING_LOOKUP, version=3)
            operator.inputs = operator.inputs[[1, 0]]
            operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.NONE, None
        elif _code(model, operator) == OPERATORS.FULLY_CONNECTED:
            operator.opcodeIndex = _add_code(model, OPERATORS.FULLY_CONNECTED, version=12)
            operator.builtinOptions.asymmetricQuantizeInputs = True


def _code(model: schema.ModelT, operator: schema.OperatorT) -> int:
    code = model.operatorCodes[operator.opcodeIndex]
    return max(code.builtinCode, code.deprecatedBuiltinCode)


def _add_code(model: schema.ModelT, builtin: int, version: int) -> int:
    """The number of that operator in the model's list. The versions are those that know a scale for each row."""
    for number, code in enumerate(model.operatorCodes):
        if (code.builtinCode, code.version) == (builtin, version):
            return number
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = builtin
    code.version = version
    model.operatorCodes.append(code)
    return len(model.operatorCodes) - 1


def _forget_unused_buffers(model: schema.ModelT) -> None:
    used = {tensor.buffer for subgraph in model.subgraphs for tensor in subgraph.tensors}
    used |= {entry.buffer for entry in model.metadata or []}
    for number, buffer in enumerate(model.buffers):
        if number not in used:
            buffer.data = None
