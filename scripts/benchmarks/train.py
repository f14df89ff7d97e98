"""Compare training with keras-hub, Keras and PyTorch.

The figures are tokens per second, memory, and time to the first step. Each engine runs in a
separate process with two threads, and trains the same shape on the same batches of a real corpus.
PyTorch needs a separate environment with the packages torch and numpy. In each round the engines
train in turn, while the others wait. All engines use Adam, label smoothing, dropout and tied
embeddings. The loss and the layers with dropout differ between frameworks; RESULTS.md names them.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._engine_process import EngineProcess
from benchmarks._machine import spread, spread_text
from benchmarks.trainers.process import THREADS

TRAINERS = Path(__file__).with_name("trainers")
OURS = {  # engine -> its program in trainers/, and the arguments of the program
    "tfformer float32": ("keras_trainer.py", "tfformer", "float32"),
    "tfformer bfloat16": ("keras_trainer.py", "tfformer", "mixed_bfloat16"),
}
PEERS = {
    "keras-hub float32": ("keras_trainer.py", "keras-hub", "float32"),
    "keras-hub bfloat16": ("keras_trainer.py", "keras-hub", "mixed_bfloat16"),
    "keras-hub bfloat16, our loss": (
        *("keras_trainer.py", "keras-hub", "mixed_bfloat16"),
        "our_loss",
    ),
    "keras-hub float32 XLA": ("keras_trainer.py", "keras-hub", "float32", "jit_compile"),
    "tutorial float32": ("keras_trainer.py", "tutorial", "float32"),
    "tutorial bfloat16": ("keras_trainer.py", "tutorial", "mixed_bfloat16"),
    "torch float32": ("torch_trainer.py", "float32"),
    "torch bfloat16": ("torch_trainer.py", "bfloat16"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument(
        "--data", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="files of a corpus"
    )
    parser.add_argument("--preset", default="tiny", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=4000, help="pieces of both languages")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="tokens per batch")
    parser.add_argument("--batches", type=int, default=8, help="number of batches to train on")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--torch", default="", help="the Python program that imports torch")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return target tokens per second of every engine.

    Returns:
        `tokens_per_second` of each round, their `spread` (minimum, median and maximum), and
        `ratios`, the spread of the ratio of our faster precision to every engine in each round.
    """
    torch = Path(options.torch).absolute()
    for name in options.peers:
        if PEERS[name][0] == "torch_trainer.py" and not torch.is_file():
            raise SystemExit(f"{name} needs --torch PYTHON, a Python that imports torch and numpy")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = write_work(folder, options)
        names = [*OURS, *options.peers]
        engines = {name: _engine(name, folder, torch) for name in names}
        speeds: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(options.rounds):
            for name, engine in engines.items():
                speeds[name].append(round(tokens / engine.work("train")["seconds"], 1))
        about = {name: engine.stop() for name, engine in engines.items()}
    for name, rounds in speeds.items():
        memory = about[name]["peak_memory_megabytes"]
        first = about[name]["first_step_seconds"]
        text = spread_text(rounds, "target tokens/s")
        print(f"{name:29} {text}, {memory:6} MB, first step {first:6.1f} s", flush=True)
    return {
        "preset": options.preset,
        "target_tokens": tokens,
        "engines": about,
        "tokens_per_second": speeds,
        "spread": {name: spread(rounds) for name, rounds in speeds.items()},
        "ratios": _ratios(speeds),
    }


def _ratios(speeds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the spread of the ratio of our faster precision to every engine in each round."""
    ours = max(OURS, key=lambda name: statistics.median(speeds[name]))
    ratios = {}
    for name, rounds in speeds.items():
        both = zip(speeds[ours], rounds, strict=True)
        ratios[f"{ours} / {name}"] = spread([round(a / b, 2) for a, b in both])
    return ratios


def real_batches(options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the first batches of a shuffled epoch of the corpus, see `Batches.batch`."""
    from tfformer.data.batches import Batches
    from tfformer.data.encoding import encode_text
    from tfformer.data.sources import read_pairs
    from tfformer.data.tokenizers import Tokenizer

    pairs = list(read_pairs(options.data))
    sentences = (sentence for pair in pairs for sentence in pair)
    tokenizer = Tokenizer.train(sentences, options.vocab_size)
    text = encode_text(pairs, (tokenizer, tokenizer), max_length=128)
    batches = Batches(text, options.batch_tokens, seed=1)
    return [batches.batch(number) for number in range(options.batches)]


def write_work(folder: Path, options: argparse.Namespace) -> int:
    """Write the batches and the shape for all engines; return the number of target tokens."""
    import numpy as np

    from tfformer.config import PRESETS

    batches = real_batches(options)
    arrays: dict[str, Any] = {}
    for number, (inputs, labels, _) in enumerate(batches):
        named = {"source": inputs["source"], "target": inputs["target"], "labels": labels}
        arrays |= {f"{name}_{number}": ids for name, ids in named.items()}
    np.savez(folder / "batches.npz", **arrays)
    shape = {"dropout": 0.3} | PRESETS[options.preset]
    shape.pop("norm", None)  # every engine is post-norm
    shape |= {"vocab_size": options.vocab_size, "label_smoothing": 0.1}
    (folder / "shape.json").write_text(json.dumps(shape), encoding="utf-8")
    return int(sum(weights.sum() for *_, weights in batches))


def _engine(name: str, folder: Path, torch: Path) -> EngineProcess:
    """Start the process of an engine, which trainers/process.py runs."""
    script, *arguments = (OURS | PEERS)[name]
    python = torch if script == "torch_trainer.py" else Path(sys.executable)
    command = [python, TRAINERS / script, folder, *arguments]
    engine = EngineProcess(name, command, {"OMP_NUM_THREADS": str(THREADS)})
    print(f"{name:29} {engine.about}", flush=True)
    return engine
