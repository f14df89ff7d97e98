"""Processes that train one model together, using TensorFlow's collective operations."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from tfformer import __version__
from tfformer.config import Config
from tfformer.training.cluster import Cluster, Facts, WorkerLostError

T = TypeVar("T")

GRADIENTS, MESSAGES = 1, 2  # groups of devices: the training devices and the CPUs
START_SECONDS = 60  # timeout for TensorFlow's servers after all workers have met
RESTART = "restart every worker, with --resume if the run has begun"
OF_THE_MACHINE = ("folder", "cache")  # settings of `data` that may differ
# Arguments: seconds, message, process. The shell kills the process unless its own standard input is
# closed in time; a thread could not, because TensorFlow's servers hold the GIL while they start.
KILL_LATE = 'timeout "$1" cat; [ $? -ne 124 ] || { echo "$2" >&2; kill -9 "$3"; }'


class Workers:
    """The processes that train one model; here only this process.

    Attributes:
        number: This process's number, from 0; number 0 is the chief.
        count: The number of processes.
        devices: The devices on which this process trains.
    """

    number: int = 0
    count: int = 1

    def __init__(self, devices: Sequence[str] = ("",)) -> None:
        self.devices = tuple(devices)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run directory and validates."""
        return self.number == 0

    def sum(self, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return each tensor's sum over all processes, bit-identical in each process."""
        return tensors

    def first(self, value: T) -> T:
        """Return the chief's value, plain JSON; all processes must call this."""
        return value

    def check_alike(self, facts: Facts) -> None:
        """Raise ValueError unless all processes have the same facts."""

    def report(self) -> str:
        """Return how many processes and devices train, or "" if there is only one."""
        devices = f" on {len(self.devices)} devices" if len(self.devices) > 1 else ""
        return f"{devices} of {self.count} workers" if self.count > 1 else devices

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn TensorFlow's errors about lost workers into one line."""
        yield


class ClusterWorkers(Workers):
    """The connected workers of a cluster; `minutes` is the timeout for another worker.

    `MultiWorkerMirroredStrategy` starts this process's server and the heartbeats between the
    workers. Keras cannot train under it, so the collective operations are called directly. It
    raises ValueError if TensorFlow has already run an operation in this process.
    """

    def __init__(self, cluster: Cluster, minutes: float) -> None:
        self.cluster = cluster
        self.number = cluster.number
        self.count = len(cluster.addresses)
        self.minutes = minutes
        # The key of each shape, equal in all processes because they call in the same order.
        self._numbers: dict[tuple[int, ...], int] = {}
        strategy = _started(cluster)
        super().__init__(strategy.extended.worker_devices)

    def sum(self, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return each float32 tensor's sum over all processes, bit-identical in each process."""
        sizes = [tensor.shape.num_elements() for tensor in tensors]
        flat = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
        sums = tf.split(self._reduced(flat, GRADIENTS), sizes)
        return [tf.reshape(flat_sum, t.shape) for flat_sum, t in zip(sums, tensors, strict=True)]

    def first(self, value: T) -> T:
        """Return the chief's value, plain JSON; all processes must call this."""
        return json.loads(self._gathered(json.dumps(value))[0])

    def check_alike(self, facts: Facts) -> None:
        """Raise ValueError unless all processes have the same facts."""
        everyone = [json.loads(text) for text in self._gathered(json.dumps(facts))]
        self.cluster.check_alike(everyone)

    def _gathered(self, text: str) -> list[str]:
        """Return the texts of all processes, as a sum in which each fills its own row."""
        encoded = np.frombuffer(text.encode(), np.uint8)
        with tf.device("CPU:0"):
            sizes = self._reduced(np.eye(self.count)[self.number] * len(encoded), MESSAGES).numpy()
            rows = np.zeros([self.count, int(sizes.max())])
            rows[self.number, : len(encoded)] = encoded
            rows = self._reduced(rows, MESSAGES).numpy().astype(np.uint8)
        return [row[: int(size)].tobytes().decode() for row, size in zip(rows, sizes, strict=True)]

    def _reduced(self, values: tf.Tensor | np.ndarray, group: int) -> tf.Tensor:
        values = tf.convert_to_tensor(values)
        number = self._numbers.setdefault((group, *values.shape), len(self._numbers) + 1)
        return tf.raw_ops.CollectiveReduceV2(
            input=values,
            group_size=self.count,
            group_key=group,
            instance_key=number,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
            timeout_seconds=60 * self.minutes,
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn TensorFlow's errors about lost workers into a WorkerLostError that names them."""
        try:
            yield
        except tf.errors.DeadlineExceededError:
            raise WorkerLostError(
                f"{self.cluster.named(self.number)} has waited {self.minutes:g} minutes for another"
                f" worker (training.wait_minutes); {RESTART}"
            ) from None
        except tf.errors.OpError as error:
            if isinstance(error, tf.errors.ResourceExhaustedError):
                raise
            gone = ", ".join(map(self.cluster.named, self.cluster.closed()))
            reason = str(error).partition("aborted by: ")[2] or str(error)
            raise WorkerLostError(
                f"{gone or 'another worker'} cannot be reached any more "
                f"({reason.strip().splitlines()[0][:200]}); {RESTART}"
            ) from None


def workers_of(config: Config) -> Workers:
    """Return the workers of a recipe's strategy, connected if there are several.

    They connect before TensorFlow has run anything in the process.

    Raises:
        ValueError: TF_CONFIG is missing, or another worker has another recipe or other versions.
        WorkerLostError: A worker cannot be reached.
    """
    settings = config.training
    if settings.strategy == "multi_worker":
        cluster = Cluster.from_environment()
        facts: dict[str, Any] = {
            f"{section}.{key}": value
            for section, values in config.to_dict().items()
            for key, value in values.items()
            if not (section == "data" and key in OF_THE_MACHINE)
        }
        facts |= {"tfformer": __version__, "tensorflow": tf.__version__, "keras": keras.__version__}
        cluster.check_alike(cluster.gathered(facts, settings.wait_minutes))
        return ClusterWorkers(cluster, settings.wait_minutes)
    if settings.strategy == "mirrored":
        devices = tf.config.list_logical_devices
        return Workers([device.name for device in devices("GPU") or devices("CPU")])
    return Workers()


def _started(cluster: Cluster) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Start this process's TensorFlow server and wait for those of the other workers."""
    name = cluster.named(cluster.number)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        with _killed_after(
            START_SECONDS,
            f"tfformer: {name} has waited {START_SECONDS} seconds for TensorFlow's servers of the "
            "other workers; restart every worker",
        ):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise ValueError(
            f"training.strategy=multi_worker must start before TensorFlow runs anything ({error}); "
            "train in a process of its own"
        ) from None
    except tf.errors.OpError as error:
        raise WorkerLostError(
            f"{name} cannot start its server ({error}); restart every worker"
        ) from None
    finally:
        if threading.current_thread() is threading.main_thread():  # Ray Train uses another
            signal.signal(signal.SIGTERM, on_sigterm)  # TensorFlow's own handler would ignore it


@contextmanager
def _killed_after(seconds: float, message: str) -> Iterator[None]:
    """Kill this process with a message, from another process, if the block takes longer."""
    arguments = ["sh", "-c", KILL_LATE, "sh", str(seconds), message, str(os.getpid())]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE):  # closed at the end of the block
        yield
