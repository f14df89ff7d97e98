"""Arrays that are mapped from their file, and the safetensors format.

A checkpoint may be larger than the memory. Each array is a memory map, so its pages are read when
the array is used and dropped with it.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from tfformer.storage.whole_files import whole_file

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16}


def mapped(
    path: Path, dtype: str | type | np.dtype, offset: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Map numbers of a file into memory, read-only, without reading them."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset=offset, shape=shape)


def release(array: np.ndarray) -> None:
    """Drop the pages of a mapped array from memory; a later use reads them again."""
    if isinstance(array.base, mmap.mmap):
        array.base.madvise(mmap.MADV_DONTNEED)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a `.safetensors` file by their names; bfloat16 becomes float32.

    The library checks the header: it lists all tensors, which fill the file without gaps.
    ValueError: the file is cut off or damaged, or contains another dtype.
    """
    try:
        with safe_open(path, "numpy") as file:
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no whole safetensors file ({error}); copy the file again"
        ) from None
    if not slices:
        raise ValueError(f"{path} contains no tensors; copy the file again")
    found: dict[str, np.ndarray] = {}
    with path.open("rb") as binary:
        (header_length,) = struct.unpack("<Q", binary.read(8))
    offset = 8 + header_length
    for name, described in slices.items():
        shape = tuple(described.get_shape())
        dtype = DTYPES.get(described.get_dtype())
        if dtype is None or not shape:
            raise ValueError(
                f"{path}: {name} is of dtype {described.get_dtype()} and shape {shape}; give "
                f"arrays of {', '.join(DTYPES)}"
            )
        found[name] = widened(mapped(path, dtype, offset, shape))
        offset += math.prod(shape) * np.dtype(dtype).itemsize
    return found


def widened(tensor: np.ndarray) -> np.ndarray:
    """Return bfloat16 as float32, and every other tensor unchanged."""
    return tensor.astype(np.float32) if tensor.dtype == ml_dtypes.bfloat16 else tensor


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write tensors of float32 or float16 to one file, whole or not at all."""
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    with whole_file(path) as temporary:
        save_file(contiguous, temporary, {"format": "pt"})  # Transformers requires the metadata
