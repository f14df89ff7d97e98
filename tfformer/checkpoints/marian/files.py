"""Read and write Marian's two tensor file formats.

They are `.npz` (NumPy's zip) and `.bin` (Marian's own). Besides the tensors, each contains
`special:model.yml`, the options that the model was built with. The `.bin` format is defined in
marian-dev, src/common/binary.cpp, version 1.
"""

import json
import math
import struct
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tfformer.checkpoints.foreign_files import check_members, member_offset, naming_damage
from tfformer.checkpoints.tensor_files import mapped
from tfformer.storage.whole_files import whole_file

OPTIONS = "special:model.yml"
# Marian's type codes: 0x04 for float, then the size in bytes.
FLOATS = {0x0402: "<f2", 0x0404: "<f4", 0x0408: "<f8"}
BYTES = 0x0101  # int8, only for the options
INT8_MATRIX = 0x4101  # in the fork browsermt/marian-dev, for any processor
ALPHA = "_QuantMultA"  # after a matrix' name: the multiplier of its inputs, which is not read
ALIGNMENT = 256
HEADERS = {  # version of NumPy's format -> reader of the header
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
MAX_RANK = 8
MAX_OPTIONS_BYTES = 2**20  # largest YAML; a model's options are a few kilobytes
MarianOptions = dict[str, Any]  # the options of a model or of a search, by name


def read(path: Path) -> tuple[MarianOptions, dict[str, np.ndarray]]:
    """Return the options and the tensors of a Marian model in a `.npz` or `.bin`.

    ValueError: the file is damaged, contains packed integers, or has no options.
    """
    with naming_damage(path):
        tensors = _read_bin(path) if path.suffix == ".bin" else _read_npz(path)
    if OPTIONS not in tensors:
        raise ValueError(f"{path} does not contain {OPTIONS}, the model's options; save it again")
    options = tensors.pop(OPTIONS).tobytes().rstrip(b"\0")
    wrong = [name for name, tensor in tensors.items() if tensor.dtype.kind != "f"]
    if wrong:
        raise ValueError(
            f"{path}: {wrong[0]} has dtype {tensors[wrong[0]].dtype}, packed for one type of "
            "processor; use the float32 model"
        )
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(ALPHA)}
    if scalars := [name for name, tensor in tensors.items() if not tensor.ndim]:
        raise ValueError(f"{path}: {scalars[0]} is a scalar; copy the file again")
    return parse_options(options, f"{OPTIONS} in {path}"), tensors


def read_options(path: Path) -> MarianOptions:
    """Return the options in a YAML file such as decoder.yml."""
    with path.open("rb") as file:
        return parse_options(file.read(MAX_OPTIONS_BYTES + 1), str(path))


def parse_options(content: bytes, origin: str) -> MarianOptions:
    """Parse YAML options into JSON-compatible values; `origin` names their source in errors.

    A date becomes a string. ValueError: the content is not a YAML mapping, is too long, or contains
    a tag or an alias: a few hundred bytes of aliases can expand to gigabytes.
    """
    if len(content) > MAX_OPTIONS_BYTES:
        raise ValueError(
            f"{origin} is larger than {MAX_OPTIONS_BYTES:,} bytes; use the file that Marian wrote"
        )
    try:
        text = content.decode("utf-8")
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) not in (None, "!"):
                raise yaml.YAMLError("it uses an alias or a tag")
        options = json.loads(json.dumps(yaml.safe_load(text), default=str))
    except (
        *(yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError),
        *(KeyError, IndexError, AttributeError, TypeError),
    ) as error:
        reason = str(error).partition("\n")[0][:100]
        raise ValueError(f"{origin} is not plain YAML ({reason}); copy the file again") from None
    if not isinstance(options, dict):
        raise ValueError(f"{origin} must be a YAML mapping; copy the file again")
    return options


