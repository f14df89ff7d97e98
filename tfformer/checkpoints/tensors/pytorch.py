"""Read the tensors of a `pytorch_model.bin` without torch.

Nothing in the file is executed. The file is a pickle: a program for a machine that may call any
function. This machine knows the few instructions that a dictionary of tensors needs, and calls
nothing: a name such as `torch._utils._rebuild_tensor_v2` is a mark that it compares with a short
list. Layouts (torch/serialization.py): a zip file since torch 1.6, and a chain of pickles before.
"""

import io
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.tensors.safetensors_file import from_bfloat16
from tfformer.checkpoints.tensors.stored_arrays import (
    check_members,
    mapped,
    member_offset,
    naming_damage,
)

STORAGES = {
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch DoubleStorage": "<f8",
    "torch BFloat16Storage": "<u2",
}
DICTIONARY = "collections OrderedDict"
TENSOR = "torch._utils _rebuild_tensor_v2"
PARAMETER = "torch._utils _rebuild_parameter"
INDEX = "pytorch_model.bin.index.json"  # of a checkpoint in several files
KNOWN = {*STORAGES, DICTIONARY, TENSOR, PARAMETER}
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
MARK = object()


@dataclass(frozen=True)
class _Name:
    """A function or class that the pickle asks for; never looked up."""

    text: str


@dataclass(frozen=True)
class _Storage:
    """The place of the numbers that one or more tensors show."""

    dtype: str
    key: str
    size: int  # numbers


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage; offset and strides count numbers, not bytes."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file that `torch.save` wrote.

    Args:
        path: A file such as `pytorch_model.bin`.

    Returns:
        Name -> array of float64, float32 or float16; bfloat16 becomes float32.

    Raises:
        ValueError: The file is damaged, or asks for anything but tensors.
    """
    with naming_damage(path, "copy the file again"):
        try:
            return _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _read_zip(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        check_members(archive)
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise ValueError("there is no data.pkl in it; give a file that torch.save wrote")
        folder = names[0].removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise ValueError("it was written on a big-endian machine; save it again on another")
        tensors = _run(io.BytesIO(archive.read(names[0])))

        def content(storage: _Storage) -> np.ndarray:
            entry = archive.getinfo(f"{folder}data/{storage.key}")
            begin = member_offset(path, entry)
            if begin is None:
                raise ValueError("it is compressed; save it again with torch.save")
            item = np.dtype(storage.dtype).itemsize
            return mapped(path, storage.dtype, begin, (entry.file_size // item,))

        return _arrays(tensors, content)


def _read_legacy(path: Path) -> dict[str, np.ndarray]:
    """Read five pickles, then numbers.

    The pickles are a number, a version, the machine, the tensors and their keys.
    """
    stream = io.BytesIO(path.read_bytes())
    if _run(stream) != LEGACY_MAGIC:
        raise ValueError("it is no checkpoint; give a file that torch.save wrote")
    _run(stream)
    if not _run(stream).get("little_endian", True):
        raise ValueError("it was written on a big-endian machine; save it again on another")
    tensors = _run(stream)
    storages = {tensor.storage.key: tensor.storage for tensor in _only_tensors(tensors).values()}
    contents = {}
    for key in _run(stream):
        count = int.from_bytes(stream.read(8), "little")
        item = np.dtype(storages[key].dtype).itemsize
        size = min(count, storages[key].size) * item
        contents[key] = stream.read(size)
        if len(contents[key]) < size:
            raise ValueError("it ends within its numbers; copy the file again")
    return _arrays(tensors, lambda storage: np.frombuffer(contents[storage.key], storage.dtype))


def _arrays(tensors: Any, content: Callable[[_Storage], np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors as arrays; those of one storage share its memory."""
    named = _only_tensors(tensors)
    numbers: dict[_Storage, np.ndarray] = {}
    for tensor in named.values():
        if tensor.storage not in numbers:
            numbers[tensor.storage] = content(tensor.storage)
    return {name: _view(name, tensor, numbers[tensor.storage]) for name, tensor in named.items()}


def _only_tensors(tensors: Any) -> dict[str, _Tensor]:
    if not isinstance(tensors, dict) or not tensors:
        raise ValueError("it holds no dictionary of tensors; save model.state_dict()")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, _Tensor):
            raise ValueError(f"{str(name)[:80]} is no tensor; save model.state_dict() alone")
    return tensors


def _view(name: str, tensor: _Tensor, numbers: np.ndarray) -> np.ndarray:
    sizes = [*tensor.shape, *tensor.strides, tensor.offset]
    whole = all(type(size) is int and size >= 0 for size in sizes)
    if not whole or not tensor.shape or len(tensor.shape) != len(tensor.strides):
        raise ValueError(f"{name} has no proper shape; copy the file again")
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if 0 in tensor.shape or last >= len(numbers):
        raise ValueError(f"{name} reaches beyond its numbers; copy the file again")
    item = numbers.dtype.itemsize
    strides = [stride * item for stride in tensor.strides]
    view = np.lib.stride_tricks.as_strided(
        numbers[tensor.offset :], tensor.shape, strides, writeable=False
    )
    return from_bfloat16(view) if numbers.dtype == np.uint16 else view


