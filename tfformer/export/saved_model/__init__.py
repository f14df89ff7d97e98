"""The format of TensorFlow and TensorFlow Serving."""
