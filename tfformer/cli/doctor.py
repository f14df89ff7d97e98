"""The command `doctor`."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import time
from typing import Any

import click

from tfformer import __version__
from tfformer.cli.options import examples
from tfformer.export import FORMATS, NAMES
from tfformer.export.format import Format
from tfformer.runtime.devices import NVIDIA_DRIVER, device_line, has_gpu, unused_gpu

PACKAGES = ("tensorflow", "keras", "tensorflow-text", "ai-edge-litert", "ctranslate2")
TEXT = "tensorflow-text"  # only signatures over text need it
DEVELOPMENT = ("bench", "docs", "multi30k", "test")  # extras that users do not need
SECONDS = 0.3  # length per measurement
SIZES = {"processor": 1024, "GPU": 8192}  # rows and columns of the matrices


@click.command(epilog=examples("tfformer doctor", "tfformer doctor --json > report.json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Report versions, devices and extras, and what is missing.

    It also measures the speed of bfloat16 relative to float32, and lists the available export
    formats.
    """
    error = _import_error()
    extras = _extras()
    driver = NVIDIA_DRIVER.read_text().splitlines()[0] if NVIDIA_DRIVER.exists() else None
    report = {
        "tfformer": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "tensorflow_error": error,
        "device": device_line(),
        "driver": driver,
        "warning": unused_gpu(),
        "gflops": {} if error else {name: _gflops(name) for name in ("float32", "bfloat16")},
        "extras": extras,
        "formats": {name: _remedy(name, extras) for name in NAMES},
    }
    print(json.dumps(report, indent=1) if as_json else "\n".join(_lines(report)))


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"{name:18}{report[name]}" for name in ("tfformer", "python", "system")]
    lines += [f"{name:18}{version or 'missing'}" for name, version in report["packages"].items()]
    lines.append(f"{'device':18}{report['device']}")
    lines += [
        f"{name:18}{report[name]}"
        for name in ("driver", "warning", "tensorflow_error")
        if report[name]
    ]
    if speed := report["gflops"]:
        ratio = speed["bfloat16"] / speed["float32"]
        lines.append(f"{'bfloat16':18}{ratio:.2f} times as fast as float32 (matrix product)")
    for extra, missing in report["extras"].items():
        state = f"lacks {', '.join(missing)}; {_install(extra)}" if missing else "installed"
        lines.append(f"extra {extra:12}{state}")
    lines += [f"{name:18}{remedy or 'ready'}" for name, remedy in report["formats"].items()]
    return lines


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _import_error() -> str | None:
    """Import TensorFlow; return the reason if that fails."""
    from tfformer.runtime.tensorflow import import_tensorflow

    try:
        import_tensorflow()
    except Exception as error:  # a broken installation may raise any exception
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


def _gflops(dtype: str) -> float:
    """Return the speed of a matrix product in billions of operations per second."""
    import tensorflow as tf

    size = SIZES["GPU" if has_gpu() else "processor"]
    factor = tf.cast(tf.random.normal((size, size)), dtype)

    def product() -> None:
        tf.matmul(factor, factor)[0, 0].numpy()  # waits for the device

    product()
    count = 0
    start = time.perf_counter()
    while not count or time.perf_counter() < start + SECONDS:
        product()
        count += 1
    seconds = time.perf_counter() - start
    return round(2e-9 * size**3 * count / seconds, 1)


def _extras() -> dict[str, list[str]]:
    """Return the packages that each extra lacks; empty unless tfformer itself is installed."""
    if _version("tfformer") is None:
        return {}
    provided = importlib.metadata.metadata("tfformer").get_all("Provides-Extra") or []
    return {extra: _missing("tfformer", extra) for extra in provided if extra not in DEVELOPMENT}


def _missing(package: str, extra: str) -> list[str]:
    """Return the packages that an extra of a package needs and that are not installed."""
    from packaging.requirements import Requirement

    missing = []
    for requirement in map(Requirement, importlib.metadata.requires(package) or []):
        marker = requirement.marker
        if not marker or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": extra}):
            continue  # the package alone needs it, or nothing here does
        if _version(requirement.name) is None:
            missing.append(requirement.name)
            continue
        for inner in requirement.extras:
            missing += _missing(requirement.name, inner)
    return sorted(set(missing))


def _remedy(name: str, extras: dict[str, list[str]]) -> str | None:
    """Return the command that makes a format available; None if it already is."""
    needed = FORMATS[name].extras if name in FORMATS else Format.extras
    missing = {extra: set(extras.get(extra, [extra])) for extra in needed}
    lacking = [extra for extra, packages in missing.items() if packages - {TEXT}]
    if lacking:
        return _install(",".join(lacking))
    if name == "saved_model" and _version(TEXT) is None:
        return f"export with --no-text, or install {TEXT}"
    if name == "web" and shutil.which("npm") is None:
        return "install Node.js 20 or newer with npm, which builds the page once"
    return None


def _install(extras: str) -> str:
    return f"pip install -e '.[{extras}]'"
