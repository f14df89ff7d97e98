"""The SavedModel format, for TensorFlow and TensorFlow Serving."""
