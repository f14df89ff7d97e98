"""Batches without a sentence, for every signature of a SavedModel."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf


def check_empty_batches(signatures: Mapping[str, Any]) -> None:
    """Check that each signature accepts a batch of size 0, and each output has that size."""
    for signature in signatures.values():
        _, specs = signature.structured_input_signature
        inputs = {
            name: tf.zeros([0, 3][: spec.shape.rank], spec.dtype) for name, spec in specs.items()
        }
        for output in signature(**inputs).values():
            assert output.shape[0] == 0
