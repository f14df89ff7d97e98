"""Starts TensorFlow and Keras: quiet imports, devices, registration of the package's classes."""
