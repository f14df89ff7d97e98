"""A training by XLA, here on a processor: its losses and the number of its programs."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

import tfformer
from tfformer.config import Config
from tfformer.training.optimizer import new_optimizer

SIZES = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0}
SHAPE = (6, 5)
STEPS = 50

PROGRAM = """
import json, sys
from tfformer.config import Config
from tfformer.training.train import train
train(Config.from_dict(json.loads(sys.argv[1])), sys.argv[2], report=lambda line: None)
"""


def losses(jit_compile):
    """The losses of Adam's steps on batches with padding."""
    keras.utils.set_random_seed(1)
    dice = np.random.default_rng(1)
    model = tfformer.Transformer(20, 20, tie_embeddings="all", **SIZES)
    training = {"warmup_steps": 20, "clip_norm": 1.0}
    optimizer = new_optimizer(Config.from_dict({"training": training}), epoch_steps=STEPS)
    model.compile(optimizer, tfformer.SmoothedCrossEntropy(0.1), jit_compile=jit_compile)
    batches = []
    for _ in range(2):
        source, target, labels = dice.integers(3, 20, (3, *SHAPE)).astype("int32")
        source[0, -2:] = labels[0, -3:] = 0
        batches.append(({"source": source, "target": target}, labels, np.float32(labels != 0)))
    return [float(model.train_on_batch(*batches[step % 2])) for step in range(STEPS)]


@pytest.mark.slow
def test_the_losses_of_fifty_steps_are_those_without_xla():
    plain = losses(jit_compile=False)
    np.testing.assert_allclose(losses(jit_compile=True), plain, rtol=1e-4)
    assert plain[-1] < 0.9 * plain[0]


@pytest.mark.nightly
def test_a_training_compiles_one_program_and_its_validation_another(tmp_path):
    """XLA stores each program in a file."""
    for language in ("en", "de"):
        rows = ["a b", "c d", "a b c d a b c d"] * 20  # of 4, 5 and 15 tokens
        (tmp_path / f"text.{language}").write_text("\n".join(rows))
    text = [str(tmp_path / "text.en"), str(tmp_path / "text.de")]
    recipe = {
        "model": SIZES,
        "tokenizer": {"vocab_size": 10},
        "data": {"train": text, "valid": text, "batch_tokens": 100, "max_length": 20},
        "training": {"epochs": 1, "jit_compile": True},
    }
    cache = tmp_path / "cache"
    cache.mkdir()
    flags = {"TF_XLA_FLAGS": f"--tf_xla_persistent_cache_directory={cache}"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(recipe), str(tmp_path / "run")]
    done = subprocess.run(command, env=os.environ | flags, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(cache.iterdir())) == 2
