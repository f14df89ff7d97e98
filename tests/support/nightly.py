"""The choice between tests of the day and nightly tests, which only scripts/nightly.sh runs."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], by_day: Collection[Any]) -> list:
    """Return values, or tuples, as parameters of a test; those outside `by_day` are nightly."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else [case]),
            marks=[pytest.mark.nightly] * (case not in by_day),
        )
        for case in cases
    ]


def is_night() -> bool:
    """Return whether a script of the night runs the tests."""
    return os.environ.get("HYPOTHESIS_PROFILE") == "nightly" or "FAULTS_TABLE" in os.environ


def leave_graphs_as_traced() -> None:
    """Make TensorFlow run each graph without optimising it first, except in nightly tests.

    A training of a few steps then takes a quarter less processor time. Command lines and exports in
    other processes are optimised, too.
    """
    if is_night():
        return
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
