"""Functions that TensorFlow traces."""

import functools

import tensorflow as tf

# tf.function without AutoGraph. Control flow over tensors is written as tf.while_loop and tf.cond,
# so there is nothing to rewrite; rewriting took most of the time to a first translation.
traced = functools.partial(tf.function, autograph=False)