def _run(stream: io.BytesIO) -> Any:
    """Run one pickle, from the stream's place to its end, and return its value."""
    machine = _Machine()
    for name, argument in _instructions(stream):
        if name == "STOP":
            return machine.stack.pop()
        machine.step(name, argument)
    raise ValueError("its pickle has no end; copy the file again")


def _instructions(stream: io.BytesIO) -> Iterator[tuple[str, Any]]:
    """Yield the instructions of a pickle, each with its argument."""
    try:
        for operation, argument, _ in pickletools.genops(stream):
            yield operation.name, argument
    except ValueError as error:
        raise ValueError(f"its pickle is damaged ({error}); copy the file again") from None


class _Machine:
    """The pickle instructions of a dictionary of tensors, on a stack."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Carry out one instruction; ValueError for an unknown one."""
        if name in ("PROTO", "FRAME"):
            return
        if name in LITERALS:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self.memo[int(argument)] = self.stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self.memo[int(argument)])
        elif name in OPERATIONS:
            OPERATIONS[name](self, argument)
        else:
            raise ValueError(f"it has the pickle instruction {name}, which tensors do not need")

    def since_mark(self) -> list[Any]:
        """Take the values above the last mark, and the mark, off the stack."""
        place = len(self.stack) - 1
        while place >= 0 and self.stack[place] is not MARK:
            place -= 1
        if place < 0:
            raise ValueError("its pickle closes what it has not opened; copy the file again")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def take(self, count: int) -> tuple[Any, ...]:
        """Take `count` values off the stack, the lowest first."""
        if len(self.stack) < count:
            raise ValueError("its pickle takes more than there is; copy the file again")
        values = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        return values


def _global(machine: _Machine, argument: Any) -> None:
    text = " ".join(machine.take(2)) if argument is None else argument
    if text not in KNOWN:
        raise ValueError(
            f"it asks for {text.replace(' ', '.')}, which may run code and was not run; "
            "a checkpoint needs tensors alone: save model.state_dict()"
        )
    machine.stack.append(_Name(text))


def _reduce(machine: _Machine, _: Any) -> None:
    function, arguments = machine.take(2)
    match function, arguments:
        case _Name(text=name), () if name == DICTIONARY:
            machine.stack.append({})
        case _Name(text=name), (_Storage() as storage, int() as offset, shape, strides, *_) if (
            name == TENSOR
        ):
            machine.stack.append(_Tensor(storage, offset, tuple(shape), tuple(strides)))
        case _Name(text=name), (_Tensor() as tensor, *_) if name == PARAMETER:
            machine.stack.append(tensor)
        case _:
            raise ValueError("it calls a function with unknown arguments; nothing was run")


def _persistent(machine: _Machine, _: Any) -> None:
    (described,) = machine.take(1)
    match described:
        case ("storage", _Name(text=kind), str() as key, str(), int() as size, *_) if (
            kind in STORAGES
        ):
            machine.stack.append(_Storage(STORAGES[kind], key, size))
        case _:
            raise ValueError("it refers to something else than a storage of numbers")


def _set_items(machine: _Machine, values: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict) or len(values) % 2:
        raise ValueError("it fills something else than a dictionary")
    target.update(zip(values[::2], values[1::2], strict=True))


def _append(machine: _Machine, values: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise ValueError("it appends to something else than a list")
    target.extend(values)


def _build(machine: _Machine, _: Any) -> None:
    """A state dictionary carries a `_metadata`, which says nothing about the numbers."""
    target, _state = machine.take(2)
    if not isinstance(target, dict):
        raise ValueError("it changes something else than a dictionary")
    machine.stack.append(target)


def _push_tuple(machine: _Machine, count: int) -> None:
    machine.stack.append(machine.take(count))


LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "INT", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "UNICODE"),
}
CONSTANTS: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: MARK,
}
OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "GLOBAL": _global,
    "STACK_GLOBAL": _global,
    "REDUCE": _reduce,
    "BINPERSID": _persistent,
    "BUILD": _build,
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: _push_tuple(machine, 1),
    "TUPLE2": lambda machine, _: _push_tuple(machine, 2),
    "TUPLE3": lambda machine, _: _push_tuple(machine, 3),
    "SETITEM": lambda machine, _: _set_items(machine, list(machine.take(2))),
    "SETITEMS": lambda machine, _: _set_items(machine, machine.since_mark()),
    "APPEND": lambda machine, _: _append(machine, list(machine.take(1))),
    "APPENDS": lambda machine, _: _append(machine, machine.since_mark()),
}
