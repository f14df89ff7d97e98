"""Train torch.nn.Transformer."""

import math
from typing import Any

import process
import torch
from torch import nn


class Translation(nn.Module):
    """torch.nn.Transformer with tied embeddings and the paper's positions."""

    def __init__(
        self,
        vocab_size: int,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            d_model, num_heads, num_layers, num_layers, d_ff, dropout, batch_first=True
        )
        angles = torch.arange(512)[:, None] * torch.exp(
            -math.log(10000) / d_model * torch.arange(0, d_model, 2)
        )
        self.register_buffer(
            "positions", torch.stack([angles.sin(), angles.cos()], -1).reshape(512, d_model)
        )

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the vectors (B, T, D) of ids (B, T), with positions."""
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the logits (B, T, V) of the ids (B, S) and (B, T)."""
        padding = source == 0
        look_ahead = nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], device=target.device
        )
        masks = {
            "src_key_padding_mask": padding,
            "memory_key_padding_mask": padding,
            "tgt_mask": look_ahead,
        }
        x = self.transformer(self.embed(source), self.embed(target), tgt_is_causal=True, **masks)
        return x @ self.embedding.weight.T


def build(shape: dict[str, Any], dtype: str) -> tuple[process.Step, process.Count]:
    """Return the training step, and a function that counts the parameters."""
    torch.set_num_threads(process.THREADS)
    shape = dict(shape)
    smoothing = shape.pop("label_smoothing")
    model = Translation(**shape).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, betas=(0.9, 0.98), eps=1e-9, fused=True)
    measure = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=smoothing)

    def step(batch: process.Batch) -> float:
        source, target, labels = (torch.from_numpy(ids).long() for ids in batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = model(source, target)
        loss = measure(logits.float().flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, lambda: sum(weight.numel() for weight in model.parameters())


if __name__ == "__main__":
    process.run(build)
