"""From text to batches of ids: sources, tokenizers, encoding, batches. Independent of the model."""
