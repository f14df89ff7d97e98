"""Train on a Ray cluster, and restart from the last checkpoint when a worker is lost.

Ray Train starts each worker as a process. The worker gets a TF_CONFIG and trains like a worker that
was started by hand. All machines must see the working directory and the run directory under the
same paths.

`TrainingJob` runs on the cluster's head, and `_train` in the workers.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig
from ray.train.v2._internal.exceptions import (
    RayTrainError,
    WorkerGroupStartupTimeoutError,
    WorkerHealthCheckFailedError,
)
from ray.train.v2.api.config import FailureConfig, LoggingConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from ray.train.v2.api.exceptions import ControllerError, TrainingFailedError, WorkerGroupError

from tfformer import __version__
from tfformer.config import Config
from tfformer.run_directory import Run, check_free
from tfformer.runtime.ray_cluster import ONE_THREAD, Head, check_version, connect, on_head, reason
from tfformer.runtime.tensorflow import import_tensorflow
from tfformer.training.cluster import WorkerLostError

Report = Callable[[str], None]

MAX_DEATHS = 3  # lost workers in a row without a completed epoch
SECONDS_TO_DIE = 300  # timeout for a lost worker that still locks the run directory
RETRY_SECONDS = 5
SETTINGS = {  # for Ray Train
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a preempted machine counts as lost
}
OF_WORKERS = ONE_THREAD | {"RAY_TRAIN_ENABLE_PRINT_PATCH": "0"}  # plain lines, no log prefix


def train_on_ray(
    address: str,
    workers: int,
    config: Config,
    run_dir: str,
    resume: bool = False,
    init_from: str | None = None,
    report: Report = print,
) -> dict[str, Any]:
    """Train on a cluster, and continue from the last checkpoint if a worker is lost.

    Each worker has one processor and its share of the cluster's GPUs. The recipe's strategy
    one_device becomes multi_worker. `address` is as in `ray_cluster.connect`; the other arguments
    are those of `training.train.train`, and so is the result. `report` is called with a line for
    each lost worker.

    Raises:
        ValueError: The recipe's strategy is mirrored, or the cluster has fewer processors than
            workers.
        ConnectionError: There is no cluster, its head is lost, or workers are lost repeatedly.
        TimeoutError: The cluster does not start all workers.
    """
    if config.training.strategy == "mirrored":
        raise ValueError(
            "--ray cannot be combined with training.strategy=mirrored; omit one of them: on a "
            "cluster, each worker uses its share of the GPUs"
        )
    config = config.replace(training=config.training.replace(strategy="multi_worker"))
    if not resume:
        check_free(run_dir)
    connect(address, log_to_driver=True)
    try:
        resources = ray.cluster_resources()
        processors = int(resources.get("CPU", 0))
        if workers > processors:
            raise ValueError(
                f"--workers {workers} exceeds the {processors} processors of the Ray cluster; use "
                "fewer workers, or add machines"
            )
        gpus = int(resources.get("GPU", 0)) // workers
        trained = functools.partial(_trained, workers, gpus, config, run_dir)
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
    """Train, and restart when a worker is lost, from the last checkpoint if there is one."""
    deaths = 0
    epochs = _epochs(run_dir)
    last = None  # time of the last loss of a worker
    while True:
        try:
            return trained(resume, init_from)
        except BlockingIOError as error:  # a lost worker may still be running
            if last is None:
                raise
            if time.monotonic() > last + SECONDS_TO_DIE:
                waited = f"waited {SECONDS_TO_DIE} seconds for the lost worker to end"
                raise BlockingIOError(f"{error}; {waited}") from None
            time.sleep(RETRY_SECONDS)
        except WorkerLostError as error:
            last = time.monotonic()
            before, epochs = epochs, _epochs(run_dir)
            deaths = deaths + 1 if epochs == before else 1
            if deaths == MAX_DEATHS:
                again = "again" if epochs is None else "with --resume"
                raise WorkerLostError(
                    f"a worker was lost {deaths} times in a row before an epoch ended ({error}); "
                    f"check the machines, then run the same command {again}"
                ) from None
            report(f"restarting all workers, because one was lost: {error}")
        resume = epochs is not None
        init_from = None if resume else init_from


def _trained(
    workers: int,
    gpus: int,
    config: Config,
    run_dir: str,
    resume: bool,
    init_from: str | None,
) -> dict[str, Any]:
    task = Task(config.to_dict(), run_dir, resume, init_from, os.getcwd(), __version__)
    head = Head()
    job = on_head(TrainingJob)
    try:
        return head.answer(job.fit.remote(task, workers, gpus, config.training.wait_minutes))
    except ray.exceptions.RayTaskError as error:
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


@dataclass(frozen=True)
class Task:
    """The arguments of the training run, which all workers receive."""

    values: dict[str, Any]  # the recipe's sections
    run_dir: str
    resume: bool
    init_from: str | None
    folder: str  # base of the recipe's relative paths
    version: str  # tfformer's version on the machine that started training


class TrainingJob:
    """An actor on the head that runs Ray Train for the command."""

    def fit(self, task: Task, workers: int, gpus: int, minutes: float) -> dict[str, Any]:
        """Train until the end or the first failure, and return the content of result.json.

        Each worker has one processor and `gpus` GPUs. The checkpoints are in the run directory, so
        Ray Train's storage can be a local folder; Ray Train writes only a marker there. An error of
        a worker is raised; a lost worker is a WorkerLostError, and workers that do not start in
        time are a TimeoutError.
        """
        os.environ |= SETTINGS | {"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(60 * minutes)}
        with tempfile.TemporaryDirectory(prefix="tfformer-") as storage:
            run_config: Any = RunConfig(
                storage_path=storage,
                # The caller decides after which failures to try again.
                failure_config=FailureConfig(
                    max_failures=0, controller_failure_limit=0, max_preemption_failures=0
                ),
                logging_config=LoggingConfig(log_level="CRITICAL"),
                worker_runtime_env={"env_vars": OF_WORKERS},
            )
            trainer = Trainer(
                _train,
                train_loop_config={"task": task},
                backend_config=TaskConfig(task),
                scaling_config=ScalingConfig(
                    num_workers=workers,
                    use_gpu=gpus > 0,
                    resources_per_worker={"CPU": 1, "GPU": gpus},
                ),
                run_config=run_config,
            )
            try:
                result: Any = trainer.fit()
            except TrainingFailedError as error:
                raise cause_of(error, workers, minutes) from None
            return result.return_value


class Trainer(DataParallelTrainer):
    """Ray Train without its placement group cleaner.

    The cleaner is an actor that asks the dashboard every second whether the controller is alive. It
    prints a warning if there is no dashboard.
    """

    def _create_default_callbacks(self) -> list[Any]:
        callbacks = super()._create_default_callbacks()
        return [c for c in callbacks if type(c).__name__ != "PlacementGroupCleanerCallback"]


@dataclass
class TaskConfig(BackendConfig):
    """The settings of `TFConfigBackend`."""

    task: Task

    @property
    def backend_cls(self) -> type[Backend]:
        """The backend class for these settings."""
        return TFConfigBackend


class TFConfigBackend(Backend):
    """Gives each worker its TF_CONFIG."""

    def on_start(self, worker_group: Any, backend_config: BackendConfig) -> None:
        """Prepare all workers before training begins; an error in a worker is raised."""
        assert isinstance(backend_config, TaskConfig)
        task = backend_config.task
        addresses = worker_group.execute(_prepare, task.folder, task.version)
        for number in range(len(addresses)):
            worker_group.execute_single(number, _set_tf_config, tf_config(addresses, number))


def tf_config(addresses: Sequence[str], number: int) -> str:
    """Return the TF_CONFIG of one of the workers."""
    task = {"type": "worker", "index": number}
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": task})


def _prepare(folder: str, version: str) -> str:
    """Enter the working directory; return the address that this worker will use."""
    check_version(version)
    os.chdir(folder)
    with socket.create_server(("", 0)) as free:
        return f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"


def _set_tf_config(value: str) -> None:
    os.environ["TF_CONFIG"] = value


def _train(settings: dict[str, Task]) -> dict[str, Any]:
    """Train as `training.train.train` does, but raise only errors that Ray can pickle.

    An error that Ray cannot pickle would look like a lost worker.
    """
    import_tensorflow()
    from tfformer.training.train import train

    task = settings["task"]
    try:
        return train(Config.from_dict(task.values), task.run_dir, task.resume, task.init_from)
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:
        raise RuntimeError(repr(error)) from None


def cause_of(error: TrainingFailedError, workers: int, minutes: float) -> Exception:
    """Return the error that ended an attempt.

    A lost worker takes precedence over errors of other workers, which are its consequences. Any
    other error takes precedence over the errors of workers that have lost their peers.
    """
    if isinstance(error, WorkerGroupError):
        causes = [_unpacked(failure) for failure in error.worker_failures.values()]
    elif isinstance(error, ControllerError):
        if isinstance(error.controller_failure, WorkerGroupStartupTimeoutError):
            return TimeoutError(
                f"the Ray cluster has not started {workers} workers within {minutes:g} minutes "
                "(training.wait_minutes); check which machines are missing or busy"
            )
        causes = [_unpacked(error.controller_failure)]
    else:
        causes = [error]
    lost = [cause for cause in causes if isinstance(cause, ray.exceptions.RayError | RayTrainError)]
    if lost:
        return WorkerLostError(textwrap.shorten(reason(lost[0]), 200))
    informative = [cause for cause in causes if not isinstance(cause, ConnectionError)]
    return (informative or causes)[0]


def _unpacked(failure: Exception) -> Exception:
    """Return the error that a worker raised, or Ray's error about a worker."""
    if isinstance(failure, WorkerHealthCheckFailedError):
        failure = failure.health_check_failure
    if isinstance(failure, ray.exceptions.RayTaskError):
        return failure.cause
    return failure
