"""Compare searches over scripted logits with brute force and with a search in plain Python."""

import itertools
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from tfformer.inference.beam_search import beam_search
from tfformer.inference.search import EMPTY, Rounds, greedy_search, is_used, sample
from tfformer.special_ids import END_ID, PAD_ID, START_ID

ALPHAS = [0.0, 0.6, 1.0]


class Tree:
    """Random logits for every prefix of every sentence.

    They are `logits[sentence, node]`, with nodes numbered like a heap. The state contains the
    sentence and the current node of each row, so a row that gets another row's state continues with
    the wrong logits.
    """

    def __init__(self, sentences, vocab_size, depth, seed=0, scale=1.5):
        nodes = sum(vocab_size**n for n in range(depth))
        self.vocab_size = vocab_size
        self.logits = np.random.default_rng(seed).normal(
            scale=scale, size=(sentences, nodes, vocab_size)
        )
        self.calls = 0

    def state(self, sentences, rows_each=1):
        rows = np.repeat(sentences, rows_each)
        return {"sentence": tf.constant(rows, tf.int32), "node": tf.fill([len(rows)], -1)}

    def __call__(self, ids, step, state):
        self.calls += 1
        node = tf.where(state["node"] < 0, 0, state["node"] * self.vocab_size + ids + 1)
        logits = tf.gather_nd(
            tf.constant(self.logits, tf.float32), tf.stack([state["sentence"], node], axis=1)
        )
        return logits, {"sentence": state["sentence"], "node": node}

    def log_probs(self, sentence, prefix):
        node = 0
        for token in prefix:
            node = node * self.vocab_size + token + 1
        logits = self.logits[sentence, node]
        return logits - np.log(np.exp(logits).sum())

    def log_prob(self, sentence, ids):
        return sum(self.log_probs(sentence, ids[:n])[token] for n, token in enumerate(ids))

    def every_hypothesis(self, sentence, limit):
        """Return all hypotheses of a sentence.

        These are all sequences that end with the end token, or that reach the limit without it.
        """
        for length in range(1, limit + 1):
            for ids in itertools.product(range(self.vocab_size), repeat=length):
                if END_ID not in ids[:-1] and (ids[-1] == END_ID or length == limit):
                    yield list(ids)

    def search(self, sentences, limits, beam_size, alpha=0.6, **settings):
        state = self.state(sentences, beam_size)
        return beam_search(
            self, state, tf.constant(limits), beam_size=beam_size, alpha=alpha, **settings
        )


def penalty(length, alpha):
    """Wu et al. 2016, equation 14."""
    return (5 + length) ** alpha / (5 + 1) ** alpha


def n_best(hypotheses, sentence):
    """Return the hypotheses of a sentence as [(ids, score)], without empty slots."""
    ids, lengths, scores = (np.asarray(tensor)[sentence] for tensor in hypotheses)
    return [
        (row[:n].tolist(), float(s))
        for row, n, s in zip(ids, lengths, scores, strict=True)
        if is_used(s)
    ]


def assert_same_n_best(actual, expected):
    assert [ids for ids, _ in actual] == [ids for ids, _ in expected]
    np.testing.assert_allclose(
        [s for _, s in actual], [s for _, s in expected], rtol=1e-5, atol=1e-5
    )


def search_with(beam_size):
    return greedy_search if beam_size == 1 else partial(beam_search, beam_size=beam_size)


def scripted(rows):
    """Return a step function in which step t gives each row's element t the highest logit."""
    table = tf.one_hot(rows, 6, on_value=5.0, off_value=0.0)

    def step_fn(ids, step, state):
        return tf.gather(table, state)[:, step], state

    return step_fn, tf.range(len(rows))


# Greedy


