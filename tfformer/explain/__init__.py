"""Inspect a trained run, as text and as pictures.

It shows attention, layers and training.
"""