def write_npz(path: Path, options: MarianOptions, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a model and its options atomically as a `.npz` file."""
    every: dict[str, Any] = dict(tensors) | {OPTIONS: _option_bytes(options)}
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **every)


def write_bin(
    path: Path,
    options: MarianOptions,
    tensors: Mapping[str, np.ndarray],
    rounded: Collection[str] = (),
) -> None:
    """Write a model and its options atomically as a `.bin` file.

    The matrices named in `rounded` are stored in int8, which only Firefox's engines read.
    """
    every = dict(tensors) | {OPTIONS: _option_bytes(options)[np.newaxis]}
    types = {"float16": 0x0402, "float32": 0x0404, "float64": 0x0408, "int8": BYTES}
    headers, names, shapes, contents = [], [], [], []
    for name, tensor in every.items():
        text = name.encode() + b"\0"
        is_rounded = name in rounded
        content = (
            _int8_bytes(name, tensor) if is_rounded else np.ascontiguousarray(tensor).tobytes()
        )
        content += b"\0" * (-len(content) % ALIGNMENT)
        kind = INT8_MATRIX if is_rounded else types[tensor.dtype.name]
        headers.append(struct.pack("<4Q", len(text), kind, tensor.ndim, len(content)))
        names.append(text)
        shapes.append(struct.pack(f"<{tensor.ndim}i", *tensor.shape))
        contents.append(content)
    begin = struct.pack("<2Q", 1, len(every)) + b"".join([*headers, *names, *shapes])
    gap = -(len(begin) + 8) % ALIGNMENT
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(begin + struct.pack("<Q", gap) + b"\0" * gap)
        file.writelines(contents)


def _int8_bytes(name: str, matrix: np.ndarray) -> bytes:
    """Return a matrix as `_int8_matrix` reads it."""
    multiplier = np.float32(127 / (np.abs(matrix).max() or 1))
    integers = np.rint(matrix.astype(np.float32) * multiplier).astype(np.int8)
    stored = integers if name.endswith("Wemb") else integers.T
    return stored.tobytes() + multiplier.tobytes()


def _option_bytes(options: MarianOptions) -> np.ndarray:
    text = yaml.safe_dump(options, sort_keys=False, default_flow_style=False)
    return np.frombuffer(text.encode() + b"\0", np.int8)


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        check_members(archive)
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        return {name: _npy(path, archive, entry) for name, entry in entries.items()}


def _npy(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Return one member, a NumPy array, memory-mapped if the zip stores it uncompressed."""
    begin = member_offset(path, entry)
    with archive.open(entry) as file:
        if begin is None:
            return np.lib.format.read_array(file, allow_pickle=False)
        version = np.lib.format.read_magic(file)
        header = HEADERS.get(version)
        if header is None:
            raise ValueError(f"{entry.filename[:80]} has NumPy format {version}, not 1.0 or 2.0")
        shape, is_fortran, dtype = header(file)
        begin += file.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > entry.file_size:
        raise ValueError(f"{entry.filename[:80]} is too small for its shape")
    numbers = mapped(path, dtype, begin, shape[::-1] if is_fortran else shape)
    return numbers.T if is_fortran else numbers


def _read_bin(path: Path) -> dict[str, np.ndarray]:
    content = np.memmap(path, mode="r").data
    version, count = struct.unpack_from("<2Q", content, 0)
    if version != 1:
        raise ValueError(f"it has format version {version}; only version 1 is supported")
    if count > len(content) // 32:
        raise ValueError("it is cut off")
    headers = [struct.unpack_from("<4Q", content, 16 + 32 * n) for n in range(count)]
    offset = 16 + 32 * count
    names, shapes = [], []
    for length, *_ in headers:
        names.append(bytes(content[offset : offset + length]).rstrip(b"\0").decode())
        offset += length
    for _, _, rank, _ in headers:
        if rank > MAX_RANK:
            raise ValueError(f"a tensor has {rank} axes, more than {MAX_RANK}")
        shapes.append(struct.unpack_from(f"<{rank}i", content, offset))
        offset += 4 * rank
    (gap,) = struct.unpack_from("<Q", content, offset)
    offset += 8 + gap
    tensors: dict[str, np.ndarray] = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        if offset + size > len(content):
            raise ValueError("it is cut off")
        if name in tensors:
            raise ValueError(f"it names {name} twice")
        tensors[name] = _tensor(path, name, kind, size, offset, shape)
        offset += size
    if offset != len(content):
        raise ValueError("it has extra bytes after its last tensor")
    return tensors


def _tensor(
    path: Path, name: str, kind: int, size: int, offset: int, shape: tuple[int, ...]
) -> np.ndarray:
    if name.endswith(ALPHA):
        return np.zeros(1, np.float32)
    if kind == INT8_MATRIX:
        return _int8_matrix(path, name, size, offset, shape)
    dtype = FLOATS.get(kind, "i1" if kind == BYTES else None)
    if dtype is None or (kind == BYTES and name != OPTIONS):
        raise ValueError(f"{name} is packed for one type of processor; use the float32 model")
    if min(shape, default=1) < 1:
        raise ValueError(f"{name} has the impossible shape {shape}")
    if math.prod(shape) * np.dtype(dtype).itemsize > size:
        raise ValueError(f"{name} has fewer numbers than its shape {shape} needs")
    return mapped(path, dtype, offset, shape)


def _int8_matrix(
    path: Path, name: str, size: int, offset: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Return a matrix in float32, stored as int8 values followed by their common multiplier.

    An embedding is stored row by row, any other matrix column by column.
    """
    if len(shape) != 2 or min(shape) < 1:
        raise ValueError(
            f"{name} is stored as an int8 matrix, but has the shape {shape}; a matrix has two axes "
            "of at least 1"
        )
    count = math.prod(shape)
    if count + 4 > size:
        raise ValueError(f"{name} has fewer numbers than its shape {shape} needs")
    is_table = name.endswith("Wemb")
    integers = mapped(path, "i1", offset, shape if is_table else shape[::-1])
    multiplier = mapped(path, "<f4", offset + count, (1,))
    if not 0 < multiplier[0] < np.inf:
        raise ValueError(f"{name} has the impossible multiplier {multiplier[0]}")
    matrix = integers / multiplier
    return matrix if is_table else matrix.T