def test_greedy_ends_at_the_end_token_or_at_the_sentences_own_limit():
    step_fn, state = scripted(
        [[4, END_ID, 5, 5], [4, 5, 1, 4], [5, 4, 5, END_ID], [END_ID, 4, 4, 4]]
    )
    hypotheses = greedy_search(step_fn, state, tf.constant([4, 3, 4, 2]))
    assert hypotheses.ids.dtype == hypotheses.lengths.dtype == tf.int32
    expected = [[4, END_ID, 0, 0], [4, 5, 1, 0], [5, 4, 5, END_ID], [END_ID, 0, 0, 0]]
    np.testing.assert_array_equal(hypotheses.ids[:, 0], expected)
    np.testing.assert_array_equal(hypotheses.lengths, [[2], [3], [4], [1]])


def test_greedy_score_is_the_sum_of_the_tokens_log_probabilities():
    step_fn, state = scripted([[4, END_ID, 5], [4, 5, 1]])
    hypotheses = greedy_search(step_fn, state, tf.constant([3, 3]))
    log_prob = 5 - np.log(np.exp(5) + 5)
    np.testing.assert_allclose(hypotheses.scores, [[2 * log_prob], [3 * log_prob]], rtol=1e-5)


def test_first_step_is_given_the_start_token_and_step_zero():
    seen = []

    def step_fn(ids, step, state):
        seen.append((int(step), ids.numpy().tolist()))
        return tf.one_hot([4, 5], 6), state

    greedy_search(step_fn, tf.range(2), tf.constant([2, 2]))
    assert seen == [(0, [START_ID, START_ID]), (1, [4, 5])]


@pytest.mark.parametrize("search", [greedy_search, partial(beam_search, beam_size=1)])
def test_search_stops_calling_the_model_once_every_sentence_has_ended(search):
    calls = []

    def step_fn(ids, step, state):
        calls.append(int(step))
        return tf.one_hot(tf.where(step >= state, END_ID, 4), 6) * 20.0, state

    search(step_fn, tf.constant([0, 2]), tf.constant([50, 50]))
    assert calls == [0, 1, 2]


def test_a_limit_of_zero_finds_nothing_whatever_the_neighbours():
    tree = Tree(sentences=2, vocab_size=4, depth=2)
    greedy = greedy_search(tree, tree.state([0, 1]), tf.constant([0, 2]))
    assert (greedy.lengths[0, 0], greedy.scores[0, 0]) == (0, 0)
    hypotheses = tree.search([0, 1], [0, 2], beam_size=3)
    assert n_best(hypotheses, 0) == []
    assert len(n_best(hypotheses, 1)) == 3


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_limits_may_be_integers_of_any_type(kind):
    tree = Tree(sentences=3, vocab_size=4, depth=3, seed=5)
    limits = np.array([3, 1, 2], kind)
    cold, beam = partial(sample, seed=1, top_k=1), partial(beam_search, beam_size=20)
    for search, rows in ((greedy_search, 1), (cold, 1), (beam, 20)):
        state = tree.state(range(3), rows)
        expected = search(tree, state, tf.constant([3, 1, 2]))
        for given in (limits, tf.constant(limits)):
            hypotheses = search(tree, state, given)
            np.testing.assert_array_equal(hypotheses.ids, expected.ids)
            np.testing.assert_array_equal(hypotheses.lengths, expected.lengths)


def test_a_capacity_may_be_an_integer_of_any_type():
    tree = Tree(sentences=2, vocab_size=4, depth=3, seed=5)
    limits = np.array([3, 3])
    expected = greedy_search(tree, tree.state(range(2)), limits, capacity=2)
    for capacity in (np.int64(2), tf.constant(2), tf.constant(2, tf.int64)):
        hypotheses = greedy_search(tree, tree.state(range(2)), limits, capacity=capacity)
        np.testing.assert_array_equal(hypotheses.ids, expected.ids)


