"""The decorator for functions that TensorFlow traces."""

import functools

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

# tf.function without AutoGraph. Control flow over tensors is written as tf.while_loop and tf.cond,
# so there is nothing to rewrite; rewriting took most of the time before the first translation.
traced = functools.partial(tf.function, autograph=False)


def is_for_xla() -> bool:
    """Return whether XLA will compile the graph that is being traced.

    TensorFlow has no public function for it; its own operations call this one.
    """
    return bool(control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()))
