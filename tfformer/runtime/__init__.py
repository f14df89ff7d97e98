"""How TensorFlow and Keras start: imported quietly, with the classes of the package registered."""
