"""The operators and buffers of a LiteRT model, and the pass that makes every operator a builtin."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

BUILTINS = schema.BuiltinOperator
# Name of a function in the graph -> LiteRT's builtin operator.
NAMED = {b"dynamic_update_slice": BUILTINS.DYNAMIC_UPDATE_SLICE}


def builtin_of(model: schema.ModelT, operator: schema.OperatorT) -> int:
    """Return an operator's builtin code."""
    known = model.operatorCodes[operator.opcodeIndex]
    return max(known.builtinCode, known.deprecatedBuiltinCode)


def operator_index(model: schema.ModelT, builtin: int, version: int) -> int:
    """Return the index of an operator code, adding it if it is missing."""
    for index, known in enumerate(model.operatorCodes):
        if (known.builtinCode, known.version) == (builtin, version):
            return index
    added = schema.OperatorCodeT()
    added.builtinCode = builtin
    added.deprecatedBuiltinCode = min(builtin, 127)
    added.version = version
    model.operatorCodes.append(added)
    return len(model.operatorCodes) - 1


def values_of(model: schema.ModelT, tensor: schema.TensorT) -> np.ndarray:
    """Return the values of a constant float32 tensor."""
    content = model.buffers[tensor.buffer].data.tobytes()
    return np.frombuffer(content, np.float32).reshape(tensor.shape)


def add_buffer(model: schema.ModelT, values: np.ndarray) -> int:
    """Add an array to the model's buffers, and return the index of its buffer."""
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    model.buffers.append(buffer)
    return len(model.buffers) - 1


def use_builtins(model: schema.ModelT) -> None:
    """Replace the graph's functions with LiteRT's builtin operators of the same name."""
    for code in model.operatorCodes:
        if code.customCode in NAMED:
            code.builtinCode = NAMED[code.customCode]
            code.deprecatedBuiltinCode = 127  # look at builtinCode
            code.customCode = None
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if builtin_of(model, operator) in NAMED.values():
                operator.builtinOptionsType = schema.BuiltinOptions.NONE
                operator.builtinOptions = None
                operator.customOptions = None
        for operator in subgraph.operators:
            _use_expand_dims(model, subgraph, operator)
    _forget_unused_codes(model)


def _use_expand_dims(
    model: schema.ModelT, subgraph: schema.SubGraphT, operator: schema.OperatorT
) -> None:
    """Replace a slice that only adds an axis, which the converter leaves as it is for a mask."""
    if model.operatorCodes[operator.opcodeIndex].customCode != b"StridedSlice":
        return
    source, begin, end, _ = (subgraph.tensors[index] for index in operator.inputs)
    added = subgraph.tensors[operator.outputs[0]]
    if begin.buffer != end.buffer:
        return  # some rows are left out
    before, after = _free_shape(source), _free_shape(added)
    axes = [axis for axis in range(len(after)) if [*after[:axis], 1, *before[axis:]] == after]
    axis = schema.TensorT()
    axis.name = added.name + b"/axis"
    axis.type = schema.TensorType.INT32
    axis.shape = np.array([1], np.int32)
    axis.buffer = add_buffer(model, np.array(axes[:1], np.int32))
    subgraph.tensors.append(axis)
    operator.opcodeIndex = operator_index(model, BUILTINS.EXPAND_DIMS, version=1)
    operator.inputs = np.array([operator.inputs[0], len(subgraph.tensors) - 1], np.int32)
    operator.builtinOptionsType = schema.BuiltinOptions.ExpandDimsOptions
    operator.builtinOptions = schema.ExpandDimsOptionsT()
    operator.customOptions = None


def _forget_unused_codes(model: schema.ModelT) -> None:
    operators = [operator for subgraph in model.subgraphs for operator in subgraph.operators]
    used = sorted({operator.opcodeIndex for operator in operators})
    model.operatorCodes = [model.operatorCodes[index] for index in used]
    for operator in operators:
        operator.opcodeIndex = used.index(operator.opcodeIndex)


def _free_shape(tensor: schema.TensorT) -> list[int]:
    """The shape, -1 where an axis is free."""
    return list(tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature)
