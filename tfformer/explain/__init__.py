"""A trained run seen from inside: attention, alignment, layers and training, as text and pictures."""
