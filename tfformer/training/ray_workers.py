"""A training on a Ray cluster, which begins again when a worker is lost.

Each worker is an actor, which is a process. It gets a TF_CONFIG and trains as one that was started
by hand. All machines must see the working directory and the run directory under the same paths.
"""

from __future__ import annotations

import functools
import os
import socket
import textwrap
import time
from collections.abc import Callable
from typing import Any

from tfformer.config import Config
from tfformer.ray_connection import Head, check_version, connected, reason
from tfformer.run_directory import Run, check_free
from tfformer.training.cluster import VARIABLE, Cluster, WorkerLostError
from tfformer.version import __version__

Report = Callable[[str], None]

MAX_DEATHS = 3  # in a row, without an epoch that came to its end
SECONDS_TO_DIE = 300  # for a lost worker that still holds the run directory
RETRY_SECONDS = 5
SECONDS_A_LOOK = 2  # at the head of the cluster


class TrainingWorker:
    """One worker's process."""

    def prepare(self, folder: str, version: str) -> str:
        """Enter the working directory.

        Args:
            folder: Where the recipe's paths begin.
            version: Of this package, where the training was begun.

        Returns:
            The address at which this worker will listen.

        Raises:
            ValueError: This machine has another version of the package.
            FileNotFoundError: It has no such folder.
        """
        import ray

        check_version(version)
        os.chdir(folder)
        with socket.create_server(("", 0)) as free:
            return f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"

    def train(
        self,
        tf_config: str,
        values: dict[str, Any],
        run_dir: str,
        resume: bool,
        init_from: str | None,
    ) -> dict[str, Any]:
        """Train as `training.train.train` does.

        Args:
            tf_config: All workers' addresses and this one's number.
            values: The recipe's sections.
            run_dir: The run directory.
            resume: Continue the run in it.
            init_from: A run that gives its vocabulary and weights.

        Returns:
            The content of result.json.
        """
        os.environ[VARIABLE] = tf_config
        from tfformer.training.train import train

        return train(Config.from_dict(values), run_dir, resume, init_from)


def train_on_ray(
    address: str,
    workers: int,
    config: Config,
    run_dir: str,
    resume: bool = False,
    init_from: str | None = None,
    report: Report = print,
) -> dict[str, Any]:
    """Train on a cluster; after a loss, go on from the last checkpoint.

    Args:
        address: As in `ray_connection.connected`.
        workers: Number of workers, each with one processor and its share of the cluster's GPUs.
        config: The recipe, whose strategy is multi_worker.
        run_dir: As in `train`; on storage that all machines share.
        resume: As in `train`.
        init_from: As in `train`.
        report: Called with a line for each loss.

    Returns:
        The content of result.json.

    Raises:
        ValueError: The recipe has another strategy, the cluster has fewer processors than workers,
            or as in `train`.
        FileExistsError: Something else lies at `run_dir`.
        ConnectionError: There is no cluster, its head is lost, or workers again and again.
        TimeoutError: The cluster does not start all workers.
    """
    if config.training.strategy != "multi_worker":
        raise ValueError(
            f"--ray does not go with training.strategy={config.training.strategy}; add --set "
            "training.strategy=multi_worker"
        )
    if not resume:
        check_free(run_dir)
    ray = connected(address, log_to_driver=True)
    try:
        actor = _actor(ray, workers)
        trained = functools.partial(_trained, ray, actor, workers, config, run_dir)
        return _despite_deaths(trained, run_dir, resume, init_from, report)
    finally:
        ray.shutdown()


def _despite_deaths(
    trained: Callable[[bool, str | None], dict[str, Any]],
    run_dir: str,
    resume: bool,
    init_from: str | None,
    report: Report,
) -> dict[str, Any]:
    """Train, and after each loss again from the last checkpoint, if there is one."""
    deaths, epochs = 0, _epochs(run_dir)
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


def _actor(ray: Any, workers: int) -> Any:
    """Return the class of the workers' actors, with each one's share of the cluster."""
    resources = ray.cluster_resources()
    processors = int(resources.get("CPU", 0))
    if workers > processors:
        raise ValueError(
            f"--workers {workers} is more than the {processors} processors of the Ray cluster; "
            "give fewer, or add machines"
        )
    gpus = int(resources.get("GPU", 0)) // workers
    return ray.remote(num_cpus=1, num_gpus=gpus)(TrainingWorker)


def _trained(
    ray: Any,
    actor: Any,
    workers: int,
    config: Config,
    run_dir: str,
    resume: bool,
    init_from: str | None,
) -> dict[str, Any]:
    """Train with new actors until the end or the first failure, and end them.

    Raises:
        WorkerLostError: A worker was lost, or another worker lost it from sight.
        TimeoutError: The cluster did not start all of them.
        Exception: What a worker raised.
    """
    minutes = config.training.wait_minutes
    head = Head(ray)
    actors = [actor.remote() for _ in range(workers)]
    try:
        prepared = [one.prepare.remote(os.getcwd(), __version__) for one in actors]
        addresses = tuple(ray.get(prepared, timeout=60 * minutes))
        work = [
            one.train.remote(
                Cluster(addresses, number).to_json(), config.to_dict(), run_dir, resume, init_from
            )
            for number, one in enumerate(actors)
        ]
        result: dict[str, Any] = {}  # the same of all
        while work:
            ended, work = ray.wait(work, timeout=SECONDS_A_LOOK)
            for one in ended:
                result = ray.get(one)
            head.check()
        return result
    except ray.exceptions.GetTimeoutError:
        raise TimeoutError(
            f"the Ray cluster has not started {workers} workers within {minutes:g} minutes "
            "(training.wait_minutes); see which machines are gone or busy"
        ) from None
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise WorkerLostError(textwrap.shorten(reason(error), 200)) from None
    finally:
        for one in actors:
            ray.kill(one)


def _epochs(run_dir: str) -> int | None:
    """Return the number of epochs of a run; None if there is no run yet."""
    try:
        metrics = Run.open(run_dir).metrics
    except FileNotFoundError:
        return None
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0
