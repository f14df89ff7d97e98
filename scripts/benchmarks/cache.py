"""A corpus of millions of pairs: encoding, files, memory of a training, start of a resume.

The corpus is made up: every other pair is a real one, the rest are two of them joined, all drawn by
a seed. Each step is a process of its own, which tells its seconds and its peak of memory: encoding
on one core and on all, a few steps of training on all pairs and on the first of them, and a resume.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

VALID = 16  # pairs
RECIPE: dict[str, dict[str, Any]] = {
    "model": {"preset": "tiny", "num_layers": 1},
    "data": {"valid": "valid.tsv", "max_length": 64, "batch_tokens": 2048},
    "training": {"epochs": 1, "epoch_steps": 30},
    "decoding": {"beam_size": 1},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--text", required=True, help="a TSV file of real pairs, which are drawn")
    parser.add_argument("--folder", required=True, help="takes the corpus, the caches and the runs")
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--few", type=int, default=50_000, help="pairs of the training beside it")
    parser.add_argument(
        "--vocab-size", type=int, default=8000, help="learned from 20,000 sentences"
    )


def measure(options: argparse.Namespace) -> dict:
    """Return seconds, peaks of memory and the size of the files.

    Returns:
        Under `steps` by name the `seconds`, `processor_seconds` and `peak_mb`; of encoding the
        `bytes_a_pair` of the files too; of a training the seconds to its `first_step`.

    Raises:
        ValueError: The folder is not empty.
    """
    folder = Path(options.folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"--folder {folder} is not empty; give a new one, as caches would be met")
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(options.text, folder, options.pairs, options.few)
    measured = {}

    def step(name: str, verb: str, **work: Any) -> None:
        cores = work.pop("cores", len(os.sched_getaffinity(0)))
        command = [sys.executable, __file__, json.dumps({"verb": verb, "cores": cores} | work)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=folder)
        measured[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, measured[name], flush=True)

    vocabulary = {"vocab_size": options.vocab_size, "max_sentences": 20_000}

    def recipe(train: str, cache: str, epochs: int = 1) -> dict[str, Any]:
        return {
            **RECIPE,
            "tokenizer": vocabulary,
            "data": RECIPE["data"] | {"train": train, "cache": cache},
            "training": RECIPE["training"] | {"epochs": epochs},
        }

    step("vocabulary, first run", "train", recipe=recipe("few.tsv", "few-cache"), run="first")
    for cores in sorted({1, len(os.sched_getaffinity(0))}):
        cached = recipe("many.tsv", f"cache-{cores}")
        step(f"encode, {cores} cores", "encode", recipe=cached, cores=cores)
    few = recipe("few.tsv", "few-cache")
    many = recipe("many.tsv", "cache-1")
    step("train few", "train", recipe=few, run="few", initial="first")
    step("train many", "train", recipe=many, run="many", initial="first")
    step("resume many", "train", recipe=recipe("many.tsv", "cache-1", 2), run="many", resume=True)
    return {"pairs": options.pairs, "few": options.few, "steps": measured}


def write_texts(text: str, folder: Path, pairs: int, few: int, seed: int = 1) -> None:
    """Write made-up pairs as `many.tsv`, the first of them as `few.tsv`, real ones as `valid.tsv`.

    Args:
        text: A TSV file of real pairs.
        folder: Takes the files.
        pairs: The number of pairs of `many.tsv`.
        few: The number of pairs of `few.tsv`.
        seed: Of the draws.
    """
    from tfformer.data.sources import read_pairs

    real = ["\t".join(pair) + "\n" for pair in read_pairs(text)]
    random = np.random.default_rng(seed)
    with (folder / "many.tsv").open("w", encoding="utf-8") as many:
        for drawn in random.integers(len(real), size=(pairs // 2, 3)).tolist():
            one, first, second = (real[number] for number in drawn)
            sides = zip(first[:-1].split("\t"), second[:-1].split("\t"), strict=True)
            many.write(one + "\t".join(map(" ".join, sides)) + "\n")
    with (folder / "many.tsv").open(encoding="utf-8") as many:
        (folder / "few.tsv").write_text("".join(itertools.islice(many, few)), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(real[:VALID]), encoding="utf-8")


# A step, in a process of its own


def encode(work: dict[str, Any]) -> dict[str, Any]:
    """Write the cache of a recipe with the vocabulary of the first run.

    Args:
        work: A step's `recipe`.
    """
    from tfformer.config import Config
    from tfformer.run_directory import Run
    from tfformer.training.training_data import TrainingData

    config = Config.from_dict(work["recipe"])
    data = TrainingData.read(config, Run.open("first"), report=print)
    cache = Path(config.data.cache or "")
    total = sum(file.stat().st_size for file in cache.rglob("*.npy"))
    return {"bytes_a_pair": round(total / data.train.text.kept, 2)}


def train(work: dict[str, Any]) -> dict[str, Any]:
    """Train by a recipe, and take the time to the first step.

    Args:
        work: A step's `recipe` and `run`; `resume` or the run `initial` to start from.
    """
    from tfformer.config import Config
    from tfformer.training import train as training

    begin = time.monotonic()
    first_step: list[float] = []

    class FirstStep(training.StepCounter):
        """Takes the time of the first step's end."""

        def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
            super().on_train_batch_end(batch, logs)
            if not first_step:
                first_step.append(time.monotonic() - begin)

    training.StepCounter = FirstStep  # type: ignore[misc]
    config = Config.from_dict(work["recipe"])
    training.train(config, work["run"], work.get("resume", False), work.get("initial"))
    return {"first_step": round(first_step[0], 1)}


def main(work: dict[str, Any]) -> None:
    """Do one step and print its measures as JSON.

    Args:
        work: What to do.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: work["cores"]])
    begin = time.monotonic()
    measured = {"encode": encode, "train": train}[work["verb"]](work)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "seconds": round(time.monotonic() - begin, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
    }
    print(json.dumps(found | measured))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
