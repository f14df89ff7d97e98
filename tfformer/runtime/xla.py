"""XLA's settings. It reads them from the environment when TensorFlow compiles its first program."""

import glob
import hashlib
import os
from importlib.metadata import version
from pathlib import Path

GPU_DEVICES = "/dev/nvidia[0-9]*"
HARDWARE = ("/proc/cpuinfo", "/proc/driver/nvidia/gpus/*/information")
DECIDING = ("flags", "Model:")  # the beginnings of the lines about instructions and GPUs


def set_xla_flags() -> None:
    """Let XLA compile sooner, and store what it has compiled for a GPU.

    Call it before TensorFlow is imported. Whatever the user has set is kept.
    """
    # XLA's own kernels for products: trying them out takes a third of the compilation, and the
    # library's are as fast.
    _add("XLA_FLAGS", "--xla_gpu_enable_triton_gemm", "false")
    if not glob.glob(GPU_DEVICES):
        return  # a program for a processor would be refused, or fail, on another one
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there is no home, or it cannot be written
        return
    _add("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory", str(folder))


def cache_folder() -> Path:
    """Return the folder of the programs for this TensorFlow and this hardware."""
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
    """Add a flag to a variable of the environment, unless the user has set it.

    XLA reads a file of flags where the variable does not begin with a dash.
    """
    given = os.environ.get(variable, "").strip()
    if flag not in given and given[:1] in ("", "-"):
        os.environ[variable] = f"{given} {flag}={value}".strip()
