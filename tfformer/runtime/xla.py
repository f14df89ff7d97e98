"""XLA's settings. It reads them from the environment when TensorFlow compiles its first program."""

import glob
import hashlib
import os
from importlib.metadata import version
from pathlib import Path

GPU_DEVICES = "/dev/nvidia[0-9]*"
HARDWARE = ("/proc/cpuinfo", "/proc/driver/nvidia/gpus/*/information")
DECIDING = ("flags", "Model:")  # prefixes of the lines about CPU instructions and GPU models


def set_xla_flags() -> None:
    """Make XLA compile faster, and cache what it compiles for a GPU.

    Call it before TensorFlow is imported. Whatever the user has set is kept.
    """
    # No Triton kernels for matrix products: to tune them takes a third of the compilation time,
    # and the kernels of cuBLAS are as fast.
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
            digest.update(_deciding_lines(Path(path)))
    return Path(caches, "tfformer", "xla", digest.hexdigest()[:16])


def _deciding_lines(path: Path) -> bytes:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(DECIDING)})).encode()


def _add(variable: str, flag: str, value: str) -> None:
    """Add a flag to an environment variable, unless the user has set the flag.

    The variable is left unchanged if it does not begin with a dash, as XLA then reads it as the
    name of a file of flags.
    """
    given = os.environ.get(variable, "").strip()
    if flag not in given and given[:1] in ("", "-"):
        os.environ[variable] = f"{given} {flag}={value}".strip()