@pytest.mark.parametrize("beam_size", [0, -1, 1.5, None])
def test_a_beam_size_that_is_no_whole_number_from_1_is_refused(beam_size):
    tree = Tree(sentences=1, vocab_size=4, depth=2)
    message = f"^beam_size={beam_size} must be a whole number of at least 1$"
    with pytest.raises(ValueError, match=message):
        beam_search(tree, tree.state([0]), tf.constant([2]), beam_size=beam_size)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": -0.5}, "alpha=-0.5 must be at least 0 and finite"),
        ({"alpha": float("nan")}, "alpha=nan must be at least 0 and finite"),
        ({"alpha": "1"}, "alpha='1' is of type str; pass a number"),
        (
            {"length_normalization": "marian"},
            "length_normalization='marian' is not known; choose one of 'wu', 'power'",
        ),
    ],
)
def test_invalid_length_penalties_of_beam_search_are_refused(settings, message):
    tree = Tree(sentences=1, vocab_size=4, depth=2)
    with pytest.raises(ValueError, match=f"^{message}$"):
        beam_search(tree, tree.state([0, 0]), tf.constant([2]), beam_size=2, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature=0.0 must be a finite number above 0; .* greedy search"),
        ({"temperature": "a"}, "temperature=a must be a finite number above 0; .* greedy search"),
        ({"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
        ({"top_k": -1}, "top_k=-1 must be a whole number of at least 0"),
        ({"top_k": 1.5}, "top_k=1.5 must be a whole number of at least 0"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
        ({"seed": 2**31}, "seed=2147483648 must be at most 2147483647"),
        ({"seed": 1.5}, "seed=1.5 must be a whole number of at least 0"),
    ],
)
def test_invalid_settings_of_sample_are_refused(settings, message):
    tree = Tree(sentences=1, vocab_size=4, depth=2)
    with pytest.raises(ValueError, match=f"^{message}$"):
        sample(tree, tree.state([0]), tf.constant([2]), **{"seed": 1} | settings)


def test_a_temperature_may_be_a_tensor_of_a_graph():
    tree = Tree(sentences=4, vocab_size=4, depth=3)

    @tf.function(autograph=False)
    def drawn(temperature):
        return sample(tree, tree.state(range(4)), tf.fill([4], 3), seed=1, temperature=temperature)

    expected = sample(tree, tree.state(range(4)), tf.fill([4], 3), seed=1, temperature=0.5)
    np.testing.assert_array_equal(drawn(tf.constant(0.5)).ids, expected.ids)


def test_an_alpha_may_be_a_tensor_of_a_graph():
    tree = Tree(sentences=2, vocab_size=4, depth=3)
    search = partial(beam_search, tree, tree.state([0, 0, 1, 1]), tf.fill([2], 3), beam_size=2)
    hypotheses = tf.function(search, autograph=False)(alpha=tf.constant(0.5))
    np.testing.assert_array_equal(hypotheses.ids, search(alpha=0.5).ids)


# Beam search


@pytest.mark.parametrize("alpha", ALPHAS)
def test_beam_search_finds_the_brute_force_best_on_a_four_token_vocabulary(alpha):
    """40 beams hold all 27 unfinished prefixes of three tokens, so none may be lost."""
    limits = [4, 3, 1, 4, 2]
    tree = Tree(sentences=5, vocab_size=4, depth=4, seed=3)
    hypotheses = tree.search(range(5), limits, 40, alpha)
    for sentence, limit in enumerate(limits):
        every = [
            (ids, tree.log_prob(sentence, ids) / penalty(len(ids), alpha))
            for ids in tree.every_hypothesis(sentence, limit)
        ]
        best = sorted(every, key=lambda hypothesis: -hypothesis[1])[:40]
        assert_same_n_best(n_best(hypotheses, sentence), best)


def short_or_long(ids, step, state):
    """Return logits for two beams: the end has 0.4 at step 0, and 0.6 after a token with 0.6."""
    table = tf.math.log([[1e-9, 1e-9, 1e-9, 0.4, 0.6], [1e-9, 1e-9, 1e-9, 0.6, 0.4]])
    return tf.tile(table[step][tf.newaxis], [2, 1]), state


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_a_score_has_every_digit_whatever_the_logits_are(scale):
    rng = np.random.default_rng(8)
    logits = (rng.normal(size=(4, 300)) * scale + rng.normal() * 1e3).astype(np.float32)
    greedy = greedy_search(lambda ids, step, state: (logits, state), tf.zeros(4), tf.fill([4], 1))
    exact = logits.astype(np.float64)
    largest = exact.max(axis=1)
    expected = -np.log(np.exp(exact - largest[:, np.newaxis]).sum(axis=1))
    # A float32 near 1e4 has a distance of 1e-3 to the next.
    np.testing.assert_allclose(greedy.scores[:, 0], expected, rtol=1e-5, atol=2e-3)


@pytest.mark.parametrize(("alpha", "best"), [(0.0, [END_ID]), (1.0, [4, END_ID])])
def test_length_penalty_can_prefer_the_longer_of_two(alpha, best):
    """The scores by hand.

    ln 0.40 = -0.916 is above ln 0.36 = -1.022, but below -1.022 / (7 / 6) = -0.876.
    """
    beams = beam_search(short_or_long, tf.zeros([2]), tf.constant([2]), beam_size=2, alpha=alpha)
    assert n_best(beams, 0)[0] == (
        best,
        pytest.approx({0.0: -0.9163, 1.0: -0.8757}[alpha], abs=1e-4),
    )


def test_beam_search_divides_by_the_length_where_it_is_told_to():
    limit = tf.constant([2])
    beams = beam_search(
        short_or_long, tf.zeros([2]), limit, beam_size=2, alpha=1.0, length_normalization="power"
    )
    np.testing.assert_allclose(beams.scores[0], [np.log(0.36) / 2, np.log(0.24) / 2], rtol=1e-4)


def python_beam_search(
    tree, sentence, limit, beam_size, alpha, narrowing=False, early_stopping=True, suppressed=None
):
    """Search for one sentence with only lists and `sorted`."""
    alive, finished = [([], 0.0)], []
    for length in range(1, limit + 1):
        longer = [
            ([*ids, token], score + log_prob)
            for ids, score in alive
            for token, log_prob in enumerate(tree.log_probs(sentence, ids))
            if token != suppressed
        ]
        longer = sorted(longer, key=lambda hypothesis: -hypothesis[1])
        if narrowing:
            longer = longer[: beam_size - len(finished)]
        ended = [ids[-1] == END_ID or length == limit for ids, _ in longer]
        new = [
            (*longer[n][:1], longer[n][1] / penalty(length, alpha))
            for n in range(len(longer))
            if ended[n] and n < beam_size
        ]
        finished = sorted(finished + new, key=lambda hypothesis: -hypothesis[1])[:beam_size]
        alive = [
            hypothesis for hypothesis, is_end in zip(longer, ended, strict=True) if not is_end
        ][:beam_size]
        best = alive[0][1] / penalty(length, alpha) if alive else -np.inf
        if len(finished) == beam_size and (early_stopping or best <= finished[-1][1]):
            break
    return finished


@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 1.0), (2, 0.0), (3, 0.6), (5, 1.0)])
@pytest.mark.parametrize(
    "settings", [{}, {"narrowing": True}, {"early_stopping": False}, {"suppressed": 4}]
)
def test_small_beams_equal_a_search_in_plain_python(beam_size, alpha, settings):
    limits = [5, 4, 5, 1, 3, 5, 2, 5] * 4
    tree = Tree(sentences=32, vocab_size=5, depth=5, seed=1, scale=2)
    tree.logits[:, :, END_ID] += 1
    hypotheses = tree.search(range(32), limits, beam_size, alpha, **settings)
    for sentence, limit in enumerate(limits):
        assert_same_n_best(
            n_best(hypotheses, sentence),
            python_beam_search(tree, sentence, limit, beam_size, alpha, **settings),
        )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("suppressed", [None, 4])
