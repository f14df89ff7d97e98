"""A trained run seen from inside: attention, alignment, its layers and its training, as text and pictures."""
