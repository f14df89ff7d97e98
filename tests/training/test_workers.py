"""What the workers of a cluster say of each other; no cluster is started here."""

from types import SimpleNamespace

import pytest
import tensorflow as tf
from support.ports import free_addresses

from tfformer.training.cluster import Cluster, WorkerLostError
from tfformer.training.workers import ClusterWorkers


def test_a_worker_that_has_waited_too_long_says_so():
    waiting = SimpleNamespace(cluster=Cluster(free_addresses(2), 1), number=1, minutes=0.5)
    message = r"^worker 1 \(.*\) has waited 0.5 minutes for another worker \(training.wait_min"
    with pytest.raises(WorkerLostError, match=message), ClusterWorkers.explained(waiting):
        raise tf.errors.DeadlineExceededError(None, None, "too late")
