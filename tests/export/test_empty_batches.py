"""The batch is free in every signature of a SavedModel: it may be 0."""

import numpy as np
import pytest
import tensorflow as tf
from support.untrained import untrained_generator, untrained_translator

from tfformer.export.saved_model import writer

pytestmark = pytest.mark.slow  # an export is read back in another process

TEXTS = tf.zeros([0], tf.string)
IDS = tf.zeros([0, 3], tf.int32)
NUMBERS = tf.zeros([0], tf.int32)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The signatures of a translator and of a language model."""
    loaded = {}
    for name, model in (("t", untrained_translator()), ("g", untrained_generator())):
        folder = tmp_path_factory.mktemp(name)
        writer.write(folder, model, "float32", with_text=True)
        loaded[name] = tf.saved_model.load(str(folder))
    return loaded


@pytest.mark.parametrize(
    ("name", "signature", "inputs"),
    [
        ("t", "serving_default", {"text": TEXTS}),
        ("t", "translate_beam", {"text": TEXTS}),
        ("t", "translate_ids", {"ids": IDS, "lengths": NUMBERS}),
        ("t", "score", {"source": TEXTS, "target": TEXTS}),
        ("g", "serving_default", {"text": TEXTS}),
        ("g", "continue_ids", {"ids": IDS, "lengths": NUMBERS}),
        ("g", "score", {"text": TEXTS}),
    ],
)
def test_no_sentence_gives_no_answer(exported, name, signature, inputs):
    outputs = exported[name].signatures[signature](**inputs)
    assert outputs
    for output in outputs.values():
        assert np.asarray(output).shape[0] == 0
