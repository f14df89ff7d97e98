"""Compare the SavedModel of a language model with the run's generator.

The export compares it in another process, with both loaders.
"""

import json

import numpy as np
import pytest
import tensorflow as tf
from support.empty_batches import check_empty_batches

from tfformer.export.pipeline import export_model
from tfformer.export.saved_model.writer import signatures

pytestmark = pytest.mark.slow  # an export is read back in another process

TEXTS = ["three four", "", "seven", "one two three", "  ", "two two two"]


@pytest.fixture(scope="module")
def loaded(language_model_export):
    return tf.saved_model.load(str(language_model_export)).signatures


def test_no_text_gives_no_answer(loaded):
    check_empty_batches(loaded)


@pytest.fixture(scope="module")
def answers(loaded, generator):
    pieces = generator.tokenizer.encode(TEXTS)
    longest = max(map(len, pieces))
    ids = {
        "ids": [row + [5] * (longest - len(row)) for row in pieces],
        "lengths": list(map(len, pieces)),
    }
    requests = [
        ("serving_default", {"text": TEXTS}),
        ("continue_ids", ids),
        ("score", {"text": TEXTS}),
    ]
    requests += [("serving_default", {"text": [text]}) for text in TEXTS]
    rows = []
    for name, inputs in requests:
        outputs = loaded[name](**{key: tf.constant(values) for key, values in inputs.items()})
        rows.append({key: plain(values) for key, values in outputs.items()})
    return rows


def plain(values: tf.Tensor) -> list:
    """Return nested lists, with bytes decoded."""
    if values.dtype == tf.string:
        return np.char.decode(values.numpy().astype(bytes)).tolist()
    return values.numpy().tolist()


def test_continuations_are_the_generators_own_alone_and_together(answers, generator):
    together, by_ids, _, *alone = answers
    expected = generator.complete(TEXTS)
    assert together["generated_text"] == [text for text, _ in expected]
    assert together["score"] == pytest.approx([score for _, score in expected], abs=1e-3)
    assert [answer["generated_text"][0] for answer in alone] == together["generated_text"]
    assert generator.tokenizer.decode(by_ids["ids"]) == together["generated_text"]
    assert by_ids["score"] == pytest.approx(together["score"], abs=1e-4)
    assert [len(row) - row.count(0) for row in by_ids["ids"]] == by_ids["lengths"]


def test_scores_are_the_log_probabilities_of_the_texts(answers, generator):
    scored = answers[2]
    assert scored["log_prob"] == pytest.approx(generator.log_prob(TEXTS), abs=1e-3)
    assert scored["num_tokens"] == [len(row) + 1 for row in generator.tokenizer.encode(TEXTS)]


def test_manifest_and_signatures_are_those_of_the_contract(language_model_export):
    manifest = json.loads((language_model_export / "manifest.json").read_text())
    assert manifest["decoding"] == {"max_length": 32}
    assert manifest["format"] == "saved_model"
    assert set(manifest["parity"]) == {"continue_ids", "serving_default", "score"}
    for measured in manifest["parity"].values():
        assert measured["identical"] == measured["sentences"] >= 20
    string, number = ({"dtype": dtype, "shape": [None]} for dtype in ("string", "int32"))
    real, ids = {"dtype": "float32", "shape": [None]}, {"dtype": "int32", "shape": [None, None]}
    assert manifest["signatures"] == {
        "continue_ids": {
            "inputs": {"ids": ids, "lengths": number},
            "outputs": {"ids": ids, "lengths": number, "score": real},
        },
        "score": {"inputs": {"text": string}, "outputs": {"log_prob": real, "num_tokens": number}},
        "serving_default": {
            "inputs": {"text": string},
            "outputs": {"generated_text": string, "score": real},
        },
    }


@pytest.mark.nightly
def test_without_text_only_ids_are_continued(counting_run, tmp_path):
    version = export_model(counting_run, tmp_path, with_text=False, max_length=6)
    assert list(signatures(version)) == ["continue_ids"]
    assert b"entencepiece" not in (version / "saved_model.pb").read_bytes()
    continue_ids = tf.saved_model.load(str(version)).signatures["continue_ids"]
    continued = continue_ids(ids=tf.fill((2, 9), 5), lengths=tf.constant([9, 0]))
    lengths = continued["lengths"].numpy().tolist()
    assert lengths[0] == 6
    assert max(lengths) <= 6
    assert continued["ids"].numpy()[0, :5].tolist() == [5] * 5


def test_what_a_language_model_has_not_is_refused(counting_run, tmp_path):
    with pytest.raises(ValueError, match="is a language model, which has no beam search; leave"):
        export_model(counting_run, tmp_path / "models", beam_size=2)
    with pytest.raises(ValueError, match="contains a language model, for `tfformer generate`"):
        export_model(counting_run, tmp_path / "models", "ctranslate2")
    assert not (tmp_path / "models").exists()
