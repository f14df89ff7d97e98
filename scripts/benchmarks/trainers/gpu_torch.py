"""Measure a training step of torch.nn.Transformer, with the arguments of gpu_tfformer.py.

Instead of a preset, it gets the shape as JSON.
"""

import json
import sys
import time

START = time.perf_counter()

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch_trainer import Translation  # noqa: E402

ROUNDS = 3


def main() -> None:
    """Train, and print the figures as a line of JSON."""
    shape, dtype, way = sys.argv[1:4]
    rows, vocab_size, length, steps = map(int, sys.argv[4:])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = Translation(vocab_size, **json.loads(shape) | {"dropout": 0.1})
    model = model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    measure = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
    called = torch.compile(model) if way == "compiled" else model
    source, target, labels = (
        torch.randint(4, vocab_size, (rows, length), device=device) for _ in range(3)
    )

    def step() -> torch.Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = called(source, target)
        loss = measure(logits.float().flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def seconds(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            loss = step()
        losses.append(loss.item())  # waits for the device
        return time.perf_counter() - start

    losses: list[float] = []
    seconds(1)
    first = time.perf_counter() - START
    print(json.dumps({"first_update_seconds": round(first, 1)}), flush=True)
    sys.stdin.readline()  # until the other programs are ready
    took = min(seconds(steps) for _ in range(ROUNDS)) / steps
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    figures = {
        "step_ms": round(took * 1e3, 1),
        "target_tokens_per_second": round(rows * length / took),
        "peak_gib": round(peak / 2**30, 1),
        "losses": [round(loss, 3) for loss in losses],
    }
    print(json.dumps(figures), flush=True)


main()
