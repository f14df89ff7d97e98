"""The machine and the package versions of a measurement, and the spread of its rounds."""

import importlib.metadata
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfformer import __version__

PACKAGES = (
    *("tensorflow", "tensorflow-text", "keras", "keras-hub", "ctranslate2", "ai-edge-litert"),
    *("torch", "numpy"),
)
FEATURES = (  # processor features that matrix products use
    *("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
)
THREAD_SETTINGS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS")


def machine() -> dict[str, Any]:
    """Describe processor, load and versions, as plain JSON values.

    Returns:
        `processor`, with the name, the features and the number of cores that this process may use;
        `load`, the average number of running processes over the last 1, 5 and 15 minutes;
        `versions` of the installed packages; `environment`, the variables that set the number of
        threads.
    """
    information = _processor_information()
    flags = information.get("flags", "").split()
    return {
        "processor": {
            "name": information.get("model name", platform.processor()),
            "features": [feature for feature in FEATURES if feature in flags],
            "cores": len(os.sched_getaffinity(0)),
        },
        "load": [round(load, 2) for load in os.getloadavg()],
        "versions": _versions(),
        "environment": {name: os.environ[name] for name in THREAD_SETTINGS if name in os.environ},
    }


def print_machine(described: dict[str, Any]) -> None:
    """Print the result of `machine` as the header of a measurement."""
    processor = described["processor"]
    features = " ".join(processor["features"]) or "no known feature"
    load = " ".join(f"{load:.2f}" for load in described["load"])
    versions = ", ".join(f"{name} {version}" for name, version in described["versions"].items())
    print(f"processor    {processor['name']}, {processor['cores']} cores")
    print(f"features     {features}")
    print(f"load         {load} (over 1, 5 and 15 minutes)")
    print(f"versions     {versions}")
    for name, value in described["environment"].items():
        print(f"environment  {name}={value}")
    print(flush=True)


def spread(rounds: Sequence[float]) -> dict[str, float]:
    """Return the minimum, the median and the maximum of the rounds.

    Example:
        >>> spread([3.0, 1.0, 2.0, 10.0])
        {'min': 1.0, 'median': 2.5, 'max': 10.0}
    """
    median = round(statistics.median(rounds), 4)
    return {"min": min(rounds), "median": median, "max": max(rounds)}


def spread_text(rounds: Sequence[float], unit: str) -> str:
    """Return the median with the range in parentheses, as text.

    Example:
        >>> spread_text([3.0, 1.0, 2.0], "tokens/s")
        '     2.0 tokens/s (1.0 to 3.0)'
    """
    least, median, most = spread(rounds).values()
    return f"{median:8.1f} {unit} ({least:.1f} to {most:.1f})"


def _processor_information() -> dict[str, str]:
    """Return the fields of the first processor in Linux's /proc/cpuinfo; {} on other systems."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "tfformer": __version__}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
