"""Compare the rules of generation_config.json with the answers of transformers 5.23."""

import json

import pytest
import tensorflow as tf
from support.marian_checkpoints import FIXTURES, answers, checkpoint, each, edit_json, languages
from support.nightly import sampled

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.tensor_files import read_safetensors
from tfformer.export.pipeline import export_model
from tfformer.inference.graphs import translate_ids
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.special_ids import PAD_ID, START_ID

ANSWERS = json.loads((FIXTURES / "rules.json").read_text(encoding="utf-8"))
CASES = [(name, number) for name, cases in ANSWERS.items() for number in range(len(cases))]
ENGINES_BY_DAY = [("litert", 1), ("ctranslate2", 4)]
BY_DAY = [("B", 1), ("A", 3), ("M2M", 8)]  # n-grams; penalty; words, length and penalty


def with_rules(name, setting, folder):
    """Import a checkpoint that states other search settings."""
    made = checkpoint(name, folder)
    edit_json(made / "generation_config.json", **setting)
    return import_model(made, folder / "run", **languages(name))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), sampled(CASES, BY_DAY))
def test_searches_obey_the_rules_as_transformers_does(tmp_path, name, number):
    """The model gives padding its probability, as Transformers does before it applies the rules."""
    case = ANSWERS[name][number]
    run = with_rules(name, case["setting"], tmp_path)
    translator = Translator.load(run)
    give_padding_its_probability(translator.model, name)
    record = json.loads((run / "imported.json").read_text(encoding="utf-8"))
    ids_of_rows = {row: n for n, row in enumerate(record["source"]["rows"]) if n != START_ID}
    rows = [[ids_of_rows[row] for row in ids] for ids in answers(name).texts["source_ids"][:8]]
    source = tf.ragged.constant(rows, tf.int32).to_tensor()
    for size, wanted in case["found"].items():
        hypotheses = translate_ids(
            translator.model,
            source,
            translator.max_length,
            translator.decoding.replace(beam_size=int(size)),
            first_token=translator.tokenizers.target.prefix_id,
        )
        for n, (ids, score) in enumerate(wanted):
            best = hypotheses.ids[n, 0, : hypotheses.lengths[n, 0]].numpy()
            assert [record["target"]["rows"][number] for number in best] == ids
            if score is not None:
                assert float(hypotheses.scores[n, 0]) == pytest.approx(score, abs=1e-5)


def give_padding_its_probability(model, name):
    """Undo the bias that the import sets; Marian's checkpoints forbid padding as a word."""
    stored = read_safetensors(FIXTURES / name / "model.safetensors").get("final_logits_bias")
    bias = model.output_bias.numpy()
    bias[PAD_ID] = 0 if stored is None else stored[0, -1]  # the last row of A and B
    model.output_bias.assign(bias)
    if stored is not None:
        rules = model.dialect.rules
        rules = rules.replace(bad_words=[[PAD_ID], *rules.bad_words])
        model.dialect = model.dialect.replace(rules=rules)


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("name", each(["A", "M2M"], by_day=["A"]))
@pytest.mark.parametrize(
    ("format", "beam_size"),
    sampled([("litert", 1), ("litert", 4), ("ctranslate2", 4), ("saved_model", 4)], ENGINES_BY_DAY),
)
def test_every_engine_obeys_the_rules(tmp_path, name, format, beam_size):
    """The export compares greedy and beam search with the run's.

    A SavedModel contains the run's search, so its test is nightly.
    """
    setting = {
        "no_repeat_ngram_size": 2,
        "repetition_penalty": 1.2,
        "min_length": 8,
        "bad_words_ids": [[20], [30, 40]],
    }
    run = with_rules(name, setting, tmp_path)
    samples = answers(name).texts["sentences"][:8]
    version = export_model(run, tmp_path / "out", format, samples=samples, beam_size=beam_size)
    parity = json.loads((version / "manifest.json").read_text(encoding="utf-8"))["parity"]
    assert {question["identical"] for question in parity.values()} == {8}


def test_rules_are_a_part_of_the_dialect(tmp_path):
    """`min_length` counts the start token; the unknown token has a separate setting."""
    words = [[117], [0], [1], [5, 9]]  # padding, the end, the unknown token, two pieces
    setting = {"min_length": 5, "no_repeat_ngram_size": 3, "bad_words_ids": words}
    dialect = Run.open(with_rules("A", setting, tmp_path)).config.model.dialect
    assert not dialect.allow_unknown
    assert dialect.rules.to_dict() == {
        "min_length": 4,
        "no_repeat_ngram_size": 3,
        "bad_words": [[7, 11]],
        "beam_scores": "renormalized",
        "start_token": 0,
    }


def test_a_wrong_value_of_a_rule_is_named_with_its_file(tmp_path):
    with pytest.raises(ValueError, match=r"config\.json: repetition_penalty=0 must be"):
        with_rules("A", {"repetition_penalty": 0}, tmp_path)
