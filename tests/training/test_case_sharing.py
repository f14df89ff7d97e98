"""Compare rows that share vectors with an optimizer of the vectors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.case_variants import CASES, case_families
from tfformer.training.optimizer import new_optimizer

PIECES = [
    *("<pad>", "<unk>", "<s>", "</s>"),
    *("▁a", "▁dog", "▁Dog", "▁DOG", "s", "S", "▁A", "▁ES", "▁es"),
    *("▁cat", "▁Cat", "▁CAT", "▁cow", "▁Cow", "▁COW"),
]
COUNTS = [0, 0, 0, 0, 9, 3, 5, 1, 2, 0, 4, 0, 0, 1, 0, 2, 0, 1, 0]
WIDTH = 5
SETTINGS = {"schedule": "inverse_sqrt", "learning_rate": 0.1, "warmup_steps": 1}


def sum_of_vectors():
    """Return the matrix (V, families + CASES) that maps vectors of letters and cases to rows."""
    families = case_families(PIECES, COUNTS)
    made_of = np.zeros((len(PIECES), families.families + CASES), np.float32)
    rows = np.arange(len(PIECES))
    made_of[rows, families.family] = 1
    made_of[rows, families.families + families.case] = 1
    return made_of


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_an_update_is_that_of_the_vectors(optimizer):
    draw = np.random.default_rng(1)
    made_of = sum_of_vectors()
    config = Config.from_dict({"training": SETTINGS | {"optimizer": optimizer}})
    families = case_families(PIECES, COUNTS)
    first = [list(families.family).index(number) for number in range(families.families)]
    start = draw.normal(size=(len(PIECES), WIDTH)).astype(np.float32)
    matrix = keras.Variable(start, name="embeddings")
    shared = new_optimizer(config, epoch_steps=10)
    shared.build([matrix])
    shared.share_rows(matrix, families)
    vectors = keras.Variable(
        np.concatenate([start[first], np.zeros((CASES, WIDTH), np.float32)]), name="embeddings"
    )
    plain = new_optimizer(config, epoch_steps=10)
    plain.build([vectors])
    for _ in range(5):
        np.testing.assert_allclose(matrix, made_of @ np.array(vectors), rtol=1e-4, atol=1e-5)
        gradient = draw.normal(size=start.shape).astype(np.float32)
        shared.apply_gradients([(keras.ops.convert_to_tensor(gradient), matrix)])
        of_vectors = keras.ops.convert_to_tensor(made_of.T @ gradient)
        plain.apply_gradients([(of_vectors, vectors)])
    assert np.abs(np.array(matrix) - start).max() > 0.01


def test_other_variables_are_updated_as_ever():
    draw = np.random.default_rng(2)
    values = [draw.normal(size=(len(PIECES), WIDTH)).astype(np.float32) for _ in range(3)]
    results = []
    for is_shared in (False, True):
        variables = [keras.Variable(value, name="embeddings") for value in values[:2]]
        optimizer = new_optimizer(Config(), epoch_steps=10)
        optimizer.build(variables)
        if is_shared:
            optimizer.share_rows(variables[0], case_families(PIECES, COUNTS))
        gradient = keras.ops.convert_to_tensor(values[2])
        optimizer.apply_gradients([(gradient, variable) for variable in variables])
        results.append(np.array(variables[1]))
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
@pytest.mark.parametrize("usual_is_known", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_softmax_may_be_in_doubt_between_words_of_different_case(usual_is_known):
    """Two words are equally likely: both in one case, or each as usual, "Hund" and "rot".

    The minimum loss gives each probability 1/2. If the case were independent of the word, "hund"
    and "Rot" would be as likely as "Hund" and "rot".
    """
    pieces = ["▁hund", "▁Hund", "▁HUND", "▁rot", "▁Rot", "▁ROT"]
    pieces += [form(f"▁wort{n}") for n in range(5) for form in (str, str.title, str.upper)]
    counts = [0, 9, 0, 9, 0, 0] if usual_is_known else [0] * 6
    families = case_families([*PIECES[:4], *pieces], [0] * 4 + counts + [0] * 15)
    rows = 4 + np.array([[0, 3], [1, 4], [2, 5], [1, 3]])  # lower, Title, CAPITALS, as it is
    wanted = np.zeros((4, len(families.family)), np.float32)
    np.put_along_axis(wanted, rows, 0.5, axis=1)
    draw = np.random.default_rng(4)
    starts = (draw.normal(size=(rows, 16)).astype(np.float32) for rows in (4, len(families.family)))
    states, matrix = (keras.Variable(start, name="embeddings") for start in starts)
    optimizer = new_optimizer(Config.from_dict({"training": SETTINGS}), epoch_steps=10)
    optimizer.build([states, matrix])
    optimizer.share_rows(matrix, families)

    @tf.function(autograph=False)
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = states.value @ tf.transpose(matrix.value)
            loss = tf.nn.softmax_cross_entropy_with_logits(wanted, logits)
            mean = tf.reduce_mean(loss)
        variables = [states, matrix]
        gradients = tape.gradient(mean, [variable.value for variable in variables])
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    for _ in range(300):
        loss = step()
    is_at_best = np.array(loss) < np.log(2) + 0.02
    assert is_at_best.tolist() == [True, True, True, usual_is_known]


def test_a_vocabulary_without_cases_shares_nothing():
    pieces = [*PIECES[:4], "▁漢", "字", "1", ".", ","]
    start = np.random.default_rng(3).normal(size=(len(pieces), WIDTH)).astype(np.float32)
    matrix = keras.Variable(start, name="embeddings")
    optimizer = new_optimizer(Config(), epoch_steps=10)
    optimizer.build([matrix])
    optimizer.share_rows(matrix, case_families(pieces, [0] * len(pieces)))
    np.testing.assert_array_equal(matrix, start)
