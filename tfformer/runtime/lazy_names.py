"""Public names whose modules are imported when they are first used."""

import importlib
import threading
from typing import Any

_TURN = threading.RLock()  # TensorFlow fails if two threads import different parts of it


def imported(module: str, name: str) -> Any:
    """Return what a module calls `name`; threads import one after the other.

    Args:
        module: Such as "tfformer.export.formats".
        name: One of its names.
    """
    with _TURN:
        return getattr(importlib.import_module(module), name)
