"""The temperature of confidences, compared with NumPy, a search over a grid and known scales."""

import dataclasses
import json
import shutil
import unittest.mock
from pathlib import Path

import confidence
import numpy as np
import pytest
import tensorflow as tf

from tfformer.cli.export import _parity_lines
from tfformer.config import Config
from tfformer.config.recipe import DataConfig
from tfformer.data.tokenizers import Tokenizer
from tfformer.export import pipeline
from tfformer.export.format import check_validation_text, validation_pairs
from tfformer.export.litert import LiteRT
from tfformer.export.saved_model import SavedModel
from tfformer.inference.calibration import (
    BINS,
    HIGHEST,
    LOWEST,
    calibration_error,
    fit,
    measuring,
    readings,
)
from tfformer.inference.translator import Translator
from tfformer.run_directory import Calibration, Run, Tokenizers
from tfformer.runtime.progress_lines import Steps

PAIRS = [("The dog sleeps.", "Der Hund schläft."), ("A cat.", "Eine Katze."), (" ", "Ein Hund.")]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.logaddexp.reduce(logits.astype(float), axis=1, keepdims=True)


def drawn(count: int, size: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Logits (count, size), and labels (count,) that are drawn from their softmax."""
    dice = np.random.default_rng(seed)
    logits = dice.normal(0, 2, (count, size)).astype(np.float32)
    labels = (logits + dice.gumbel(size=logits.shape)).argmax(axis=1).astype(np.int32)
    return logits, labels


def fitted(logits: np.ndarray, labels: np.ndarray):
    return fit(
        lambda sharpness: readings(
            tf.constant(logits), tf.constant(labels), tf.constant(sharpness, tf.float32)
        ).numpy()
    )


@pytest.mark.parametrize("scale", [1, 0.5, 2.5, 6])
def test_the_temperature_is_the_scale_of_calibrated_logits(scale):
    """A model that draws its own labels is calibrated, until its logits are multiplied."""
    logits, labels = drawn(20_000, 20)
    calibration = fitted(scale * logits, labels)
    assert calibration.temperature == pytest.approx(scale, rel=0.03)
    assert calibration.tokens == 20_000
    assert calibration.error_after < 0.02
    if scale != 1:
        assert calibration.error_before > 3 * calibration.error_after


def test_the_temperature_minimises_the_negative_log_likelihood():
    """Over a grid, in NumPy, with labels that no model would have drawn."""
    logits, labels = drawn(500, 7, seed=2)
    labels[::3] = 0
    grid = np.geomspace(0.2, 5, 2000)
    rows = np.arange(len(labels))
    losses = [-log_softmax(logits / t)[rows, labels].mean() for t in grid]
    best = grid[np.argmin(losses)]
    assert fitted(logits, labels).temperature == pytest.approx(best, rel=0.003)


@pytest.mark.parametrize(("label", "limit"), [(1, LOWEST), (0, HIGHEST)])
def test_the_temperature_has_limits(label, limit):
    """If all predictions are right, or all are wrong."""
    logits = np.tile(np.array([0.0, 1.0, 0.5], np.float32), (4, 1))
    assert fitted(logits, np.full(4, label, np.int32)).temperature == limit


def test_the_calibration_error_by_intervals():
    dice = np.random.default_rng(3)
    confidences, is_right = dice.random(300), dice.integers(0, 2, 300)
    expected = 0.0
    for number in range(BINS):
        within = (confidences > number / BINS) & (confidences <= (number + 1) / BINS)
        if within.any():
            gap = abs(is_right[within].mean() - confidences[within].mean())
            expected += within.mean() * gap
    assert calibration_error(confidences, is_right) == pytest.approx(expected)


def test_the_tokens_are_those_of_the_references(translator):
    """Pairs with a blank side have none; the readings of a batch are those of each pair."""
    parts = translator.model, translator.tokenizers
    measure = measuring(*parts, PAIRS, translator.max_length)
    targets = translator.encode_targets([target for _, target in PAIRS[:2]]).ids
    assert len(measure(1.0)) == sum(len(ids) + 1 for ids in targets)
    alone = [measuring(*parts, [pair], translator.max_length)(0.7) for pair in PAIRS[:2]]
    together = measure(0.7)
    order = np.lexsort(together.T)
    expected = np.concatenate(alone)
    np.testing.assert_allclose(
        together[order], expected[np.lexsort(expected.T)], rtol=1e-3, atol=1e-3
    )
    named = Tokenizer(translator.tokenizers.target.model)
    named.prefix_id = 7  # the token of a language, which is given
    both = dataclasses.replace(translator.tokenizers, target=named)
    given = measuring(translator.model, both, PAIRS, translator.max_length)
    assert len(given(1.0)) == len(together)
    assert measuring(*parts, PAIRS[2:], translator.max_length) is None
    assert measuring(*parts, PAIRS, max_length=2) is None
    assert measuring(*parts, [], translator.max_length) is None


def test_validation_pairs_are_of_all_corpora_or_of_the_chosen_tag(tmp_path):
    for name, count in (("one", 4), ("two", 2)):
        rows = [f"{name} {number}\t{number}\n" for number in range(count)]
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
    corpora = [{"text": "one.tsv", "tag": "<de>"}, {"text": "two.tsv", "tag": "<en>"}]
    data = DataConfig(valid=corpora, folder=str(tmp_path), tags=["<de>", "<en>"])

    def read(tag, count):
        source = unittest.mock.Mock(tag=tag)
        run = unittest.mock.Mock(config=Config(data=data), tokenizers=Tokenizers(source, source))
        return [source for source, _ in validation_pairs(run, count)]

    begin = ["<de> one 0", "<en> two 0", "<de> one 1", "<en> two 1", "<de> one 2"]
    assert [read(None, count) for count in (3, 5)] == [begin[:3], begin]
    assert read("<en>", 5) == ["two 0", "two 1"]
    with pytest.raises(ValueError, match=r"no row of data\.valid has the tag <fr>; add text"):
        read("<fr>", 5)


def test_confidences_of_a_run_are_scaled_by_its_temperature(translator, tmp_path):
    """The softmax of the divided logits, in NumPy; a saved copy keeps the temperature."""
    assert translator.temperature != 1
    source, target = PAIRS[0]
    [pair] = translator.aligned([source], [target])
    ids = [
        [*side.ids[0], 3]
        for side in (translator.encode([source]), translator.encode_targets([target]))
    ]
    inputs = {"source": np.array(ids[:1]), "target": np.array([[2, *ids[1][:-1]]])}
    logits = translator.model(inputs)[0].numpy()
    expected = log_softmax(logits / translator.temperature)
    np.testing.assert_allclose(
        pair.log_probs, expected[np.arange(len(ids[1])), ids[1]], rtol=1e-3, atol=1e-4
    )
    translator.save(tmp_path / "copy")
    assert Translator.load(tmp_path / "copy").calibration == translator.calibration


@pytest.fixture
def uncalibrated(tiny_run, tmp_path):
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    result = json.loads(run.result.read_text())
    del result["calibration"]
    run.finish(result)
    assert run.calibration is None
    return run


def test_the_first_export_calibrates_the_run(uncalibrated, translator):
    """The fixture is calibrated, so its copy is not until its validation text is read again."""
    run, known = uncalibrated, translator.calibration._asdict()
    result = json.loads(run.result.read_text())
    absent = run.config.data.replace(valid=["absent.en", "absent.de"])
    without = dataclasses.replace(run, config=run.config.replace(data=absent))
    assert pipeline._calibration(without, translator, Steps()) is None
    fitted = pipeline._calibration(run, translator, Steps())
    assert fitted._asdict() == pytest.approx(known, rel=1e-2)
    assert Run.open(run.path).calibration == fitted
    assert json.loads(run.result.read_text()).keys() == {*result, "calibration"}
    assert pipeline._calibration(without, translator, Steps()) == fitted


def test_another_file_of_the_same_name_does_not_calibrate_a_run(
    uncalibrated, translator, tmp_path, monkeypatch
):
    """A relative `data.folder` starts from the current folder, which need not be that of training.

    The same text in another folder is accepted.
    """
    run, data = uncalibrated, uncalibrated.config.data
    moved = run.config.replace(data=data.replace(folder="."))
    relative = dataclasses.replace(run, config=moved)
    for name in data.valid:
        shutil.copy(Path(data.folder, name), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    check_validation_text(relative)
    for name in data.valid:
        Path(name).write_text("Eins.\n")
    assert pipeline._calibration(relative, translator, Steps()) is None
    with pytest.raises(ValueError, match=r"data\.valid is not the validation text that .*; res"):
        check_validation_text(relative)
    with pytest.raises(ValueError, match=r"data\.valid is not the validation text that .*; res"):
        LiteRT(quantize="int8").prepare(relative, Steps())  # which would measure BLEU on it


def test_the_options_of_the_first_export_do_not_change_the_calibration(
    uncalibrated, translator, tmp_path, monkeypatch
):
    monkeypatch.setattr(SavedModel, "write", unittest.mock.Mock(side_effect=InterruptedError))
    plain = translator.with_search(translator.decoding)
    with pytest.raises(InterruptedError):
        pipeline.write_version(
            uncalibrated.path, tmp_path, SavedModel(max_length=8), lambda run: plain, Steps()
        )
    known = translator.calibration._asdict()
    assert Run.open(uncalibrated.path).calibration._asdict() == pytest.approx(known, rel=1e-2)


def test_export_prints_the_calibration_error():
    measured = Calibration(0.5, 1234, 0.06543, 0.00021)._asdict()
    assert list(_parity_lines({"parity": {}, "calibration": measured}, "")) == [
        "confidence: expected calibration error 0.0654, and 0.0002 with the temperature 0.500, on "
        "1,234 validation tokens"
    ]
    [line] = _parity_lines({"parity": {}, "calibration": None}, "")
    assert line.startswith("confidence: not calibrated (temperature 1), for lack of")


@pytest.mark.parametrize(
    "damaged", ["{", "3", '{"calibration": 1}', '{"calibration": {"temperature": 1}}', "NaN"]
)
def test_a_damaged_calibration_is_refused(translator, tmp_path, damaged):
    run = Run.open(translator.save(tmp_path / "run"))
    if damaged == "NaN":
        damaged = run.result.read_text().replace(str(translator.temperature), "NaN")
    run.result.write_text(damaged)
    with pytest.raises(ValueError, match=r"result\.json is damaged \(.*\); restore it or train"):
        Translator.load(run.path)


def test_the_scripts_area_under_the_curve_counts_pairs():
    low, high = [0.1, 0.5, 0.7, 0.7], [0.7, 0.2, 0.9]
    pairs = [(below < above) + (below == above) / 2 for below in low for above in high]
    assert confidence.area_under_curve(low, high) == pytest.approx(np.mean(pairs))
