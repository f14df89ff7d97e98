"""The parts of a run against Keras' own count and the paper's formula.

Its pictures are checked for the words that they must have.
"""

import re
import shutil
import sys

import matplotlib.image
import numpy as np
import pytest
import yaml

from tfformer.cli.main import main
from tfformer.config import Config
from tfformer.explain import run_pictures
from tfformer.explain.inspection import describe, model_parts
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run

SIZES = {"num_layers": 2, "num_decoder_layers": 3, "d_model": 16, "num_heads": 2, "d_ff": 24}


def total(model: Transformer) -> int:
    return sum(part.copies * part.parameters for part in model_parts(model))


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
    """Section 3 counted by hand.

    Attention is four d x d matrices, a feed-forward two, all of them with biases.
    """
    d, d_ff, vocabulary = 16, 24, 11
    model = Transformer(vocabulary, vocabulary, **SIZES, tie_embeddings="all")
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert total(model) == vocabulary * d + 2 * encoder + 3 * decoder
    parts = {part.name: part for part in model_parts(model)}
    assert parts["source, target, output embedding"].shapes == ((11, 16),)
    assert parts["encoder feed_forward inner"].shapes == ((16, 24), (24,))
    assert parts["encoder feed_forward inner"].copies == 2
    assert parts["decoder cross_attention key_value"].shapes == ((16, 32), (32,))
    assert parts["decoder cross_attention key_value"].copies == 3


def test_a_language_model_is_described_too():
    model = LanguageModel(11, num_layers=3, d_model=16, num_heads=2, d_ff=24)
    parts = {part.name: part for part in model_parts(model)}
    assert total(model) == model.count_params()
    assert parts["input, output embedding"].shapes == ((11, 16),)
    assert parts["stack feed_forward inner"].copies == 3


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
    shutil.copytree(
        tiny_run, run, ignore=shutil.ignore_patterns("resume.npz", "result.json", "best.weights.h5")
    )
    assert main(["inspect", str(run), "--output", str(tmp_path / "pictures")]) == 0
    assert "run: not finished, before the end of its first epoch" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == sorted(
        run_pictures.NAMES[1:]
    )


