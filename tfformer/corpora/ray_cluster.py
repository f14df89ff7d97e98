"""Parts translated on a Ray cluster, by Ray Data.

Ray places the workers, begins the work of a lost machine again elsewhere, and shows the progress.
All machines must see the model, the corpus and the output under the same paths.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfformer.corpora.engines import load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.processes import WorkersError
from tfformer.corpora.translation import Counts, translate_part
from tfformer.version import __version__

SECONDS_TO_CONNECT = 20


class PartTranslator:
    """A worker: it loads the model once and translates one part after the other.

    Args:
        model: A run or an export.
        beam_size: As in `load_engine`.
        version: The version of this package where the job was begun.

    Raises:
        ValueError: This machine has another version of the package, or the model cannot be loaded.
    """

    def __init__(self, model: str, beam_size: int | None, version: str) -> None:
        if version != __version__:
            raise ValueError(
                f"a worker has tfformer {__version__}, where the job was begun with {version}; "
                "install the same version on all machines"
            )
        self.engine = load_engine(model, beam_size)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a part.

        Args:
            row: Its "source" and "output" as texts.

        Returns:
            Its figures, and its fault or an empty text.
        """
        part = Part(Path(row["source"]), Path(row["output"]))
        if part.is_done:  # by a worker whose machine was lost before it could say so
            return Counts()._asdict() | {"fault": ""}
        try:
            counts = translate_part(self.engine, part, lambda counts: None)
        except (ValueError, OSError) as error:
            return Counts()._asdict() | {"fault": str(error)}
        return counts._asdict() | {"fault": ""}


def translate_parts(
    address: str,
    model: str | Path,
    parts: Sequence[Part],
    workers: int,
    beam_size: int | None = None,
) -> Counts:
    """Translate parts on a cluster.

    Args:
        address: That of the cluster, such as "10.0.0.1:6379"; "local" begins one on this machine.
        model: A run or an export, under a path that all machines see.
        parts: The files, likewise.
        workers: Number of workers, each of which loads the model and has one processor.
        beam_size: As in `load_engine`.

    Returns:
        The sums of all parts.

    Raises:
        ValueError: Ray is not installed, or some parts cannot be read; the others are done.
        WorkersError: There is no cluster at `address`, or its workers fail.
    """
    ray = _connected(address)
    try:
        rows = [
            {"source": str(part.source.resolve()), "output": str(part.output.resolve())}
            for part in parts
        ]
        arguments = (str(Path(model).resolve()), beam_size, __version__)
        translated = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            PartTranslator,
            fn_constructor_args=arguments,
            num_cpus=1,
            concurrency=workers,
            max_restarts=-1,
            max_task_retries=-1,
        )
        found = translated.take_all()
    except ray.exceptions.RayError as error:
        raise WorkersError(f"the workers failed: {_reason(error)}") from None
    finally:
        ray.shutdown()
    faults = [row["fault"] for row in found if row["fault"]]
    if faults:
        raise ValueError(f"{len(faults)} of {len(parts)} parts were left out: {faults[0]}")
    total = Counts()
    for row in found:
        total = total.plus(Counts(*(row[name] for name in Counts._fields)))
    return total


def _connected(address: str) -> Any:
    """Return the library of Ray, connected to a cluster."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise ValueError("--ray needs Ray; pip install 'tfformer[ray]'") from None
    if address != "local":
        _check_reachable(address)
    environment = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    try:
        ray.init(address, log_to_driver=False, runtime_env={"env_vars": environment})
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise WorkersError(f"{address} is no Ray cluster ({_reason(error)}); {_REMEDY}") from None
    return ray


def _check_reachable(address: str) -> None:
    """Raise WorkersError if nothing listens at an address.

    Ray itself would wait for minutes.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"--ray {address} must be HOST:PORT, or local; {_REMEDY}")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise WorkersError(
            f"there is no Ray cluster at {address} ({error}; waited up to {SECONDS_TO_CONNECT} "
            f"seconds); {_REMEDY}"
        ) from None


def _reason(error: BaseException) -> str:
    """Return the last line of an error's text, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


_REMEDY = "begin one with `ray start --head`, and give its address"
