"""Read and write the safetensors format.

A file has a JSON header with names and places, then plain numbers. The format is four sentences
long (https://github.com/huggingface/safetensors, "Format"), so no library is needed: eight bytes
say how long the header is, the header gives each tensor its dtype, shape and `data_offsets` within
the rest of the file, and the tensors fill that rest without gaps.
"""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from tfformer.checkpoints.json_files import parse_object
from tfformer.checkpoints.tensors.stored_arrays import mapped
from tfformer.storage.whole_files import whole_file

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
MAX_HEADER_BYTES = 100 * 1024 * 1024  # the limit of the format's own library
INDEX = "model.safetensors.index.json"

Entry = tuple[str, tuple[int, ...], int, int]  # of the header: dtype, shape, begin and end


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of one file, mapped into memory and not yet read.

    Args:
        path: A `.safetensors` file.

    Returns:
        Name -> array of float64, float32 or float16; bfloat16 becomes float32.

    Raises:
        ValueError: The file is cut off or damaged, or holds another dtype.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        if length > min(size - 8, MAX_HEADER_BYTES):
            raise ValueError(f"{path} is no whole safetensors file; copy it again")
        header = parse_object(file.read(length), f"the header of {path}")
    header.pop("__metadata__", None)
    if not header:
        raise ValueError(f"{path} holds no tensors; copy it again")
    places = {name: _place(path, name, described) for name, described in header.items()}
    _check_filled(path, places, size - 8 - length)
    return {
        name: _array(path, dtype, 8 + length + begin, shape)
        for name, (dtype, shape, begin, _) in places.items()
    }


def write(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write tensors to one file, whole or not at all.

    Args:
        path: The new file.
        tensors: Name -> array of float32 or float16.
    """
    # Transformers insists on the metadata.
    header: dict[str, dict[str, Any]] = {"__metadata__": {"format": "pt"}}
    names = {"float32": "F32", "float16": "F16"}
    end = 0
    for name, tensor in sorted(tensors.items()):
        begin, end = end, end + tensor.nbytes
        dtype = names[tensor.dtype.name]
        header[name] = {"dtype": dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            file.write(np.ascontiguousarray(tensor).tobytes())


def _place(path: Path, name: str, described: object) -> Entry:
    """The dtype, shape, begin and end of one tensor, checked against each other."""
    values = described if isinstance(described, dict) else {}
    dtype = values.get("dtype")
    shape = values.get("shape")
    offsets = values.get("data_offsets")
    if not (_are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2):
        raise ValueError(f"{path}: {name} has no shape and place; copy the file again")
    if dtype not in tuple(DTYPES):
        raise ValueError(f"{path}: {name} is of dtype {dtype!r}; known are {', '.join(DTYPES)}")
    if not shape:
        raise ValueError(f"{path}: {name} has no axes; copy the file again")
    begin, end = offsets
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != end - begin:
        raise ValueError(f"{path}: {name} has not the size of its shape; copy the file again")
    return dtype, tuple(shape), begin, end


def _are_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(size) is int and size >= 0 for size in values)


def _check_filled(path: Path, places: Mapping[str, Entry], size: int) -> None:
    """ValueError unless the tensors lie side by side and fill `size` bytes."""
    end = 0
    for _, _, begin, stop in sorted(places.values(), key=lambda place: place[2:]):
        if begin != end:
            raise ValueError(f"{path}: tensors overlap or leave gaps; copy the file again")
        end = stop
    if end != size:
        raise ValueError(
            f"{path} holds {size:,} bytes of numbers instead of {end:,}; copy it again"
        )


def _array(path: Path, dtype: str, begin: int, shape: tuple[int, ...]) -> np.ndarray:
    numbers = mapped(path, DTYPES[dtype], begin, shape)
    return from_bfloat16(numbers) if dtype == "BF16" else numbers


def from_bfloat16(words: np.ndarray) -> np.ndarray:
    """Return the float32 numbers whose upper halves are given.

    Args:
        words: Uint16 of any shape, the bits of bfloat16 numbers.

    Returns:
        Float32 of the same shape, exactly equal.

    Example:
        >>> from_bfloat16(np.array([0x3F80, 0xC000], np.uint16))
        array([ 1., -2.], dtype=float32)
    """
    return (words.astype(np.uint32) << 16).view(np.float32)