@pytest.mark.slow
def test_the_verb_draws_three_whole_pictures_and_overwrites_none(tiny_run, tmp_path, capsys):
    folder = tmp_path / "new" / "pictures"
    arguments = ["inspect", str(tiny_run), "--output", str(folder)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        str(folder / name) for name in run_pictures.NAMES
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted(run_pictures.NAMES)
    for path in folder.iterdir():
        pixels = matplotlib.image.imread(path)
        assert min(pixels.shape[:2]) > 400
        assert pixels[0, 0].min() == 1
        assert pixels.min() < 0.2
    (folder / "training.png").unlink()
    (folder / "masks.png").write_text("mine")
    before = (folder / "positions.png").stat().st_mtime_ns
    assert main(arguments) == 2
    assert "positions.png exists already; choose another --output" in capsys.readouterr().err
    assert (folder / "masks.png").read_text() == "mine"
    assert not (folder / "training.png").exists()
    assert (folder / "positions.png").stat().st_mtime_ns == before


def test_a_language_model_has_one_vocabulary_and_only_the_look_ahead_mask(
    counting_run, tmp_path, capsys, monkeypatch
):
    drawn = []
    monkeypatch.setattr(run_pictures, "_draw_mask", lambda ax, title, *_: drawn.append(title))
    assert main(["inspect", str(counting_run), "--output", str(tmp_path / "pictures")]) == 0
    assert "Vocabulary\n  29 pieces\n" in capsys.readouterr().out
    assert drawn == ["Decoder: look-ahead mask"]


def test_a_file_is_no_folder_for_pictures(tiny_run, tmp_path, capsys):
    (tmp_path / "notes").write_text("mine")
    assert main(["inspect", str(tiny_run), "--output", str(tmp_path / "notes")]) == 2
    assert "notes is a file, not a folder; choose another folder" in capsys.readouterr().err
    assert (tmp_path / "notes").read_text() == "mine"


def test_inspect_refuses_in_one_line(tmp_path, capsys):
    assert main(["inspect", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"tfformer: {tmp_path} is not a run directory: it has no config.json; give the --run-dir "
        "of a training\n"
    )


def test_without_matplotlib_nothing_is_written(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pictures need matplotlib; pip install -e '\.\[plot\]'"):
        next(run_pictures.draw(Run.open(tiny_run), tmp_path / "pictures"))
    assert not (tmp_path / "pictures").exists()


# --- What the pictures say ------------------------------------------------------------------------


def texts_of(path) -> set[str]:
    """The texts of an SVG: matplotlib notes each in a comment beside its outlines."""
    return set(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8")))


HISTORY = [
    {"epoch": 1, "step": 100, "minutes": 1.0, "learning_rate": 0.001, "loss": 5.25},
    {"epoch": 2, "step": 200, "minutes": 2.0, "learning_rate": 0.002, "loss": 3.5}
    | {"val_loss": 3.25, "val_bleu": 12.34, "val_chrf": 45.67},
]


def test_the_training_ends_in_its_last_figures(tmp_path):
    run_pictures.draw_training(Config(), HISTORY, tmp_path / "training.svg")
    texts = texts_of(tmp_path / "training.svg")
    assert {
        "BLEU: 12.34 at the end",
        "chrF: 45.67 at the end",
        "validation: 3.25 at the end",
    } < texts
    assert {"training, regularised: 3.50 at the end", "recorded: 0.002 at the end"} < texts
    assert "Training: 2 epochs, 200 steps, 2 minutes" in texts


def test_a_training_without_validation_is_drawn(tmp_path):
    run_pictures.draw_training(Config(), HISTORY[:1], tmp_path / "training.svg")
    texts = texts_of(tmp_path / "training.svg")
    assert any("5.25 at the end" in text for text in texts)
    assert not any("BLEU" in text for text in texts)


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (
            {"schedule": "warmup", "warmup_steps": 4000},
            "warmup: 0.0007 at step 4,000",
        ),  # 512^-0.5 * 4000^-0.5
        (
            {"schedule": "inverse_sqrt", "learning_rate": 0.005, "warmup_steps": 50},
            "inverse_sqrt: 0.005 at step 50",
        ),
        (
            {"schedule": "linear", "learning_rate": 0.005, "warmup_steps": 50, "epochs": 9},
            "linear: 0.005 at step 50",
        ),
    ],
)
def test_the_learning_rate_has_its_peak_in_digits(tmp_path, training, expected):
    config = Config.from_dict({"training": training})
    run_pictures.draw_training(config, HISTORY, tmp_path / "rate.svg")
    assert expected in texts_of(tmp_path / "rate.svg")


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_positions_name_the_wavelengths_of_the_formula(tmp_path, layout):
    """Section 3.5: from 2 pi on, in a geometric progression."""
    run_pictures.draw_positions(40, 20, layout, tmp_path / "positions.svg")
    texts = texts_of(tmp_path / "positions.svg")
    for pair in (0, 1, 2, 3):
        column = pair if layout == "halves" else 2 * pair
        assert f"dimension {column}: wavelength {2 * np.pi * 10000 ** (2 * pair / 20):.3g}" in texts


def test_the_masks_are_those_of_the_paper(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        run_pictures,
        "_draw_mask",
        lambda ax, title, mask, *_: drawn.update({title: np.array(mask)}),
    )
    run_pictures.draw_masks(tmp_path / "masks.svg", has_encoder=True)
    padding, ahead, memory = drawn.values()
    np.testing.assert_array_equal(padding, [[1, 1, 1, 1, 0, 0]] * 6)
    np.testing.assert_array_equal(ahead, np.tri(6))
    np.testing.assert_array_equal(memory, [[1, 1, 1, 1, 0, 0]] * 6)


@pytest.mark.parametrize("offset", [0, 2])
def test_positions_are_drawn_from_the_first_that_a_model_has(tmp_path, monkeypatch, offset):
    drawn = []
    monkeypatch.setattr(run_pictures, "save", lambda figure, path: drawn.append(figure))
    run_pictures.draw_positions(9, 8, "halves", tmp_path / "positions.png", offset=offset)
    stripes, waves, *_ = drawn[0].axes
    pixels = stripes.images[0]
    assert pixels.get_extent() == [-0.5, 7.5, 8.5 + offset, offset - 0.5]
    np.testing.assert_allclose(pixels.get_array()[:, 0], np.sin(np.arange(9) + offset), atol=1e-6)
    assert waves.get_xlim() == (offset, offset + 8)
