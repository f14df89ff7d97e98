"""Parts translated on a Ray cluster, by Ray Data.

Ray places the workers, begins the work of a lost machine again elsewhere, and shows the progress.
All machines must see the model, the corpus and the output under the same paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfformer.corpora.engines import Model, load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.processes import MAX_DEATHS, WorkersError
from tfformer.corpora.translation import Counts, summed, translate_part
from tfformer.ray_connection import check_version, connected, reason
from tfformer.version import __version__


class PartTranslator:
    """A worker: it loads the model once and translates one part after the other.

    Args:
        model: As for `load_engine`.
        version: The version of this package where the job was begun.

    Raises:
        ValueError: This machine has another version of the package, or the model cannot be loaded,
            or is another one.
    """

    def __init__(self, model: Model, version: str) -> None:
        check_version(version)
        self.engine = load_engine(model)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a part.

        Args:
            row: Its "source" and "output" as texts.

        Returns:
            Its source, its figures, and its fault or an empty text.
        """
        part = Part(Path(row["source"]), Path(row["output"]))
        if part.is_done:  # by a worker whose machine was lost before it could say so
            return row | Counts()._asdict() | {"fault": ""}
        try:
            counts = translate_part(self.engine, part, lambda counts: None)
        except (ValueError, OSError) as error:
            return row | Counts()._asdict() | {"fault": str(error)}
        return row | counts._asdict() | {"fault": ""}


def translate_parts(
    address: str,
    model: Model,
    parts: Sequence[Part],
    workers: int,
) -> Counts:
    """Translate parts on a cluster.

    Args:
        address: As in `ray_connection.connected`.
        model: A run or an export, in a folder that all machines see.
        parts: The files, likewise.
        workers: Number of workers, each of which loads the model and has one processor.

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
        translated = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            PartTranslator,
            fn_constructor_args=(model, __version__),
            num_cpus=1,
            concurrency=workers,
            max_restarts=-1,
            max_task_retries=MAX_DEATHS,
        )
        found = translated.take_all()
    except ray.exceptions.RayError as error:
        raise WorkersError(f"the workers failed: {reason(error)}") from None
    finally:
        ray.shutdown()
    return summed(
        {
            Path(row["source"]): row["fault"] or Counts(*(row[name] for name in Counts._fields))
            for row in found
        }
    )
