"""Passes between LiteRT's converter and the file: builtin operators, int8 weights, smaller size.

Each pass changes a model in place; `converter` calls the passes in this order.
"""

import hashlib
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

BUILTINS = schema.BuiltinOperator
# Name of a function in the graph -> LiteRT's builtin operator.
NAMED = {b"dynamic_update_slice": BUILTINS.DYNAMIC_UPDATE_SLICE}
LARGEST = 127  # largest int8
WORTH_AN_OPERATOR = 4096  # bytes from which computing a constant saves space
Zeros = dict[tuple[flatbuffers.Builder, int], int]
Constant = tuple[int, tuple[int, ...]]  # buffer and shape


def _builtin(model: schema.ModelT, operator: schema.OperatorT) -> int:
    """Return an operator's builtin code."""
    known = model.operatorCodes[operator.opcodeIndex]
    return max(known.builtinCode, known.deprecatedBuiltinCode)


def _operator_index(model: schema.ModelT, builtin: int, version: int) -> int:
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


def _values(model: schema.ModelT, tensor: schema.TensorT) -> np.ndarray:
    content = model.buffers[tensor.buffer].data.tobytes()
    return np.frombuffer(content, np.float32).reshape(tensor.shape)


def _add_buffer(model: schema.ModelT, values: np.ndarray) -> int:
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
            if _builtin(model, operator) in NAMED.values():
                operator.builtinOptionsType = schema.BuiltinOptions.NONE
                operator.builtinOptions = None
                operator.customOptions = None
        for operator in subgraph.operators:
            _use_expand_dims(model, subgraph, operator)


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
    axis.buffer = _add_buffer(model, np.array(axes[:1], np.int32))
    subgraph.tensors.append(axis)
    operator.opcodeIndex = _operator_index(model, BUILTINS.EXPAND_DIMS, version=1)
    operator.inputs = np.array([operator.inputs[0], len(subgraph.tensors) - 1], np.int32)
    operator.builtinOptionsType = schema.BuiltinOptions.ExpandDimsOptions
    operator.builtinOptions = schema.ExpandDimsOptionsT()
    operator.customOptions = None


class RowScales(schema.QuantizationParametersT):
    """A scale per row (R,), and the zero points, which a file stores once for each R.

    `zeros` maps (the file's builder, the number of zero points) to the offset of zero points that
    are already written.
    """

    def __init__(self, scales: np.ndarray, zeros: Zeros) -> None:
        super().__init__()
        self.scale = scales
        self.zeros = zeros

    def Pack(self, builder: flatbuffers.Builder) -> int:
        """Write the scales, and the zero points if the file lacks them; return the offset."""
        rows = len(self.scale)
        scales = builder.CreateNumpyVector(self.scale)
        if (builder, rows) not in self.zeros:
            self.zeros[builder, rows] = builder.CreateNumpyVector(np.zeros(rows, np.int64))
        schema.QuantizationParametersStart(builder)
        schema.QuantizationParametersAddScale(builder, scales)
        schema.QuantizationParametersAddZeroPoint(builder, self.zeros[builder, rows])
        return schema.QuantizationParametersEnd(builder)


def quantize(model: schema.ModelT) -> None:
    """Quantise the float32 matrices that are used only in products and look-ups.

    A matrix gets a scale per row. Activations remain float32; LiteRT's matrix products quantise
    each row of them. TensorFlow's own quantiser stores an embedding that is also the output
    projection twice, once per scheme; here every matrix is stored once.
    """
    quantized: dict[int, tuple[int, RowScales]] = {}  # buffer -> its int8 buffer, its scales
    zeros: Zeros = {}
    for subgraph in model.subgraphs:
        for index in sorted(_matrices(model, subgraph)):
            tensor = subgraph.tensors[index]
            if tensor.buffer not in quantized:
                quantized[tensor.buffer] = _add_rows(model, tensor, zeros)
            tensor.buffer, tensor.quantization = quantized[tensor.buffer]
            tensor.type = schema.TensorType.INT8
            _tell_operators(model, subgraph, index)


def _matrices(model: schema.ModelT, subgraph: schema.SubGraphT) -> set[int]:
    """Return the constant float32 matrices whose every use can be quantised."""
    good: set[int] = set()
    bad: set[int] = set()
    for operator in subgraph.operators:
        for index, tensor in enumerate(map(int, operator.inputs)):
            (good if _takes_rows(model, subgraph, operator, index) else bad).add(tensor)
    return {tensor for tensor in good - bad if _is_matrix(model, subgraph.tensors[tensor])}


