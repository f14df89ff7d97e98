"""Marian checkpoints: npz and bin files, their vocabularies and options."""
