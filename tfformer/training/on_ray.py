"""A training on a Ray cluster, which begins again when a worker is lost.

Ray Train places the workers, each a process. It gets a TF_CONFIG and trains as one that was started
by hand. All machines must see the working directory and the run directory under the same paths.
"""

from __future__ import annotations

import functools
import os
import textwrap
import time
from collections.abc import Callable
from typing import Any

from tfformer.config import Config
from tfformer.run_directory import Run, check_free
from tfformer.runtime.ray_cluster import Head, connected, on_head, reason
from tfformer.training.cluster import WorkerLostError
from tfformer.version import __version__

Report = Callable[[str], None]

MAX_DEATHS = 3  # in a row, without an epoch that came to its end
SECONDS_TO_DIE = 300  # for a lost worker that still holds the run directory
RETRY_SECONDS = 5


def train_on_ray(
    address: str,
    workers: int,
    config: Config,
    run_dir: str,
    resume: bool = False,
    init_from: str | None = None,
    report: Report = print,
) -> dict[str, Any]:
    """Train on a cluster; after a loss, continue from the last checkpoint.

    Args:
        address: As in `ray_cluster.connected`.
        workers: Number of workers, each with one processor and its share of the cluster's GPUs.
        config: The recipe; the strategy one_device becomes multi_worker.
        run_dir: As in `train`; on storage that all machines share.
        resume: As in `train`.
        init_from: As in `train`.
        report: Called with a line for each loss.

    Returns:
        The content of result.json.

    Raises:
        ValueError: The recipe's strategy is mirrored, or the cluster has fewer processors than
            workers.
        ConnectionError: There is no cluster, its head is lost, or workers are lost repeatedly.
        TimeoutError: The cluster does not start all workers.
    """
    config = _for_workers(config)
    if not resume:
        check_free(run_dir)
    ray = connected(address, log_to_driver=True)
    try:
        gpus = _gpus_of_each(ray, workers)
        trained = functools.partial(_trained, ray, workers, gpus, config, run_dir)
        return _despite_deaths(trained, run_dir, resume, init_from, report)
    finally:
        ray.shutdown()


def _for_workers(config: Config) -> Config:
    """Return a recipe with the strategy of several workers."""
    if config.training.strategy == "mirrored":
        raise ValueError(
            "--ray does not go with training.strategy=mirrored; leave out one of them, as on a "
            "cluster each worker takes its share of the GPUs"
        )
    training = config.training.replace(strategy="multi_worker")
    return config.replace(training=training)


def _despite_deaths(
    trained: Callable[[bool, str | None], dict[str, Any]],
    run_dir: str,
    resume: bool,
    init_from: str | None,
    report: Report,
) -> dict[str, Any]:
    """Train, and after each loss again from the last checkpoint, if there is one."""
    deaths = 0
    epochs = _epochs(run_dir)
    last = None  # loss
    while True:
        try:
            return trained(resume, init_from)
        except BlockingIOError as error:  # a lost worker may not be quite dead
            if last is None:
                raise
            if time.monotonic() > last + SECONDS_TO_DIE:
                waited = f"waited {SECONDS_TO_DIE} seconds for the end of the lost worker"
                raise BlockingIOError(f"{error}; {waited}") from None
            time.sleep(RETRY_SECONDS)
        except WorkerLostError as error:
            last = time.monotonic()
            before, epochs = epochs, _epochs(run_dir)
            deaths = deaths + 1 if epochs == before else 1
            if deaths == MAX_DEATHS:
                again = "again" if epochs is None else "with --resume"
                raise WorkerLostError(
                    f"{deaths} times in a row a worker was lost before an epoch had ended "
                    f"({error}); see to the machines, then give the same command {again}"
                ) from None
            report(f"all workers begin again, as one was lost: {error}")
        resume = epochs is not None
        init_from = None if resume else init_from


def _gpus_of_each(ray: Any, workers: int) -> int:
    """Return each worker's share of the cluster's GPUs."""
    resources = ray.cluster_resources()
    processors = int(resources.get("CPU", 0))
    if workers > processors:
        raise ValueError(
            f"--workers {workers} is more than the {processors} processors of the Ray cluster; "
            "give fewer, or add machines"
        )
    return int(resources.get("GPU", 0)) // workers


def _trained(
    ray: Any,
    workers: int,
    gpus: int,
    config: Config,
    run_dir: str,
    resume: bool,
    init_from: str | None,
) -> dict[str, Any]:
    """Train with new workers until the end or the first failure."""
    from tfformer.training.on_ray_job import Task, TrainingJob, WorkerGoneError

    task = Task(config.to_dict(), run_dir, resume, init_from, os.getcwd(), __version__)
    head = Head(ray)
    job = on_head(ray, TrainingJob)
    try:
        return head.answer(job.fit.remote(task, workers, gpus, config.training.wait_minutes))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, WorkerGoneError):
            raise WorkerLostError(str(error.cause)) from None
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise WorkerLostError(textwrap.shorten(reason(error), 200)) from None
    finally:
        ray.kill(job)


def _epochs(run_dir: str) -> int | None:
    """Return the number of epochs of a run; None if there is no run yet."""
    try:
        metrics = Run.open(run_dir).metrics
    except FileNotFoundError:
        return None
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0
