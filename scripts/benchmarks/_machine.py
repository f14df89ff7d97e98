"""The machine and the versions that a measurement belongs to.

The spread of its rounds is here too.
"""

import importlib.metadata
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from tfformer.version import __version__

PACKAGES = (
    *("tensorflow", "tensorflow-text", "keras", "keras-hub", "ctranslate2", "ai-edge-litert"),
    *("torch", "OpenNMT-tf", "numpy"),
)
FEATURES = (  # of the processor, that matrix products use
    *("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
)
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
THREAD_SETTINGS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS")


def machine() -> dict:
    """Describe processor, load and versions, as plain JSON values.

    Returns:
        `processor` with its name, features and the cores that this process may use; the frequency
        `governor`, None where the system does not tell it; `load`, the average number of running
        processes over 1, 5 and 15 minutes before the measurement; `versions` of the installed
        packages; the `environment` variables that set threads.
    """
    information = _processor_information()
    flags = information.get("flags", "").split()
    return {
        "processor": {
            "name": information.get("model name", platform.processor()),
            "features": [feature for feature in FEATURES if feature in flags],
            "cores": len(os.sched_getaffinity(0)),
        },
        "governor": GOVERNOR.read_text().strip() if GOVERNOR.exists() else None,
        "load": [round(load, 2) for load in os.getloadavg()],
        "versions": _versions(),
        "environment": {name: os.environ[name] for name in THREAD_SETTINGS if name in os.environ},
    }


def print_machine(described: dict) -> None:
    """Print what `machine` has described, as the header of a measurement."""
    processor = described["processor"]
    features = " ".join(processor["features"]) or "none of those looked for"
    load = " ".join(f"{load:.2f}" for load in described["load"])
    versions = ", ".join(f"{name} {version}" for name, version in described["versions"].items())
    print(f"processor    {processor['name']}, {processor['cores']} cores")
    print(f"features     {features}")
    print(f"governor     {described['governor'] or 'not told by this system'}")
    print(f"load         {load} (over 1, 5 and 15 minutes)")
    print(f"versions     {versions}")
    for name, value in described["environment"].items():
        print(f"environment  {name}={value}")
    print(flush=True)


def spread(rounds: Sequence[float]) -> dict[str, float]:
    """Return the least, the median and the greatest of the rounds.

    Example:
        >>> spread([3.0, 1.0, 2.0, 10.0])
        {'min': 1.0, 'median': 2.5, 'max': 10.0}
    """
    median = round(statistics.median(rounds), 4)
    return {"min": min(rounds), "median": median, "max": max(rounds)}


def spread_text(rounds: Sequence[float], unit: str) -> str:
    """Return the spread as text, the median first.

    Example:
        >>> spread_text([3.0, 1.0, 2.0], "tokens/s")
        '     2.0 tokens/s (1.0 to 3.0)'
    """
    found = spread(rounds)
    return f"{found['median']:8.1f} {unit} ({found['min']:.1f} to {found['max']:.1f})"


def _processor_information() -> dict[str, str]:
    """The lines of the first processor in Linux' /proc/cpuinfo; nothing elsewhere."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "tfformer": __version__}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
