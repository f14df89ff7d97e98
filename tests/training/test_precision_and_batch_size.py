"""Settings that a recipe leaves open depend on the devices, here a made-up list."""

import os
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tfformer.config import Config
from tfformer.training.precision_and_batch_size import describe, settled

OPEN = Config()


@pytest.fixture
def with_gpus(monkeypatch):
    """Make TensorFlow list GPUs with these compute capabilities."""

    def see(*capabilities):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
        gpus = [
            SimpleNamespace(name=f"/physical_device:GPU:{number}", capability=capability)
            for number, capability in enumerate(capabilities)
        ]
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: gpus)
        monkeypatch.setattr(
            tf.config.experimental,
            "get_device_details",
            lambda gpu: {"compute_capability": gpu.capability, "device_name": "Made Up 1"},
        )

    return see


def chosen(config):
    settings = config.training
    return settings.dtype, settings.jit_compile, config.data.batch_tokens


def test_only_a_cpu_divides_a_batch_into_shards(with_gpus):
    config = Config.from_dict({"training": {"shards": 2}})
    with_gpus()
    before = settled(config)
    assert before.training.shards == 2
    assert describe(before).endswith(" tokens per batch, 2 shards")
    with_gpus((9, 0))
    assert settled(config).training.shards == settled(config, before).training.shards == 1


@pytest.mark.parametrize(
    ("capabilities", "choice"),
    [
        ([], ("float32", False, 4096)),
        ([(7, 5)], ("float32", True, 24576)),
        ([(8, 0)], ("mixed_bfloat16", True, 24576)),
        ([(12, 0)], ("mixed_bfloat16", True, 24576)),
        ([(9, 0), (7, 0)], ("float32", True, 24576)),  # the slower one is not left out
    ],
)
def test_the_devices_decide_what_the_recipe_leaves_open(with_gpus, capabilities, choice):
    with_gpus(*capabilities)
    assert chosen(settled(OPEN)) == choice
    assert settled(settled(OPEN)) == settled(OPEN)


def test_what_the_recipe_says_is_kept(with_gpus):
    with_gpus((9, 0))
    values = {
        "training": {"dtype": "float32", "jit_compile": False},
        "data": {"batch_tokens": 500},
    }
    assert chosen(settled(Config.from_dict(values))) == ("float32", False, 500)


def test_several_gpus_are_compiled_for_too(with_gpus):
    with_gpus((9, 0), (9, 0))
    config = Config.from_dict({"training": {"strategy": "mirrored"}})
    assert chosen(settled(config)) == ("mixed_bfloat16", True, 24576)


def test_a_batch_holds_the_longest_sentence(with_gpus):
    with_gpus()
    assert settled(Config.from_dict({"data": {"max_length": 9000}})).data.batch_tokens == 9000


def test_a_resumed_run_keeps_what_was_chosen_on_another_machine(with_gpus):
    with_gpus((9, 0))
    before = settled(OPEN)
    with_gpus()
    assert settled(OPEN, before) == before != settled(OPEN)


def test_one_line_says_what_was_chosen(with_gpus):
    with_gpus((9, 0))
    line = "on Made Up 1: mixed_bfloat16, compiled by XLA, 24,576 tokens per batch, 1 shard"
    assert describe(settled(OPEN)) == line
    with_gpus()
    line = "on 2 processor cores: float32, not compiled, 4,096 tokens per batch, 1 shard"
    assert describe(settled(OPEN)) == line
