"""Describes the device on which TensorFlow computes."""

import os
import sys
from pathlib import Path

NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
HIDDEN = ("", "-1")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs


def device_line() -> str:
    """Return the names of the GPUs that TensorFlow uses, or the number of CPU cores.

    TensorFlow is not imported by this; if it has not been imported, the CPU cores do the work.
    """
    names = _gpu_names()
    if not names:
        cores = len(os.sched_getaffinity(0))
        return "1 processor core" if cores == 1 else f"{cores} processor cores"
    if len(set(names)) == 1 and len(names) > 1:
        return f"{len(names)} x {names[0]}"
    return ", ".join(names)


def has_gpu() -> bool:
    """Return whether TensorFlow computes on a GPU."""
    return bool(_gpu_names())


def unused_gpu() -> str | None:
    """Return a warning if an NVIDIA driver is installed, but TensorFlow sees no GPU."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in HIDDEN
    if "tensorflow" not in sys.modules or is_hidden or not NVIDIA_DRIVER.exists() or _gpu_names():
        return None
    return (
        "this machine has an NVIDIA driver, but TensorFlow sees no GPU; install its libraries "
        "with: pip install -e '.[gpu]'"
    )


def _gpu_names() -> list[str]:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return []
    details = tensorflow.config.experimental.get_device_details
    gpus = tensorflow.config.get_visible_devices("GPU")
    return [details(gpu).get("device_name", gpu.name) for gpu in gpus]
