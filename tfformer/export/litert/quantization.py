"""The pass that quantises a LiteRT model's weights to int8, with a scale per row."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfformer.export.litert.operators import (
    BUILTINS,
    add_buffer,
    builtin_of,
    operator_index,
    values_of,
)

LARGEST = 127  # largest int8
Zeros = dict[tuple[flatbuffers.Builder, int], int]


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


def quantize_weights(model: schema.ModelT) -> None:
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
    builtin = builtin_of(model, operator)
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


def _add_rows(model: schema.ModelT, tensor: schema.TensorT, zeros: Zeros) -> tuple[int, RowScales]:
    rows = values_of(model, tensor)
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / LARGEST
    rounded = np.rint(rows / scales[:, np.newaxis]).astype(np.int8)
    return add_buffer(model, rounded), RowScales(scales, zeros)


def _tell_operators(model: schema.ModelT, subgraph: schema.SubGraphT, index: int) -> None:
    """Set the operator versions that support a scale per row."""
    for operator in subgraph.operators:
        if index not in operator.inputs:
            continue
        if builtin_of(model, operator) == BUILTINS.GATHER:
            operator.opcodeIndex = operator_index(model, BUILTINS.EMBEDDING_LOOKUP, version=3)
            operator.inputs = operator.inputs[[1, 0]]
            operator.builtinOptionsType = schema.BuiltinOptions.NONE
            operator.builtinOptions = None
        else:
            operator.opcodeIndex = operator_index(model, BUILTINS.FULLY_CONNECTED, version=12)
            operator.builtinOptions.asymmetricQuantizeInputs = True


def _shape(tensor: schema.TensorT) -> list[int]:
    return [] if tensor.shape is None else list(tensor.shape)
