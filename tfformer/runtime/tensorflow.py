"""Import TensorFlow and Keras silently and in about half the time.

This module changes the whole process, so only programs and engines use it, not `import tfformer`.
During the imports, Python's garbage collector repeatedly scans 440,000 new objects without finding
garbage, and Keras imports Matplotlib and pandas if they are installed, although the package uses
neither with Keras. TensorFlow's C++ code prints lines before its log level takes effect.
"""

import gc
import glob
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

LEFT_OUT = ("matplotlib", "pandas")
GPU_DEVICES = "/dev/nvidia[0-9]*"
HARDWARE = ("/proc/cpuinfo", "/proc/driver/nvidia/gpus/*/information")
PREFIXES = ("flags", "Model:")  # of the lines about CPU instructions and GPU models


def import_tensorflow() -> None:
    """Import TensorFlow and Keras, unless TensorFlow has already been imported.

    It must run before other threads import anything. Modules that it leaves out can be imported
    afterwards, but Keras does not use them.
    """
    if "tensorflow" in sys.modules:
        return
    set_xla_flags()
    with _missing(LEFT_OUT), _no_garbage_collection(), silence():
        import keras  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()  # the first call also prints lines


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
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection in the block; later collections skip all existing objects."""
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
    """Discard everything that Python and C++ code write to standard error."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def set_xla_flags() -> None:
    """Make XLA compile faster, and cache what it compiles for a GPU.

    XLA reads its settings from the environment when TensorFlow compiles its first program. Whatever
    the user has set is kept.
    """
    # Use cuBLAS instead of Triton for matrix products: it is as fast, and tuning Triton's kernels
    # takes a third of the compilation time.
    _add("XLA_FLAGS", "--xla_gpu_enable_triton_gemm", "false")
    if not glob.glob(GPU_DEVICES):
        return  # a cached CPU program would be rejected, or fail, on another CPU
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there is no home directory, or it cannot be written to
        return
    _add("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory", str(folder))


def cache_folder() -> Path:
    """Return the cache folder for this version of TensorFlow and this hardware."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(version("tensorflow").encode())
    for pattern in HARDWARE:
        for path in sorted(glob.glob(pattern)):
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
            relevant = {line for line in lines if line.startswith(PREFIXES)}
            digest.update("\n".join(sorted(relevant)).encode())
    return Path(caches, "tfformer", "xla", digest.hexdigest()[:16])


def _add(variable: str, flag: str, value: str) -> None:
    """Add a flag to an environment variable, unless the user has set the flag.

    The variable is left unchanged if it does not begin with a dash, as XLA then reads it as the
    name of a file of flags.
    """
    given = os.environ.get(variable, "").strip()
    if flag not in given and given[:1] in ("", "-"):
        os.environ[variable] = f"{given} {flag}={value}".strip()
