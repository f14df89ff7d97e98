"""The messages of TensorFlow Serving's Predict call.

They are built when this file is imported. TensorFlow Serving's own package of messages needs all of
TensorFlow. A message on the wire is its fields by number, so a table of the numbers that a client
uses is enough. They are those of tensorflow_serving/apis (predict.proto, model.proto),
tensorflow/core/framework (tensor.proto, tensor_shape.proto, types.proto) and
google/protobuf/wrappers.proto.
"""

import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

PREDICT = "/tensorflow.serving.PredictionService/Predict"
DT_FLOAT, DT_STRING = 1, 7  # of types.proto

PACKAGE = "tfformer_client"  # another than TensorFlow's: both may be in one process
KIND = descriptor_pb2.FieldDescriptorProto
STRING, BYTES = KIND.TYPE_STRING, KIND.TYPE_BYTES
INT32, INT64, FLOAT, BOOL = KIND.TYPE_INT32, KIND.TYPE_INT64, KIND.TYPE_FLOAT, KIND.TYPE_BOOL

FIELDS = {  # message -> field -> number and type; a message's name is a type, and a list repeats it
    "Int64Value": {"value": (1, INT64)},
    "ModelSpec": {
        "name": (1, STRING),
        "version": (2, "Int64Value"),
        "signature_name": (3, STRING),
        "version_label": (4, STRING),
    },
    "Dim": {"size": (1, INT64)},
    "TensorShape": {"dim": (2, ["Dim"])},
    "Tensor": {
        "dtype": (1, INT32),
        "tensor_shape": (2, "TensorShape"),
        "tensor_content": (4, BYTES),
        "float_val": (5, [FLOAT]),
        "string_val": (8, [BYTES]),
    },
    "NamedTensor": {"key": (1, STRING), "value": (2, "Tensor")},  # an entry of a map
    "PredictRequest": {"model_spec": (1, "ModelSpec"), "inputs": (2, ["NamedTensor"])},
    "PredictResponse": {"outputs": (1, ["NamedTensor"]), "model_spec": (2, "ModelSpec")},
}


def _classes() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3"
    )
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = described.field.add(name=name, number=number, label=KIND.LABEL_OPTIONAL)
            if isinstance(kind, list):
                field.label = KIND.LABEL_REPEATED
                (kind,) = kind
            if isinstance(kind, str):
                field.type = KIND.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in FIELDS}
    return {name: message_factory.GetMessageClass(one) for name, one in found.items()}


CLASSES = _classes()
PredictRequest, PredictResponse = CLASSES["PredictRequest"], CLASSES["PredictResponse"]


def text_request(
    model: str, signature: str, texts: list[str], version: int | None, label: str | None
) -> Message:
    """Return a PredictRequest for texts (B,).

    Args:
        model: The model's name on the server.
        signature: The signature's name.
        texts: The values of the input `text`.
        version: The version; the newest, or the label's, if None.
        label: The version's label, if any.
    """
    request = PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    if label is not None:
        request.model_spec.version_label = label
    tensor = request.inputs.add(key="text").value
    tensor.dtype = DT_STRING
    tensor.tensor_shape.dim.add(size=len(texts))
    tensor.string_val.extend(text.encode() for text in texts)
    return request


def first_column(response: Message, name: str) -> list:
    """Return an output (B,) of a PredictResponse.

    Of an output (B, N) it is the first of each row.

    Raises:
        KeyError: The response has no such output.
        ValueError: It is not of strings or float32, or has another size than its shape.
    """
    tensors = {entry.key: entry.value for entry in response.outputs}
    tensor = tensors[name]
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    values = _values(tensor)
    width = sizes[1] if len(sizes) == 2 else 1
    if len(sizes) not in (1, 2) or len(values) != sizes[0] * width:
        raise ValueError(f"output {name} has {len(values)} values for the shape {sizes}")
    return values[::width] if width else []


def _values(tensor: Message) -> list:
    if tensor.dtype == DT_STRING:
        return list(tensor.string_val)
    if tensor.dtype != DT_FLOAT:
        raise ValueError(f"dtype {tensor.dtype} is neither string nor float32")
    if tensor.tensor_content:
        return [value for (value,) in struct.iter_unpack("<f", tensor.tensor_content)]
    return list(tensor.float_val)
