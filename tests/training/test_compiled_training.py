"""Training compiled by XLA, here on a CPU: losses, settings and number of programs."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import forked
from support.nightly import sampled

import tfformer
from tfformer.config import Config
from tfformer.data.case_variants import case_families
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


def transformer():
    return tfformer.Transformer(20, 20, tie_embeddings="all", **SIZES)


def language_model():
    return tfformer.LanguageModel(20, **SIZES)


def losses(jit_compile, devices=("",), steps=STEPS, make=transformer):
    """Return the losses of Adam's steps on batches with padding."""
    keras.utils.set_random_seed(1)
    dice = np.random.default_rng(1)
    model = make()
    training = {"warmup_steps": 20, "clip_norm": 1.0}
    optimizer = new_optimizer(Config.from_dict({"training": training}), epoch_steps=STEPS)
    is_one = len(devices) == 1
    loss = tfformer.SmoothedCrossEntropy(0.1)
    model.compile(optimizer, loss, jit_compile=jit_compile and is_one)
    model.devices, model.shards = devices, len(devices)
    model.compiles_shards = jit_compile and not is_one
    batches = []
    for _ in range(2):
        source, target, labels = dice.integers(3, 20, (3, *SHAPE)).astype("int32")
        source[0, -2:] = labels[0, -3:] = 0
        inputs = {"source": source, "target": target} if make is transformer else target
        batches.append((inputs, labels, np.float32(labels != 0)))
    return [float(model.train_on_batch(*batches[step % 2])) for step in range(steps)]


@pytest.mark.slow
@pytest.mark.parametrize("make", sampled([language_model, transformer], by_day=[language_model]))
def test_the_losses_of_fifty_steps_are_those_without_xla(make):
    plain = losses(jit_compile=False, make=make)
    np.testing.assert_allclose(losses(jit_compile=True, make=make), plain, rtol=1e-4)
    assert plain[-1] < 0.9 * plain[0]


def save_losses_of_two_devices(file):
    """Train by XLA on two devices."""
    processor = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(processor, logical)
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    np.save(file, losses(True, devices, steps=10))


@pytest.mark.nightly
def test_shards_are_compiled_for_their_devices(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    flags = f"--tf_xla_persistent_cache_directory={cache}"
    file = tmp_path / "losses.npy"
    process = forked.started(save_losses_of_two_devices, file, TF_XLA_FLAGS=flags)
    process.join(600)
    assert process.exitcode == 0
    np.testing.assert_allclose(np.load(file), losses(jit_compile=False, steps=10), rtol=1e-4)
    assert any(cache.iterdir())


@pytest.mark.slow
def test_a_training_compiles_two_programs_and_a_second_start_none(tmp_path):
    """One for the step, one for the validation. XLA would overwrite a program's file by another."""
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
    stored = []
    for run in ("first", "second"):
        command = [sys.executable, "-c", PROGRAM, json.dumps(recipe), str(tmp_path / run)]
        done = subprocess.run(command, env=os.environ | flags, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        stored.append({path.name: path.stat().st_mtime_ns for path in cache.iterdir()})
    assert len(stored[0]) == 2
    assert stored[1] == stored[0]


PIECES = ["<pad>", "<unk>", "<s>", "</s>", "▁a", "▁A", "▁b", "▁B", "c"]
WITH_AVERAGES = {"optimizer": "adamw", "weight_decay": 0.1, "ema_momentum": 0.9}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "training"),
    [
        ("mixed_bfloat16", {"optimizer": "muon", "accumulate_steps": 2}),
        pytest.param("mixed_float16", WITH_AVERAGES, marks=pytest.mark.nightly),
        pytest.param("float32", {"optimizer": "adam", "clip_norm": 1.0}, marks=pytest.mark.nightly),
    ],
)
def test_the_step_is_lowered(dtype, training):
    """XLA compiles the training step for every optimizer, dtype and setting of a recipe."""
    model = tfformer.Transformer(9, 9, dtype=dtype, norm="pre", tie_embeddings="all", **SIZES)
    config = Config.from_dict({"training": {"dtype": dtype} | training})
    optimizer = new_optimizer(config, epoch_steps=10)
    model.compile(optimizer, tfformer.SmoothedCrossEntropy(0.1), jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    families = case_families(PIECES, np.arange(9))
    optimizer.share_rows(model.source_embedding.embeddings, families)
    ids = tf.ones((2, 3), tf.int32)
    batch = ({"source": ids, "target": ids}, ids, tf.ones((2, 3)))
    step = tf.function(model.train_step, jit_compile=True, autograph=False)
    program = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert " dot(" in program
