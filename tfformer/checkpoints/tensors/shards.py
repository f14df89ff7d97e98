"""Read a checkpoint in several files; an index says where each tensor is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tfformer.checkpoints.json_files import read_object


def read(index: Path, read_shard: Callable[[Path], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the tensors of all files.

    Args:
        index: Such as `model.safetensors.index.json`.
        read_shard: Reads one of the files, such as `safetensors_files.read`.

    Returns:
        Name -> array, as `read_shard` returns it.

    Raises:
        ValueError: As `read_shard`, or the index and the files do not agree.
    """
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{index} has no weight_map; copy it again")
    found: dict[str, np.ndarray] = {}
    for shard in sorted({str(name) for name in weight_map.values()}):
        if Path(shard).name != shard or not (index.parent / shard).is_file():
            raise ValueError(f"{index} names {shard!r}, which is not beside it; copy all files")
        tensors = read_shard(index.parent / shard)
        for name in tensors:
            if weight_map.get(name) != shard:
                raise ValueError(f"{shard} holds {name}, but {index} does not say so")
        found |= tensors
    if missing := sorted(weight_map.keys() - found.keys()):
        raise ValueError(f"{index} names {missing[0]}, which its file lacks; copy all files again")
    return found