def _takes_rows(
    model: schema.ModelT, subgraph: schema.SubGraphT, operator: schema.OperatorT, index: int
) -> bool:
    builtin = _builtin(model, operator)
    if builtin == BUILTINS.GATHER:
        # LiteRT's embedding lookup, which supports scales, accepts only a one-dimensional list of
        # ids.
        ids = subgraph.tensors[operator.inputs[1]]
        options = operator.builtinOptions
        return index == 0 and (options.axis, options.batchDims) == (0, 0) and len(_shape(ids)) == 1
    return builtin == BUILTINS.FULLY_CONNECTED and index == 1


def _is_matrix(model: schema.ModelT, tensor: schema.TensorT) -> bool:
    is_constant = model.buffers[tensor.buffer].data is not None
    return is_constant and tensor.type == schema.TensorType.FLOAT32 and len(_shape(tensor)) == 2


def _free_shape(tensor: schema.TensorT) -> list[int]:
    """The shape, -1 where an axis is free."""
    return list(tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature)


def _shape(tensor: schema.TensorT) -> list[int]:
    return [] if tensor.shape is None else list(tensor.shape)


def _add_rows(model: schema.ModelT, tensor: schema.TensorT, zeros: Zeros) -> tuple[int, RowScales]:
    rows = _values(model, tensor)
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / LARGEST
    rounded = np.rint(rows / scales[:, np.newaxis]).astype(np.int8)
    return _add_buffer(model, rounded), RowScales(scales, zeros)


def _tell_operators(model: schema.ModelT, subgraph: schema.SubGraphT, index: int) -> None:
    """Set the operator versions that support a scale per row."""
    for operator in subgraph.operators:
        if index not in operator.inputs:
            continue
        if _builtin(model, operator) == BUILTINS.GATHER:
            operator.opcodeIndex = _operator_index(model, BUILTINS.EMBEDDING_LOOKUP, version=3)
            operator.inputs = operator.inputs[[1, 0]]
            operator.builtinOptionsType = schema.BuiltinOptions.NONE
            operator.builtinOptions = None
        else:
            operator.opcodeIndex = _operator_index(model, BUILTINS.FULLY_CONNECTED, version=12)
            operator.builtinOptions.asymmetricQuantizeInputs = True