def test_beam_size_1_is_greedy(alpha, suppressed):
    tree = Tree(sentences=12, vocab_size=5, depth=5, seed=2)
    limits = tf.constant([5, 3, 1] * 4)
    greedy = greedy_search(tree, tree.state(range(12)), limits, suppressed=suppressed)
    beams = beam_search(
        tree, tree.state(range(12)), limits, beam_size=1, alpha=alpha, suppressed=suppressed
    )
    np.testing.assert_array_equal(beams.ids, greedy.ids)
    np.testing.assert_array_equal(beams.lengths, greedy.lengths)
    lengths = np.asarray(greedy.lengths)
    np.testing.assert_allclose(beams.scores, greedy.scores / penalty(lengths, alpha), rtol=1e-5)


def test_a_score_counts_a_suppressed_token_that_is_as_good_as_certain():
    """The softmax of all other tokens is 0 in float32, and their log-probability is -200."""
    certain = 4

    def step_fn(ids, step, state):
        return tf.repeat([[0.0, 0.0, 0.0, 1.0, 201.0]], len(ids), axis=0), state

    limit = tf.constant([1])
    greedy = greedy_search(step_fn, tf.zeros(1), limit, suppressed=certain)
    beams = beam_search(step_fn, tf.zeros(2), limit, beam_size=2, alpha=0.0, suppressed=certain)
    np.testing.assert_allclose(greedy.scores, [[-200]])
    np.testing.assert_allclose(beams.scores, [[-200, -201]])


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_a_sentence_is_the_same_alone_in_a_batch_in_any_order_and_beside_longer_ones(beam_size):
    tree = Tree(sentences=6, vocab_size=5, depth=5, seed=4)
    limits = np.array([3, 5, 2, 4, 5, 3], np.int32)
    alone = [n_best(tree.search([s], limits[[s]], beam_size), 0) for s in range(6)]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 2, 5]):
        hypotheses = tree.search(order, limits[order], beam_size)
        for row, sentence in enumerate(order):
            assert_same_n_best(n_best(hypotheses, row), alone[sentence])
    for sentence in range(6):
        longer = np.where(np.arange(6) == sentence, limits, 5).astype(np.int32)
        assert_same_n_best(
            n_best(tree.search(range(6), longer, beam_size), sentence), alone[sentence]
        )


