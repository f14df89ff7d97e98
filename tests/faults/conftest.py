"""A small corpus, its recipe, and a process whose file operations fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.faults import record_evils
from support.number_corpus import write_number_corpus

from tfformer.config import Config


@pytest.fixture(scope="session", autouse=True)
def evils() -> Iterator[None]:
    """Write the last lines of the table at the end."""
    yield
    record_evils()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """A folder with 60 pairs to train with and 4 to validate with."""
    folder = tmp_path_factory.mktemp("corpus")
    write_number_corpus(folder, {"train": 60, "valid": 4}, greatest=4)
    return folder


@pytest.fixture(scope="session")
def smallest_config(corpus) -> Config:
    """A recipe that trains on the corpus in a few seconds."""
    return Config.from_dict(
        {
            "model": {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 16},
            "tokenizer": {"vocab_size": 24},
            "data": {
                "train": ["train.en", "train.de"],
                "valid": ["valid.en", "valid.de"],
                "folder": str(corpus),
                "max_length": 20,
                "batch_tokens": 100,
            },
            "training": {"epochs": 2, "warmup_steps": 10, "ema_momentum": 0.9},
        }
    )


@pytest.fixture(scope="session")
def faulty(tmp_path_factory):
    """A process for command lines with faults; it needs gcc."""
    from support.faulty_process import FaultyProcess

    process = FaultyProcess(tmp_path_factory.mktemp("faulty"))
    yield process
    process.close()
