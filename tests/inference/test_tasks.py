"""The tables of the kinds of model: a row each, under the same keys."""

import dataclasses
import typing

import pytest
import sacrebleu

from tfformer.config import ModelConfig
from tfformer.data import phrasebook
from tfformer.export import tasks as export_tasks
from tfformer.inference.tasks import TASKS, task_of
from tfformer.inference.translator import Translator
from tfformer.run_directory import MODEL_KINDS, Run


def test_each_kind_has_its_row_in_each_table():
    kinds = set(typing.get_args(typing.get_type_hints(ModelConfig)["architecture"]))
    assert set(MODEL_KINDS) == kinds
    assert set(TASKS) == kinds
    assert set(export_tasks.TASKS) == kinds


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["13a", "char"])
def test_an_evaluator_measures_bleu_as_the_recipe_says(tiny_run, tokenizer):
    run = Run.open(tiny_run)
    training = dataclasses.replace(run.config.training, bleu_tokenizer=tokenizer)
    config = dataclasses.replace(run.config, training=training)
    rows = [(pair.source, pair.target) for pair in phrasebook.pairs("test")[:8]]
    measured = task_of(config).evaluator(run.load_model(), run.tokenizers, config).measure(rows)
    sources, targets = (list(side) for side in zip(*rows, strict=True))
    texts = Translator.load(tiny_run).translate(sources, beam_size=1)
    bleu = sacrebleu.corpus_bleu(texts, [targets], tokenize=tokenizer).score
    assert measured.figures["val_bleu"] == pytest.approx(bleu)
    assert measured.samples == [f"{sources[n]}\n\n> {texts[n]}" for n in range(0, 8, 2)]