def test_places_that_no_sequence_fills_are_marked_empty():
    """With three tokens besides the end, there are 4 sequences of one step and 1 + 3 * 4 of two."""
    tree = Tree(sentences=2, vocab_size=4, depth=2)
    hypotheses = tree.search([0, 1], [1, 2], beam_size=20)
    for sentence, count in enumerate((4, 13)):
        assert len(n_best(hypotheses, sentence)) == count
        np.testing.assert_array_equal(hypotheses.scores[sentence, count:], np.float32(EMPTY))
        np.testing.assert_array_equal(hypotheses.lengths[sentence, count:], 0)
        np.testing.assert_array_equal(hypotheses.ids[sentence, count:], PAD_ID)


def rounds_of(beam_size):
    """Return the search in rounds over a tree, with a list of slots of which each step uses one."""

    def kept(state, sentences):
        rows = sentences[:, tf.newaxis] * beam_size + tf.range(beam_size)
        return tf.nest.map_structure(lambda x: tf.gather(x, tf.reshape(rows, [-1])), state)

    return Rounds(
        capacity=lambda state: tf.shape(state["positions"])[1],
        enlarged=lambda state, times: (
            state | {"positions": tf.tile(state["positions"], [1, times])}
        ),
        kept=kept,
    )


def searched_in_rounds(tree, sentences, limits, beam_size):
    """Return the hypotheses, and the slots and rows of each step."""
    seen = []

    def step_fn(ids, step, state):
        positions = state["positions"]
        seen.append((positions.shape[1], len(ids)))
        logits, state = tree(ids, step, {name: state[name] for name in ("sentence", "node")})
        return logits, state | {"positions": positions}

    positions = tf.zeros((len(sentences) * beam_size, 2))
    state = tree.state(sentences, beam_size) | {"positions": positions}
    search = search_with(beam_size)
    return search(step_fn, state, tf.constant(limits), rounds=rounds_of(beam_size)), seen


