"""Ray Train, which places the workers of a training, and a worker's part of it.

The job and Ray Train's controller are processes that do not train: TensorFlow is loaded by the
workers alone. So their TF_CONFIG is made here, and not by Ray's TensorflowTrainer.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import textwrap
from collections.abc import Sequence
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

from tfformer.config import Config
from tfformer.runtime.ray_cluster import ONE_THREAD, check_version, reason
from tfformer.runtime.tensorflow import import_tensorflow

SETTINGS = {  # of Ray Train
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a machine that is asked to leave is lost
}
OF_WORKERS = ONE_THREAD | {"RAY_TRAIN_ENABLE_PRINT_PATCH": "0"}  # plain lines, not a logger's


@dataclass(frozen=True)
class Task:
    """What the workers train."""

    values: dict[str, Any]  # the recipe's sections
    run_dir: str
    resume: bool
    init_from: str | None
    folder: str  # that the recipe's paths are relative to
    version: str  # of this package where the training was started


class WorkerGoneError(ConnectionError):
    """Ray has lost a worker."""


class TrainingJob:
    """An actor on the head, which holds Ray Train for the command."""

    def fit(self, task: Task, workers: int, gpus: int, minutes: float) -> dict[str, Any]:
        """Train until the end or the first failure, and return the content of result.json.

        Each worker has one processor and `gpus` GPUs. The checkpoints are in the run directory: Ray
        Train's storage may be a local folder, which gets only a marker.

        Raises:
            WorkerGoneError: A worker was lost.
            TimeoutError: The cluster did not start all workers within `minutes`.
            Exception: The error that a worker raised.
        """
        os.environ |= SETTINGS | {"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(60 * minutes)}
        with tempfile.TemporaryDirectory(prefix="tfformer-") as storage:
            run_config: Any = RunConfig(
                storage_path=storage,
                # Whoever called decides which failure is followed by another attempt.
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
    """Ray Train without the cleaner of placement groups.

    That actor asks a dashboard every second whether the controller lives, and prints a warning if
    there is no dashboard.
    """

    def _create_default_callbacks(self) -> list[Any]:
        callbacks = super()._create_default_callbacks()
        return [one for one in callbacks if type(one).__name__ != "PlacementGroupCleanerCallback"]


@dataclass
class TaskConfig(BackendConfig):
    """The settings of `TFConfigBackend`."""

    task: Task

    @property
    def backend_cls(self) -> type[Backend]:
        """The class that has these settings."""
        return TFConfigBackend


class TFConfigBackend(Backend):
    """Gives each worker its TF_CONFIG."""

    def on_start(self, worker_group: Any, backend_config: BackendConfig) -> None:
        """Prepare all workers before the first one trains; an error of a worker is raised."""
        assert isinstance(backend_config, TaskConfig)
        task = backend_config.task
        addresses = worker_group.execute(_prepare, task.folder, task.version)
        for number in range(len(addresses)):
            worker_group.execute_single(number, _set_tf_config, tf_config(addresses, number))


def tf_config(addresses: Sequence[str], number: int) -> str:
    """Return the TF_CONFIG of one of the workers.

    Example:
        >>> tf_config(["host1:2222"], 0)
        '{"cluster": {"worker": ["host1:2222"]}, "task": {"type": "worker", "index": 0}}'
    """
    task = {"type": "worker", "index": number}
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": task})


def _prepare(folder: str, version: str) -> str:
    """Enter the working directory; return the address that this worker will have."""
    check_version(version)
    os.chdir(folder)
    with socket.create_server(("", 0)) as free:
        return f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"


def _set_tf_config(value: str) -> None:
    os.environ["TF_CONFIG"] = value


def _train(settings: dict[str, Task]) -> dict[str, Any]:
    """Train as `training.train.train` does, with errors that Ray can carry.

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

    A lost worker precedes the errors of other workers, which follow from it. Any other error
    precedes those of workers that have lost their peers.
    """
    if isinstance(error, WorkerGroupError):
        causes = [_unpacked(failure) for failure in error.worker_failures.values()]
    elif isinstance(error, ControllerError):
        if isinstance(error.controller_failure, WorkerGroupStartupTimeoutError):
            return TimeoutError(
                f"the Ray cluster has not started {workers} workers within {minutes:g} minutes "
                "(training.wait_minutes); see which machines are gone or busy"
            )
        causes = [_unpacked(error.controller_failure)]
    else:
        causes = [error]
    lost = [one for one in causes if isinstance(one, ray.exceptions.RayError | RayTrainError)]
    if lost:
        return WorkerGoneError(textwrap.shorten(reason(lost[0]), 200))
    others = [one for one in causes if not isinstance(one, ConnectionError)]
    return (others or causes)[0]


def _unpacked(failure: Exception) -> Exception:
    """Return what a worker has raised, or Ray's error about a worker."""
    if isinstance(failure, WorkerHealthCheckFailedError):
        failure = failure.health_check_failure
    if isinstance(failure, ray.exceptions.RayTaskError):
        return failure.cause
    return failure
