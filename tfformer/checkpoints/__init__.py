"""Checkpoints of other toolkits, made into ordinary run directories.

Also the reverse: writing a run as a checkpoint of Marian or Hugging Face.
"""
