"""Read tensors from safetensors files and PyTorch's pickles, memory-mapped and without torch.

A checkpoint may be larger than memory. Each array is a memory map: its pages are read when the
array is used, and freed when the array is deleted.

A `pytorch_model.bin` is a pickle, which could call any function. `_Unpickler` imports nothing: it
allows only the few names that a dictionary of tensors needs, and rejects every other name. The
layout (torch/serialization.py) is a zip file since torch 1.6, and a chain of pickles before.
"""

import io
import math
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from tfformer.checkpoints.foreign_files import check_members, member_offset, naming_damage
from tfformer.storage.whole_files import whole_file

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16}
STORAGES: dict[str, Any] = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "DoubleStorage": "<f8",
    "BFloat16Storage": ml_dtypes.bfloat16,
}
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


def mapped(
    path: Path, dtype: str | type | np.dtype, offset: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Map an array in a file into memory, read-only, without reading it."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset=offset, shape=shape)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a `.safetensors` file by their names; bfloat16 becomes float32.

    The safetensors library checks that the tensors listed in the header fill the file without gaps.
    It raises ValueError if the file is truncated or damaged, or contains a scalar or a dtype that
    is not in `DTYPES`.
    """
    try:
        with safe_open(path, "numpy") as file:
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a complete safetensors file ({error}); copy the file again"
        ) from None
    if not slices:
        raise ValueError(f"{path} contains no tensors; copy the file again")
    tensors: dict[str, np.ndarray] = {}
    with path.open("rb") as binary:
        (header_length,) = struct.unpack("<Q", binary.read(8))
    offset = 8 + header_length
    for name, described in slices.items():
        shape = tuple(described.get_shape())
        dtype = DTYPES.get(described.get_dtype())
        if dtype is None or not shape:
            raise ValueError(
                f"{path}: {name} has dtype {described.get_dtype()} and shape {shape}; only "
                f"arrays of {', '.join(DTYPES)} are supported"
            )
        tensors[name] = widened(mapped(path, dtype, offset, shape))
        offset += math.prod(shape) * np.dtype(dtype).itemsize
    return tensors


def widened(tensor: np.ndarray) -> np.ndarray:
    """Return bfloat16 as float32, and every other tensor unchanged."""
    return tensor.astype(np.float32) if tensor.dtype == ml_dtypes.bfloat16 else tensor


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write float32 or float16 tensors to one file, completely or not at all."""
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    with whole_file(path) as temporary:
        save_file(contiguous, temporary, {"format": "pt"})  # Transformers requires the metadata


class _Storage(NamedTuple):
    """The buffer that one or more tensors view."""

    dtype: Any
    key: str
    size: int  # numbers


class _Tensor(NamedTuple):
    """A view of a storage; offset and strides count elements, not bytes."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _State(dict[str, Any]):
    """The dictionary of tensors; a state dictionary's `_metadata` is ignored."""

    def __setstate__(self, state: object) -> None:
        pass


def _rebuilt(storage: object, offset: int, shape: Any, strides: Any, *_: object) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor in it has no storage; copy the file again")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): _State,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuilt,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in KNOWN:
            raise ValueError(
                f"it refers to {module}.{name}, which might run code and was not run; a checkpoint "
                "must contain only tensors: save model.state_dict()"
            )
        return KNOWN[module, name]

    def persistent_load(self, described: Any) -> _Storage:
        kind, dtype, key, _, size = described[:5]
        if kind != "storage" or dtype not in STORAGES.values() or not isinstance(key, str):
            raise ValueError("it refers to something other than a tensor storage")
        return _Storage(dtype, key, size)


def read_pytorch(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file that `torch.save` wrote, by their names.

    bfloat16 becomes float32. It raises ValueError if the file is damaged or contains anything but
    tensors.
    """
    with naming_damage(path):
        return _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)


def _read_zip(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        check_members(archive)
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise ValueError("it contains no data.pkl; use a file that torch.save wrote")
        folder = names[0].removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in archive.namelist():
            _check_byte_order(archive.read(order) == b"little")
        tensors = _load(io.BytesIO(archive.read(names[0])))

        def content(storage: _Storage) -> np.ndarray:
            entry = archive.getinfo(f"{folder}data/{storage.key}")
            offset = member_offset(path, entry)
            if offset is None:
                raise ValueError("it is compressed; save it again with torch.save")
            count = entry.file_size // np.dtype(storage.dtype).itemsize
            return mapped(path, storage.dtype, offset, (count,))

        return _arrays(tensors, content)


def _read_legacy(path: Path) -> dict[str, np.ndarray]:
    """Read five pickles (magic number, version, machine, tensors, keys), then the numbers."""
    stream = io.BytesIO(path.read_bytes())
    if _load(stream) != LEGACY_MAGIC:
        raise ValueError("it is not a checkpoint; use a file that torch.save wrote")
    _load(stream)
    _check_byte_order(_load(stream).get("little_endian", True))
    tensors = _load(stream)
    storages = {tensor.storage.key: tensor.storage for tensor in _only_tensors(tensors).values()}
    contents: dict[str, np.ndarray] = {}
    for key in _load(stream):
        count = int.from_bytes(stream.read(8), "little")
        storage = storages[key]
        size = count * np.dtype(storage.dtype).itemsize
        contents[key] = np.frombuffer(stream.read(size), storage.dtype, count)
    return _arrays(tensors, lambda storage: contents[storage.key])


def _check_byte_order(is_little: bool) -> None:
    if not is_little:
        raise ValueError("it was written on a big-endian machine; save it again on another")


def _load(stream: io.BytesIO) -> Any:
    try:
        return _Unpickler(stream).load()
    except (pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"its pickle is damaged ({error}); copy the file again") from None


def _arrays(tensors: Any, content: Callable[[_Storage], np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors as arrays; tensors of one storage share its memory."""
    named = _only_tensors(tensors)
    numbers: dict[_Storage, np.ndarray] = {}
    for tensor in named.values():
        if tensor.storage not in numbers:
            numbers[tensor.storage] = content(tensor.storage)
    return {name: _view(name, tensor, numbers[tensor.storage]) for name, tensor in named.items()}


def _only_tensors(tensors: Any) -> dict[str, _Tensor]:
    if not isinstance(tensors, dict) or not tensors:
        raise ValueError("it does not contain a dictionary of tensors; save model.state_dict()")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, _Tensor):
            raise ValueError(f"{str(name)[:80]} is not a tensor; save only model.state_dict()")
    return tensors


def _view(name: str, tensor: _Tensor, numbers: np.ndarray) -> np.ndarray:
    sizes = [*tensor.shape, *tensor.strides, tensor.offset]
    are_sizes = all(type(size) is int and size >= 0 for size in sizes)
    if not are_sizes or not tensor.shape or len(tensor.shape) != len(tensor.strides):
        raise ValueError(f"{name} has an invalid shape; copy the file again")
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if 0 in tensor.shape or last >= len(numbers):
        raise ValueError(f"{name} extends beyond its storage; copy the file again")
    strides = [stride * numbers.dtype.itemsize for stride in tensor.strides]
    start = numbers[tensor.offset :]
    return widened(np.lib.stride_tricks.as_strided(start, tensor.shape, strides, writeable=False))
