"""Parts translated on a Ray cluster, by Ray Data.

Ray places the workers, begins the work of a lost machine again elsewhere, and shows the progress.
All machines must see the model, the corpus and the output under the same paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfformer.corpora.engines import load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.processes import WorkersError
from tfformer.corpora.translation import Counts, translate_part
from tfformer.ray_connection import check_version, connected, reason
from tfformer.version import __version__


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
        check_version(version)
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
        address: As in `ray_connection.connected`.
        model: A run or an export, under a path that all machines see.
        parts: The files, likewise.
        workers: Number of workers, each of which loads the model and has one processor.
        beam_size: As in `load_engine`.

    Returns:
        The sums of all parts.

    Raises:
        ValueError: Ray is not installed, or some parts cannot be read; the others are done.
        ConnectionError: There is no cluster at `address`.
        WorkersError: Its workers fail.
    """
    if not parts:
        return Counts()
    ray = connected(address, log_to_driver=False)
    try:
        # No link is followed: the name of a file says whether it is packed.
        rows = [
            {"source": str(part.source.absolute()), "output": str(part.output.absolute())}
            for part in parts
        ]
        arguments = (str(Path(model).absolute()), beam_size, __version__)
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
        raise WorkersError(f"the workers failed: {reason(error)}") from None
    finally:
        ray.shutdown()
    faults = [row["fault"] for row in found if row["fault"]]
    if faults:
        raise ValueError(f"{len(faults)} of {len(parts)} parts were left out: {faults[0]}")
    total = Counts()
    for row in found:
        total = total.plus(Counts(*(row[name] for name in Counts._fields)))
    return total
