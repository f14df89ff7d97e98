"""Compare the components of a run with Keras' count and the paper's formula."""

import shutil
from pathlib import Path

import pytest
import yaml

from tfformer.cli.main import main
from tfformer.config import Config
from tfformer.explain.inspection import describe, model_components
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run

SIZES = {"num_layers": 2, "num_decoder_layers": 3, "d_model": 16, "num_heads": 2, "d_ff": 24}


def total(model: Transformer) -> int:
    return sum(component.copies * component.parameters for component in model_components(model))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "use_bias": False},
        {"tie_embeddings": "all", "dialect": {"output_bias": True}},
        {"tie_embeddings": "none", "num_decoder_layers": 1},
    ],
)
def test_no_weight_is_left_out_or_counted_twice(changes):
    model = Transformer(11, 11, **(SIZES | changes))
    assert (
        total(model) == model.count_params() == sum(weight.size for weight in model.get_weights())
    )


def test_the_parts_are_those_of_the_paper():
    """Section 3, by hand.

    Attention has four d x d matrices, a feed-forward two, all with biases.
    """
    d, d_ff, vocabulary = 16, 24, 11
    model = Transformer(vocabulary, vocabulary, **SIZES, tie_embeddings="all")
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert total(model) == vocabulary * d + 2 * encoder + 3 * decoder
    components = {component.name: component for component in model_components(model)}
    assert components["source, target, output embedding"].shapes == ((11, 16),)
    assert components["encoder feed_forward inner"].shapes == ((16, 24), (24,))
    assert components["encoder feed_forward inner"].copies == 2
    assert components["decoder cross_attention key_value"].shapes == ((16, 32), (32,))
    assert components["decoder cross_attention key_value"].copies == 3


def test_a_language_model_is_described_too():
    model = LanguageModel(11, num_layers=3, d_model=16, num_heads=2, d_ff=24)
    components = {component.name: component for component in model_components(model)}
    assert total(model) == model.count_params()
    assert components["input, output embedding"].shapes == ((11, 16),)
    assert components["stack feed_forward inner"].copies == 3


def test_the_text_holds_the_recipe_the_score_and_every_file(tiny_run):
    run = Run.open(tiny_run)
    text = describe(run)
    recipe = yaml.safe_load(text.split("Recipe\n")[1].split("\n\nVocabulary")[0])
    assert Config.from_dict(recipe) == run.config
    best = run.history()[-1]
    assert f"finished; 5 epochs, {best['step']:,} steps, " in text
    assert f"best validation BLEU {best['val_bleu']:.2f}, after epoch 5" in text
    assert "500 pieces, shared by source and target" in text
    count = run.load_model().count_params()
    assert f"{count:,}\n  {4 * count / 1000:.1f} kB in float32" in text
    for path in tiny_run.iterdir():
        assert not path.is_file() or f"  {path.name} " in text


def test_a_run_that_has_not_got_far_is_described_too(tiny_run, tmp_path, capsys):
    run = tmp_path / "run"
    absent = shutil.ignore_patterns("resume.npz", "result.json", "best.weights.h5")
    shutil.copytree(tiny_run, run, ignore=absent)
    (run / "metrics.jsonl").write_text("")
    assert main(["inspect", str(run)]) == 0
    assert "run: not finished, before the end of its first epoch" in capsys.readouterr().out


def test_a_trained_run_keeps_its_history_without_the_state_to_resume(tiny_run, tmp_path):
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    whole = describe(Run.open(run)).splitlines()
    assert whole[0].startswith(f"{run}: finished; 5 epochs, ")
    (run / "resume.npz").unlink()
    assert describe(Run.open(run)).splitlines()[0] == whole[0]
    (run / "metrics.jsonl").write_text("{")
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged .*restore it or train again"):
        describe(Run.open(run))


def test_a_run_without_a_training_says_so(translator, tmp_path, capsys):
    translator.save(tmp_path / "run")
    assert main(["inspect", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "run: imported or saved, without a history of its training" in text


def test_a_language_model_has_one_vocabulary(counting_run, capsys):
    assert main(["inspect", str(counting_run)]) == 0
    assert "Vocabulary\n  29 pieces\n" in capsys.readouterr().out
