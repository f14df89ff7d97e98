"""Hugging Face checkpoints: MarianMT, M2M100 and NLLB."""
