"""TensorFlow and Keras, imported in silence and in about half the time.

This is only for processes that this package starts. During the imports Python's garbage collector
repeatedly scans 440,000 new objects without finding garbage, and Keras imports Matplotlib and
pandas if they are installed, although these processes use neither with Keras. The first lines of
TensorFlow's C++ side appear before its log level takes effect.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tfformer.runtime.xla import set_xla_flags

LEFT_OUT = ("matplotlib", "pandas")


def import_tensorflow() -> None:
    """Import TensorFlow and Keras, unless TensorFlow has already been imported.

    It must run before other threads import anything. Modules that it leaves out can be imported
    afterwards, but Keras does not use them.
    """
    if "tensorflow" in sys.modules:
        return
    set_xla_flags()
    with _missing(LEFT_OUT), _no_collections(), silence():
        import keras  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()  # the first call prints lines, too


@contextmanager
def _missing(names: tuple[str, ...]) -> Iterator[None]:
    """Make imports of these modules fail as if they were not installed."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: no such module
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable garbage collection in the block; later collections ignore its objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextmanager
def silence() -> Iterator[None]:
    """Discard everything written to standard error, including by C++."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
