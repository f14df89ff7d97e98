"""The best weights are kept; a model that knows only token frequencies is reported."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.number_corpus import write_number_corpus
from support.numpy_layers import smoothed_cross_entropy

from tfformer.config import Config
from tfformer.training.train import train
from tfformer.training.validation import Validation, frequency_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_no_constant_prediction_has_a_smaller_loss(smoothing):
    labels = np.array([[1, 2, 2, 4, 4, 4]])
    counts = np.bincount(labels[0], minlength=6)
    least = frequency_loss(counts, smoothing)
    shares = (1 - smoothing) * counts / counts.sum() + smoothing / counts.size

    def loss(logits):
        logits = np.broadcast_to(logits, (*labels.shape, counts.size))
        return np.mean(smoothed_cross_entropy(logits, labels, smoothing))

    best = np.log(np.maximum(shares, 1e-30))
    assert least == pytest.approx(loss(best), rel=1e-6)
    for seed in range(20):
        assert loss(best + np.random.default_rng(seed).normal(size=counts.size)) > least


@pytest.mark.slow
def test_a_training_that_learns_nothing_says_so_once(tmp_path):
    write_number_corpus(tmp_path, {"train": 40, "valid": 20}, greatest=10)
    values = {
        "model": {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 16},
        "tokenizer": {"vocab_size": 40},
        "data": {
            "train": ["train.en", "train.de"],
            "valid": ["valid.en", "valid.de"],
            "folder": str(tmp_path),
        },
        "training": {"epochs": 2, "learning_rate": 1e-9, "schedule": "inverse_sqrt"},
    }
    lines = []
    train(Config.from_dict(values), tmp_path / "run", report=lines.append)
    assert sum("no better than predicting tokens by frequency" in line for line in lines) == 1


def test_a_resumed_run_keeps_better_weights(monkeypatch):
    saved = []
    history = [{"val_bleu": 9.0, "val_chrf": 1.0}]
    run = SimpleNamespace(history=lambda: history, save_weights=saved.append)
    validation = Validation(run, Config(), None, None, [], print)
    validation.set_model(SimpleNamespace(stop_training=False))
    validation.snapshot = "snapshot"
    for bleu, count in ((7.0, 0), (9.5, 1), (9.4, 1)):
        figures = {"val_loss": 1.0, "val_bleu": bleu, "val_chrf": 1.0}
        monkeypatch.setattr(validation, "_figures", lambda _, figures=figures: figures)
        validation.on_epoch_end(0)
        assert len(saved) == count