class Once:
    """A FlatBuffers table that several tables refer to, written once per file."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.builder: flatbuffers.Builder | None = None

    def Pack(self, builder: flatbuffers.Builder) -> int:
        """Write the table unless the file contains it; return its offset."""
        if self.builder is not builder:
            self.builder = builder
            self.offset = self.table.Pack(builder)
        return self.offset


def compact(model: schema.ModelT) -> None:
    """Make the model smaller without changing its results.

    Signatures that differ only in width have many equal parts, which are stored once; a large
    constant that one operator can compute is computed when the model runs. This must be the last
    pass, because tables are shared afterwards.
    """
    _make_constants(model)
    _forget_inner_details(model)
    _share_buffers(model)
    _share_tables(model)


def _make_constants(model: schema.ModelT) -> None:
    """Compute large constants in signatures: zeros by a fill, prefixes of constants by a slice.

    Loops are left unchanged: they would recompute their constants in each step.
    """
    graphs = [model.subgraphs[signature.subgraphIndex] for signature in model.signatureDefs]
    constants = {
        (tensor.buffer, tuple(tensor.shape)): _values(model, tensor)
        for graph in graphs
        for tensor in graph.tensors
        if _is_large(model, tensor)
    }
    for graph in graphs:
        for index, tensor in enumerate(list(graph.tensors)):
            if not _is_large(model, tensor):
                continue
            values = constants[tensor.buffer, tuple(tensor.shape)]
            if not values.any():
                _insert_fill(model, graph, index)
            elif larger := _beginning_with(values, constants):
                _insert_slice(model, graph, index, *larger)


def _is_large(model: schema.ModelT, tensor: schema.TensorT) -> bool:
    data = model.buffers[tensor.buffer].data
    return (
        tensor.type == schema.TensorType.FLOAT32
        and data is not None
        and len(data) >= WORTH_AN_OPERATOR
    )


def _beginning_with(values: np.ndarray, constants: dict[Constant, np.ndarray]) -> Constant | None:
    """Return the largest constant that begins with `values` along every axis, other than itself."""

    def begins(constant: np.ndarray) -> bool:
        if constant.ndim != values.ndim or constant.size <= values.size:
            return False
        return np.array_equal(constant[tuple(map(slice, values.shape))], values)

    matches = [index for index, constant in constants.items() if begins(constant)]
    return max(matches, key=lambda index: constants[index].size, default=None)


def _insert_fill(model: schema.ModelT, graph: schema.SubGraphT, index: int) -> None:
    shape = _add_constant(model, graph, np.array(graph.tensors[index].shape, np.int32))
    zero = _add_constant(model, graph, np.zeros((), np.float32))
    options = (schema.BuiltinOptions.FillOptions, schema.FillOptionsT())
    _insert(model, graph, index, BUILTINS.FILL, [shape, zero], options)


def _insert_slice(
    model: schema.ModelT, graph: schema.SubGraphT, index: int, buffer: int, shape: tuple[int, ...]
) -> None:
    larger = _add_tensor(graph, schema.TensorType.FLOAT32, shape, buffer)
    begin = _add_constant(model, graph, np.zeros(len(shape), np.int32))
    size = _add_constant(model, graph, np.array(graph.tensors[index].shape, np.int32))
    options = (schema.BuiltinOptions.SliceOptions, schema.SliceOptionsT())
    _insert(model, graph, index, BUILTINS.SLICE, [larger, begin, size], options)


def _insert(
    model: schema.ModelT,
    graph: schema.SubGraphT,
    output: int,
    builtin: int,
    inputs: list[int],
    options: Any,
) -> None:
    """Insert an operator at the start of the graph that computes a former constant."""
    graph.tensors[output].buffer = 0
    operator = schema.OperatorT()
    operator.opcodeIndex = _operator_index(model, builtin, version=1)
    operator.inputs = np.array(inputs, np.int32)
    operator.outputs = np.array([output], np.int32)
    operator.builtinOptionsType, operator.builtinOptions = options
    graph.operators.insert(0, operator)


def _add_constant(model: schema.ModelT, graph: schema.SubGraphT, values: np.ndarray) -> int:
    is_float = values.dtype == np.float32
    dtype = schema.TensorType.FLOAT32 if is_float else schema.TensorType.INT32
    return _add_tensor(graph, dtype, values.shape, _add_buffer(model, values))


def _add_tensor(graph: schema.SubGraphT, dtype: int, shape: tuple[int, ...], buffer: int) -> int:
    tensor = schema.TensorT()
    tensor.type = dtype
    tensor.shape = np.array(shape, np.int32)
    tensor.buffer = buffer
    tensor.hasRank = True
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _forget_inner_details(model: schema.ModelT) -> None:
    """Drop tensor names that no signature uses, and quantisation except that of int8 tensors."""
    signatures = {signature.subgraphIndex for signature in model.signatureDefs}
    for number, subgraph in enumerate(model.subgraphs):
        named: set[int] = set()
        if number in signatures:
            named = {*map(int, subgraph.inputs), *map(int, subgraph.outputs)}
        for index, tensor in enumerate(subgraph.tensors):
            if index not in named:
                tensor.name = None
            if tensor.type != schema.TensorType.INT8:
                tensor.quantization = None


def _share_buffers(model: schema.ModelT) -> None:
    """Keep each used buffer once; all empty buffers become buffer 0, as the format requires."""
    kept = [model.buffers[0]]
    indices = {_digest(b""): 0}
    for user in (
        *(tensor for subgraph in model.subgraphs for tensor in subgraph.tensors),
        *(model.metadata or []),
    ):
        buffer = model.buffers[user.buffer]
        digest = _digest(b"" if buffer.data is None else buffer.data.tobytes())
        if digest not in indices:
            indices[digest] = len(kept)
            kept.append(buffer)
        user.buffer = indices[digest]
    model.buffers = kept


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _share_tables(model: schema.ModelT) -> None:
    """Store equal tensors, operators and operator options as one table in the file."""
    shared: dict[bytes, Once] = {}

    def once(table: Any) -> Once | None:
        if table is None:
            return None
        builder = flatbuffers.Builder()
        builder.Finish(table.Pack(builder))
        return shared.setdefault(bytes(builder.Output()), Once(table))

    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            operator.builtinOptions = once(operator.builtinOptions)
        subgraph.tensors = list(map(once, subgraph.tensors))
        subgraph.operators = list(map(once, subgraph.operators))
