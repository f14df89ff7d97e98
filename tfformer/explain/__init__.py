"""A trained run seen from inside, in text and pictures.

It shows attention, alignment, layers and training.
"""
