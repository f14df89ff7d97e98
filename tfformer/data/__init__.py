"""Text to batches of ids: sources, tokenizers, encoding, batches. Knows no model."""
