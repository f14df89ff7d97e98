"""Every signature of a SavedModel accepts batches of any size, including 0."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tensorflow_text", reason="it has no release for this TensorFlow")
pytestmark = pytest.mark.slow  # an export is read back in another process

TEXTS = tf.zeros([0], tf.string)
IDS = tf.zeros([0, 3], tf.int32)
NUMBERS = tf.zeros([0], tf.int32)


TRANSLATOR = {
    "serving_default": {"text": TEXTS},
    "translate_beam": {"text": TEXTS},
    "translate_ids": {"ids": IDS, "lengths": NUMBERS},
    "score": {"source": TEXTS, "target": TEXTS},
}
LANGUAGE_MODEL = {
    "serving_default": {"text": TEXTS},
    "continue_ids": {"ids": IDS, "lengths": NUMBERS},
    "score": {"text": TEXTS},
}


@pytest.mark.parametrize(
    ("export", "requests"),
    [("saved_model_export", TRANSLATOR), ("language_model_export", LANGUAGE_MODEL)],
)
def test_no_sentence_gives_no_answer(request, export, requests):
    signatures = tf.saved_model.load(str(request.getfixturevalue(export))).signatures
    assert signatures.keys() == requests.keys()
    for name, inputs in requests.items():
        for output in signatures[name](**inputs).values():
            assert np.asarray(output).shape[0] == 0
