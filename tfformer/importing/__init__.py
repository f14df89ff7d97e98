"""Checkpoints of other toolkits, made into ordinary run directories.

The room also has the names by which a run goes back.
"""
