"""The tables of the kinds of model: a row each, under the same keys."""

import typing

import pytest

from tfformer.config import ModelConfig
from tfformer.export import tasks as export_tasks
from tfformer.inference.tasks import TASKS, task_of
from tfformer.run_directory import MODEL_KINDS, Run, new_model


def test_each_kind_has_its_row_in_each_table():
    kinds = set(typing.get_args(typing.get_type_hints(ModelConfig)["architecture"]))
    assert set(MODEL_KINDS) == kinds
    assert set(TASKS) == kinds
    assert set(export_tasks.TASKS) == kinds


def test_an_evaluator_measures_bleu_as_the_recipe_says(tiny_run):
    """Untrained models have neither BLEU nor chrF above 0.

    The text is of one word that is never written.
    """
    run = Run.open(tiny_run)
    model = new_model(run.config.model, run.tokenizers)
    config = run.config
    measured = (
        task_of(config)
        .evaluator(model, run.tokenizers, config)
        .measure([("The cat sleeps.", "0" * 40)] * 5)
    )
    assert measured.figures["val_bleu"] == pytest.approx(0, abs=0.5)
    assert len(measured.samples) == 4
    assert measured.samples[0].startswith("The cat sleeps.\n\n> ")
