"""Transformers' loop over a text: batches of like length, greedy, with one thread.

python transformers_loop.py EXPORT OUTPUT INPUT...   in an environment with transformers and torch
"""

import sys
from pathlib import Path

import torch
from transformers import MarianMTModel, MarianTokenizer

BATCH = 64  # sentences, as `translate --workers` takes them


@torch.inference_mode()
def main(folder: Path, output: Path, inputs: list[Path]) -> None:
    """Translate files with the checkpoint of a folder."""
    torch.set_num_threads(1)
    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = MarianMTModel.from_pretrained(folder).eval()
    for file in inputs:
        lines = file.read_text(encoding="utf-8").splitlines()
        rows = tokenizer(lines).input_ids
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        texts = [""] * len(lines)
        for start in range(0, len(order), BATCH):
            numbers = order[start : start + BATCH]
            batch = tokenizer.pad({"input_ids": [rows[n] for n in numbers]}, return_tensors="pt")
            found = model.generate(**batch, num_beams=1, do_sample=False)
            decoded = tokenizer.batch_decode(found, skip_special_tokens=True)
            for number, text in zip(numbers, decoded, strict=True):
                texts[number] = text
        (output / file.name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(file) for file in sys.argv[3:]])
