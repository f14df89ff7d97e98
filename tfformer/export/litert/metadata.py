"""A LiteRT file's description of itself, shown by Netron and others.

The tables and the places of their fields are those of TensorFlow Lite's
`metadata_schema.fbs` (ModelMetadata, SubGraphMetadata, TensorMetadata), file identifier M001.
"""

from collections.abc import Sequence

import flatbuffers

NAME = "TFLITE_METADATA"  # of the metadata entry in a model's list
PARSER_VERSION = "1.0.0"

Tensors = Sequence[tuple[str, str]]  # name and description of each, in the file's order


def encode_metadata(
    name: str, description: str, version: str, licence: str, inputs: Tensors, outputs: Tensors
) -> bytes:
    """Return a file's description of itself, to be added to it under `NAME`.

    Args:
        name: The model's name.
        description: A sentence about the model.
        version: The version of the software that wrote the file.
        licence: The licence of the model.
        inputs: Name and description of each input of the first subgraph, in the file's order.
        outputs: Name and description of each of its outputs.

    Returns:
        A flatbuffer of the table ModelMetadata.
    """
    builder = flatbuffers.Builder(1024)
    subgraph = _table(builder, 9, {2: _tensors(builder, inputs), 3: _tensors(builder, outputs)})
    texts = {0: name, 1: description, 2: version, 5: licence, 7: PARSER_VERSION}
    fields = {place: builder.CreateString(text) for place, text in texts.items()}
    fields[3] = _vector(builder, [subgraph])
    builder.Finish(_table(builder, 8, fields), file_identifier=b"M001")
    return bytes(builder.Output())


def _tensors(builder: flatbuffers.Builder, tensors: Tensors) -> int:
    fields = [
        {0: builder.CreateString(name), 1: builder.CreateString(text)} for name, text in tensors
    ]
    return _vector(builder, [_table(builder, 7, field) for field in fields])


def _table(builder: flatbuffers.Builder, places: int, fields: dict[int, int]) -> int:
    builder.StartObject(places)
    for place, offset in fields.items():
        builder.PrependUOffsetTRelativeSlot(place, offset, 0)
    return builder.EndObject()


def _vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
