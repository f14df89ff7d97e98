"""The pass that makes a LiteRT file smaller: equal tables are stored once."""

import hashlib
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfformer.export.litert.operators import BUILTINS, add_buffer, operator_index, values_of

WORTH_AN_OPERATOR = 4096  # bytes from which computing a constant saves space
Constant = tuple[int, tuple[int, ...]]  # buffer and shape


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
        (tensor.buffer, tuple(tensor.shape)): values_of(model, tensor)
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
    operator.opcodeIndex = operator_index(model, builtin, version=1)
    operator.inputs = np.array(inputs, np.int32)
    operator.outputs = np.array([output], np.int32)
    operator.builtinOptionsType, operator.builtinOptions = options
    graph.operators.insert(0, operator)


def _add_constant(model: schema.ModelT, graph: schema.SubGraphT, values: np.ndarray) -> int:
    is_float = values.dtype == np.float32
    dtype = schema.TensorType.FLOAT32 if is_float else schema.TensorType.INT32
    return _add_tensor(graph, dtype, values.shape, add_buffer(model, values))


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