@pytest.mark.parametrize("beam_size", [1, 2, 3])
def test_what_is_found_in_rounds_is_found_in_one(beam_size):
    tree, sentences = Tree(sentences=8, vocab_size=6, depth=5, seed=3), list(range(8))
    limits = [5, 0, 4, 1, 5, 2, 3, 5]
    got, seen = searched_in_rounds(tree, sentences, limits, beam_size)
    state = tree.state(sentences, beam_size)
    expected = search_with(beam_size)(tree, state, tf.constant(limits))
    for tensor, wanted in zip(got, expected, strict=True):  # last bits of scores depend on the rows
        np.testing.assert_allclose(tensor, wanted, rtol=1e-6)
    rows = [rows for _, rows in seen]
    assert rows[0] == 7 * beam_size
    assert sorted(rows, reverse=True) == rows
    assert rows[-1] < rows[0]


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_state_grows_where_the_next_step_would_not_fit(beam_size):
    """It has 2 slots at first, then 4 and 8, whichever sentences have finished."""
    tree = Tree(sentences=4, vocab_size=6, depth=6, seed=3)
    _, seen = searched_in_rounds(tree, [0, 1, 2, 3], [6, 5, 1, 2], beam_size)
    capacities = [capacities for capacities, _ in seen]
    assert capacities == [2, 2, 4, 4, 8, 8, 8, 8][: len(capacities)]
    assert len(capacities) > 4


def test_less_than_half_of_the_rows_of_a_step_are_finished():
    tree = Tree(sentences=40, vocab_size=6, depth=7, seed=5)
    hypotheses, seen = searched_in_rounds(tree, list(range(40)), [7] * 40, beam_size=1)
    lengths = hypotheses.lengths[:, 0].numpy()
    for step, (_, rows) in enumerate(seen):
        assert np.sum(lengths > step) <= rows < 2 * np.sum(lengths > step)


@pytest.mark.parametrize("beam_size", [1, 2])
def test_the_length_of_the_ids_is_a_limit_too(beam_size):
    """Sentences that never end could have more tokens than fit."""

    def endless(ids, step, state):
        return tf.repeat([[0.0, 0.0, 0.0, -9.0, 2.0, 1.0]], len(ids), axis=0), state

    limits, state = tf.constant([6, 2]), tf.zeros(2 * beam_size)
    hypotheses = search_with(beam_size)(endless, state, limits, capacity=3)
    assert hypotheses.ids[:, 0].numpy().tolist() == [[4, 4, 4], [4, 4, 0]]
    assert hypotheses.lengths[:, 0].numpy().tolist() == [3, 2]


@pytest.mark.slow
def test_search_is_the_same_in_a_graph_of_unknown_batch():
    tree = Tree(sentences=4, vocab_size=5, depth=4, seed=7)
    specs = [tf.TensorSpec([None], tf.int32)] * 3

    @tf.function(input_signature=specs)
    def in_graph(sentence, node, limits):
        state = {"sentence": sentence, "node": node}
        return beam_search(tree, state, limits, beam_size=3), greedy_search(
            tree, tf.nest.map_structure(lambda t: t[::3], state), limits
        )

    limits = tf.constant([4, 2, 3, 4])
    state = tree.state(range(4), 3)
    beam, greedy = in_graph(state["sentence"], state["node"], limits)
    for hypotheses, expected in (
        (beam, tree.search(range(4), limits, 3)),
        (greedy, greedy_search(tree, tree.state(range(4)), limits)),
    ):
        for sentence in range(4):
            assert_same_n_best(n_best(hypotheses, sentence), n_best(expected, sentence))


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_capacity_is_the_length_of_the_ids_and_changes_nothing_else(beam_size):
    search = search_with(beam_size)
    tree = Tree(sentences=3, vocab_size=5, depth=3, seed=9)
    state, limits = tree.state(range(3), beam_size), tf.constant([3, 1, 2])
    usual, wide = search(tree, state, limits), search(tree, state, limits, capacity=7)
    np.testing.assert_array_equal(wide.ids, np.pad(usual.ids, [(0, 0), (0, 0), (0, 4)]))
    np.testing.assert_array_equal(wide.lengths, usual.lengths)
    np.testing.assert_array_equal(wide.scores, usual.scores)


