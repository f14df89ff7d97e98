"""Checkpoints of Marian: npz and bin files, their vocabularies and options."""
