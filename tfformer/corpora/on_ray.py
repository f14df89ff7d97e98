"""A corpus translated on a Ray cluster.

Ray Data places the workers and gives each one part after the other. All machines must see the
corpus and the output, and a model that has no address, under the same paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts
from tfformer.corpora.workers import SECONDS_A_REPORT, Outcomes, Report, WorkersError
from tfformer.engines import Artifact
from tfformer.runtime.ray_cluster import Head, connected, on_head, reason
from tfformer.version import __version__

AT_ONCE = 8  # calls of the workers that the job answers


def translate_parts(
    address: str,
    model: Artifact,
    parts: Sequence[Part],
    count: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts on a cluster.

    Args:
        address: As in `connection.connected`.
        model: A run or an export.
        parts: The files.
        count: Number of workers, each of which loads the model and needs one processor. Workers
            wait until a processor is free.
        report: As in `workers.translate_parts`.

    Returns:
        The sums of all parts; see `workers.translate_parts` for more errors.

    Raises:
        ValueError: Ray is not installed.
        ConnectionError: There is no cluster at `address`, or its head is lost.
    """
    if not parts:
        return Counts()
    ray = connected(address, log_to_driver=False)
    try:
        from tfformer.corpora.on_ray_job import TranslationJob

        # No link is followed: the name of a file says whether it is packed.
        absolute = [Part(part.source.absolute(), part.output.absolute()) for part in parts]
        job = on_head(ray, TranslationJob, max_concurrency=AT_ONCE)
        return _with_job(ray, job, model, absolute, count, report)
    finally:
        ray.shutdown()


def _with_job(
    ray: Any, job: Any, model: Artifact, parts: Sequence[Part], count: int, report: Report
) -> Counts:
    """Follow a job to its end."""
    head = Head(ray)
    outcomes = Outcomes(parts)
    over = False
    running = job.run.remote(model, parts, count, __version__)
    try:
        while not over:
            over = bool(ray.wait([running], timeout=SECONDS_A_REPORT)[0])
            news = _news(ray, job, head)
            for number, outcome in news.outcomes:
                if outcome is None:
                    outcomes.leave_out(parts[number])
                else:
                    outcomes.add(parts[number], outcome)
            report(outcomes.with_those_under_way(news.under_way))
        ray.get(running)
        return outcomes.sums()
    except ray.exceptions.RayTaskError as error:
        raise WorkersError(f"a worker cannot begin: {reason(error.cause)}") from None
    except ray.exceptions.RayError as error:
        raise WorkersError(f"the job on the cluster's head is lost: {reason(error)}") from None


def _news(ray: Any, job: Any, head: Head) -> Any:
    """Ask a job for its news; raise ConnectionError if the head does not answer."""
    told = job.news.remote()
    head.check()
    while not ray.wait([told], timeout=SECONDS_A_REPORT)[0]:
        head.check()
    return ray.get(told)
