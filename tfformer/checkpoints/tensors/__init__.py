"""Files of tensors: safetensors, PyTorch, shards."""
