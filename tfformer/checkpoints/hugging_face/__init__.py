"""Checkpoints of Hugging Face: MarianMT, M2M100 and NLLB."""
