"""Import other toolkits' checkpoints as ordinary run directories.

Also export a run as a Marian or Hugging Face checkpoint.
"""
