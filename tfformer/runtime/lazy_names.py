"""Public names whose modules are imported when they are first used."""

import importlib
import threading
from typing import Any

_TURN = threading.RLock()  # TensorFlow fails if two threads import different parts of it


def imported(module: str, name: str) -> Any:
    """Return an attribute of a module; threads import one after the other."""
    with _TURN:
        return getattr(importlib.import_module(module), name)