# Sampling

LOGITS = np.array([0.3, -1.0, 1.2, 0.0, 2.0, 0.9])
ROWS = 20_000


def distribution(logits):
    return np.exp(logits) / np.exp(logits).sum()


def distribution_among(tokens):
    return distribution(np.where(np.isin(np.arange(6), tokens), LOGITS, -np.inf))


def constant_logits(ids, step, state):
    return tf.tile(tf.constant([LOGITS], tf.float32), [tf.shape(ids)[0], 1]), state


def draw(rows=ROWS, length=1, seed=1, **settings):
    return sample(constant_logits, tf.zeros([rows]), tf.fill([rows], length), seed=seed, **settings)


def chi_square(tokens, expected):
    """Return Pearson's statistic of token counts; a token with probability 0 must not occur."""
    counts = np.bincount(np.asarray(tokens).ravel(), minlength=len(expected))
    assert not counts[expected == 0].any()
    counts, expected = counts[expected > 0], expected[expected > 0] * counts.sum()
    return ((counts - expected) ** 2 / expected).sum()


def test_same_seed_same_tokens_and_another_seed_others():
    first, again, of_seed_8 = (draw(rows=50, length=6, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.ids, again.ids)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert np.any(np.asarray(first.ids) != np.asarray(of_seed_8.ids))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_the_softmax_of_logits_over_temperature(temperature):
    """At five degrees of freedom, chance exceeds 30 once in 70,000 times."""
    assert chi_square(draw(temperature=temperature).ids, distribution(LOGITS / temperature)) < 30


def test_steps_draw_independently():
    ids = np.asarray(draw(length=2, seed=3).ids)[:, 0]
    pairs = ids[ids[:, 0] != END_ID] @ [6, 1]
    first, second = (
        distribution(np.where(np.arange(6) == END_ID, -np.inf, LOGITS)),
        distribution(LOGITS),
    )
    assert (
        chi_square(pairs, np.outer(first, second).ravel()) < 70
    )  # 29 degrees of freedom: p = 3e-5


def test_sampled_score_is_the_log_probability_in_the_unchanged_distribution():
    drawn = draw(rows=200, length=3, temperature=0.7, top_k=4, top_p=0.9)
    log_probs = np.log(distribution(LOGITS))
    for ids, length, score in zip(
        drawn.ids[:, 0].numpy(),
        drawn.lengths[:, 0].numpy(),
        drawn.scores[:, 0].numpy(),
        strict=True,
    ):
        assert score == pytest.approx(log_probs[ids[:length]].sum(), rel=1e-5)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_suppressed_token_is_not_drawn_and_takes_no_place_of_the_likeliest(k):
    likeliest, *remaining = np.argsort(-LOGITS)
    kept = remaining[: k or len(remaining)]
    drawn = draw(suppressed=int(likeliest), top_k=k)
    assert chi_square(drawn.ids, distribution_among(kept)) < 30
    log_probs = np.log(distribution(LOGITS))[drawn.ids[:, 0, 0]]
    np.testing.assert_allclose(drawn.scores[:, 0], log_probs, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 5, 6, 9])
def test_top_k_samples_from_the_k_likeliest_alone(k):
    kept = np.argsort(-LOGITS)[:k]
    assert chi_square(draw(top_k=k).ids, distribution_among(kept)) < 30


