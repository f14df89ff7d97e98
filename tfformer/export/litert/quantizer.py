"""Dynamic-range int8 for a LiteRT model: a scale for each row of a weight matrix.

Activations stay float32; LiteRT's products round each row of them as they go.
TensorFlow's own quantiser stores an embedding twice where it is also the output's weight, once for
each scheme; here a matrix is stored once, whatever uses it.
"""

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from tfformer.export.litert.operators import BUILTINS, builtin_code, operator_index

LARGEST = 127
Zeros = dict[tuple[flatbuffers.Builder, int], int]


class RowScales(schema.QuantizationParametersT):
    """A scale for each row, and as many zero points.

    A file has the zero points once for each number of rows.

    Args:
        scales: (R,) float32.
        zeros: The places of zero points already written, by the file's builder and their number.
    """

    def __init__(self, scales: np.ndarray, zeros: Zeros) -> None:
        super().__init__()
        self.scale = scales
        self.zeros = zeros

    def Pack(self, builder: flatbuffers.Builder) -> int:
        """Write the scales, and return their place.

        The zero points are written where the file lacks them.
        """
        rows = len(self.scale)
        scales = builder.CreateNumpyVector(self.scale)
        if (builder, rows) not in self.zeros:
            self.zeros[builder, rows] = builder.CreateNumpyVector(np.zeros(rows, np.int64))
        schema.QuantizationParametersStart(builder)
        schema.QuantizationParametersAddScale(builder, scales)
        schema.QuantizationParametersAddZeroPoint(builder, self.zeros[builder, rows])
        return schema.QuantizationParametersEnd(builder)


def quantize(model: schema.ModelT) -> None:
    """Quantise, in place, the float32 matrices that are used only in products and look-ups."""
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
    """The constant float32 matrices of which every use can be quantised."""
    good: set[int] = set()
    bad: set[int] = set()
    for operator in subgraph.operators:
        for place, tensor in enumerate(map(int, operator.inputs)):
            (good if _takes_rows(model, subgraph, operator, place) else bad).add(tensor)
    return {tensor for tensor in good - bad if _is_matrix(model, subgraph.tensors[tensor])}


def _takes_rows(
    model: schema.ModelT, subgraph: schema.SubGraphT, operator: schema.OperatorT, place: int
) -> bool:
    builtin = builtin_code(model, operator)
    if builtin == BUILTINS.GATHER:
        # LiteRT's embedding lookup, which knows scales, takes a plain list of ids.
        ids = subgraph.tensors[operator.inputs[1]]
        options = operator.builtinOptions
        return place == 0 and (options.axis, options.batchDims) == (0, 0) and len(_shape(ids)) == 1
    return builtin == BUILTINS.FULLY_CONNECTED and place == 1


def _is_matrix(model: schema.ModelT, tensor: schema.TensorT) -> bool:
    is_constant = model.buffers[tensor.buffer].data is not None
    return is_constant and tensor.type == schema.TensorType.FLOAT32 and len(_shape(tensor)) == 2


def _shape(tensor: schema.TensorT) -> list[int]:
    return [] if tensor.shape is None else list(tensor.shape)


def _add_rows(model: schema.ModelT, tensor: schema.TensorT, zeros: Zeros) -> tuple[int, RowScales]:
    rows = np.frombuffer(model.buffers[tensor.buffer].data.tobytes(), np.float32).reshape(
        tensor.shape
    )
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / LARGEST
    buffer = schema.BufferT()
    buffer.data = np.rint(rows / scales[:, np.newaxis]).astype(np.int8).reshape(-1).view(np.uint8)
    model.buffers.append(buffer)
    return len(model.buffers) - 1, RowScales(scales, zeros)


def _tell_operators(model: schema.ModelT, subgraph: schema.SubGraphT, index: int) -> None:
    """The versions are those that know a scale for each row."""
    for operator in subgraph.operators:
        if index not in operator.inputs:
            continue
        if builtin_code(model, operator) == BUILTINS.GATHER:
            operator.opcodeIndex = operator_index(model, BUILTINS.EMBEDDING_LOOKUP, version=3)
            operator.inputs = operator.inputs[[1, 0]]
            operator.builtinOptionsType = schema.BuiltinOptions.NONE
            operator.builtinOptions = None
        else:
            operator.opcodeIndex = operator_index(model, BUILTINS.FULLY_CONNECTED, version=12)
            operator.builtinOptions.asymmetricQuantizeInputs = True
