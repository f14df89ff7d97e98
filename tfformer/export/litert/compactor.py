"""Makes a LiteRT model smaller without changing its results.

Signatures that differ in their widths alone repeat each other: their equal parts are written once,
and a large constant that one operator can make is made when the model runs.
"""

import hashlib
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from tfformer.export.litert.operators import BUILTINS, operator_index

WORTH_AN_OPERATOR = 4096  # bytes of a constant
Constant = tuple[int, tuple[int, ...]]  # its buffer and shape


class Once:
    """A table that several others refer to, written once into each file."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.builder: flatbuffers.Builder | None = None

    def Pack(self, builder: flatbuffers.Builder) -> int:
        """Write the table if the file does not have it yet; return its place."""
        if self.builder is not builder:
            self.builder = builder
            self.place = self.table.Pack(builder)
        return self.place


def compact(model: schema.ModelT) -> None:
    """Make the model smaller, in place.

    This is the last step before the model is written, as tables are shared from then on.
    """
    _make_constants(model)
    _forget_inner_details(model)
    _share_buffers(model)
    _share_tables(model)


def _make_constants(model: schema.ModelT) -> None:
    """Make large float32 constants by operators.

    Zeros are made by a fill, beginnings of other constants by a slice. Only those of the
    signatures: a loop would make its own anew in each step.
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


def _values(model: schema.ModelT, tensor: schema.TensorT) -> np.ndarray:
    return np.frombuffer(model.buffers[tensor.buffer].data.tobytes(), np.float32).reshape(
        tensor.shape
    )


def _beginning_with(values: np.ndarray, constants: dict[Constant, np.ndarray]) -> Constant | None:
    """The largest constant whose first rows, columns, ... are `values`.

    It is None if none is larger.
    """

    def begins(constant: np.ndarray) -> bool:
        if constant.ndim != values.ndim or constant.size <= values.size:
            return False
        return np.array_equal(constant[tuple(map(slice, values.shape))], values)

    found = [place for place, constant in constants.items() if begins(constant)]
    return max(found, key=lambda place: constants[place].size, default=None)


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
    """Let the graph begin with an operator that makes a tensor which was a constant."""
    graph.tensors[output].buffer = 0
    operator = schema.OperatorT()
    operator.opcodeIndex = operator_index(model, builtin, version=1)
    operator.inputs = np.array(inputs, np.int32)
    operator.outputs = np.array([output], np.int32)
    operator.builtinOptionsType, operator.builtinOptions = options
    graph.operators.insert(0, operator)


def _add_constant(model: schema.ModelT, graph: schema.SubGraphT, values: np.ndarray) -> int:
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    model.buffers.append(buffer)
    types = {
        np.dtype(np.int32): schema.TensorType.INT32,
        np.dtype(np.float32): schema.TensorType.FLOAT32,
    }
    return _add_tensor(graph, types[values.dtype], values.shape, len(model.buffers) - 1)


def _add_tensor(graph: schema.SubGraphT, dtype: int, shape: tuple[int, ...], buffer: int) -> int:
    tensor = schema.TensorT()
    tensor.type = dtype
    tensor.shape = np.array(shape, np.int32)
    tensor.buffer = buffer
    tensor.hasRank = True
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _forget_inner_details(model: schema.ModelT) -> None:
    """Drop names and quantisation that no reader needs.

    Names of the signatures' inputs and outputs stay, and quantisation of int8 tensors.
    """
    signatures = {signature.subgraphIndex for signature in model.signatureDefs}
    for place, subgraph in enumerate(model.subgraphs):
        named = (
            {*map(int, subgraph.inputs), *map(int, subgraph.outputs)}
            if place in signatures
            else set()
        )
        for index, tensor in enumerate(subgraph.tensors):
            if index not in named:
                tensor.name = None
            if tensor.type != schema.TensorType.INT8:
                tensor.quantization = None


def _share_buffers(model: schema.ModelT) -> None:
    """Keep each used buffer once; all empty ones are the first, as the format has it."""
    kept = [model.buffers[0]]
    places = {_digest(b""): 0}
    for user in (
        *(tensor for subgraph in model.subgraphs for tensor in subgraph.tensors),
        *(model.metadata or []),
    ):
        buffer = model.buffers[user.buffer]
        digest = _digest(b"" if buffer.data is None else buffer.data.tobytes())
        if digest not in places:
            places[digest] = len(kept)
            kept.append(buffer)
        user.buffer = places[digest]
    model.buffers = kept


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _share_tables(model: schema.ModelT) -> None:
    """Let equal parts of the file be one table.

    Tensors, operators and their options are shared.
    """
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
