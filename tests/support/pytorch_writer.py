"""Write `pytorch_model.bin` in torch's zip layout, without torch."""

import io
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np


def rebuild(*_):
    """Stands for the function that the pickle names."""


class FloatStorage:
    """The numbers of one tensor; the pickle names its key."""

    def __init__(self, key: str = "", size: int = 0):
        self.key, self.size = key, size


class _Tensor:
    def __init__(self, storage: FloatStorage, array: np.ndarray):
        strides = tuple(stride // array.itemsize for stride in array.strides)
        self.arguments = (storage, 0, array.shape, strides, False, OrderedDict())

    def __reduce__(self):
        return rebuild, self.arguments


class _Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, FloatStorage):
            return ("storage", FloatStorage, value.key, "cpu", value.size)
        return None


def write_pytorch(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write tensors of float32 to a new file."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")
    torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, rebuild
    FloatStorage.__module__, rebuild.__module__ = "torch", "torch._utils"
    rebuild.__name__ = rebuild.__qualname__ = "_rebuild_tensor_v2"
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    state = OrderedDict(
        (name, _Tensor(FloatStorage(str(key), array.size), array))
        for key, (name, array) in enumerate(arrays.items())
    )
    content = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        _Pickler(content, protocol=2).dump(state)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content.getvalue())
        for key, array in enumerate(arrays.values()):
            archive.writestr(f"archive/data/{key}", array.tobytes())
