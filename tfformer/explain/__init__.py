"""A trained run seen from inside: attention, alignment, layers, training; text and pictures."""