@pytest.mark.parametrize("p", [0.01, 0.4, 0.6, 0.85, 0.999])
def test_top_p_samples_from_the_fewest_that_reach_p(p):
    probabilities, kept, total = distribution(LOGITS), [], 0.0
    for token in np.argsort(-LOGITS):
        if total < p:
            kept.append(token)
        total += probabilities[token]
    assert chi_square(draw(top_p=p).ids, distribution_among(kept)) < 30


@pytest.mark.parametrize("temperature", [1e-3, 1e-10, 1e-38, 1e-300])
@pytest.mark.parametrize("settings", [{}, {"top_k": 1}, {"top_k": 3}, {"top_p": 0.9}])
def test_temperature_near_zero_is_greedy(temperature, settings):
    tree = Tree(sentences=20, vocab_size=5, depth=4, seed=8)
    tree.logits -= 9
    limits = tf.constant([4, 2] * 10)
    cold = sample(tree, tree.state(range(20)), limits, seed=1, temperature=temperature, **settings)
    np.testing.assert_array_equal(cold.ids, greedy_search(tree, tree.state(range(20)), limits).ids)


def test_sampling_keeps_each_sentences_limit_and_stops_at_the_end_token():
    limits = np.random.default_rng(0).integers(1, 7, size=300).astype(np.int32)
    drawn = sample(constant_logits, tf.zeros([300]), tf.constant(limits), seed=1)
    for ids, length, limit in zip(
        drawn.ids[:, 0].numpy(), drawn.lengths[:, 0].numpy(), limits, strict=True
    ):
        assert length == limit or ids[length - 1] == END_ID
        assert length <= limit
        assert END_ID not in ids[: length - 1]
        assert not ids[length:].any()


def uniform_draws(steps, seed, batch):
    """Draw 100 rows from five equally likely tokens (100, steps); no token ends a row."""

    def step_fn(ids, step, state):
        return tf.where(tf.range(6) == END_ID, -1e9, tf.zeros([tf.shape(ids)[0], 6])), state

    rows = tf.zeros([100])
    return sample(step_fn, rows, tf.fill([100], steps), seed=seed, batch=batch).ids[:, 0].numpy()


def test_batches_of_one_seed_draw_as_differently_as_other_seeds_do():
    """A fifth of independent draws from five tokens are equal."""
    drawn = [uniform_draws(20, seed, batch) for seed in (1, 2, 65) for batch in (0, 1, 64)]
    for draws, draws_of_another in itertools.combinations(drawn, 2):
        assert np.mean(draws == draws_of_another) == pytest.approx(1 / 5, abs=0.05)


def test_no_step_of_a_batch_draws_as_a_later_step_of_the_one_before():
    """The same row of the next batch also does not repeat an earlier row some steps later."""
    first, second = (uniform_draws(20, 1, batch) for batch in (0, 1))
    for shift in range(1, 10):
        assert np.mean(first[:, shift:] == second[:, :-shift]) == pytest.approx(1 / 5, abs=0.06)


def test_the_first_batch_draws_as_a_single_one():
    np.testing.assert_array_equal(uniform_draws(5, 3, batch=0), draw_of_one_batch())


def draw_of_one_batch():
    """Draw by Gumbel-max from the random numbers of the pairs (seed, step)."""
    logits = np.where(np.arange(6) == END_ID, -1e9, 0.0)
    rows = []
    for step in range(5):
        uniform = tf.random.stateless_uniform([100, 6], [3, step], minval=1e-30).numpy()
        rows.append((logits - np.log(-np.log(uniform))).argmax(axis=1))
    return np.stack(rows, axis=1)


@pytest.mark.parametrize("search", [greedy_search, partial(beam_search, beam_size=2)])
def test_a_batch_of_no_sentences_finds_no_hypotheses(search):
    no_rows = tf.zeros([0])
    hypotheses = search(constant_logits, no_rows, tf.zeros([0], tf.int32))
    assert hypotheses.scores.shape[0] == 0
    assert hypotheses.ids.shape[0] == 0
