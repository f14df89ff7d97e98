"""A small trained language model: the probability of a text, and its continuation."""

import json
import math

import keras
import numpy as np
import pytest
from support.numpy_layers import log_softmax

from tfformer.run_directory import Run
from tfformer.special_ids import END_ID, START_ID

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="module")
def lines(counting_run) -> list[str]:
    return (counting_run.parent / "valid.txt").read_text().splitlines()


def stepwise(generator, ids, first=0):
    """Return log p of the tokens from `first` on, recomputed for every prefix without a cache."""
    total = 0.0
    for t in range(first, len(ids)):
        total += log_softmax(generator.model(np.array([[START_ID, *ids[:t]]]))[0, -1])[ids[t]]
    return total


def test_training_reaches_the_bits_per_byte_of_the_language(counting_run, generator, lines):
    """24 lines are equally likely, so any model needs at least log2(24) bits per line."""
    history = Run.open(counting_run).history()
    size = (counting_run.parent / "valid.txt").stat().st_size
    least = len(lines) * math.log2(24) / size
    measured = [epoch["val_bits_per_byte"] for epoch in history if "val_bits_per_byte" in epoch]
    assert len(measured) == 2
    assert least < measured[1] < 1.1 * least
    assert generator.bits_per_byte(lines) == pytest.approx(min(measured), rel=1e-5)
    result = json.loads((counting_run / "result.json").read_text())
    assert result["val_bits_per_byte"] == round(min(measured), 4)
    assert "val_bleu" not in result


def test_log_prob_is_the_sum_over_the_pieces_and_the_end_in_any_batch(generator, lines):
    log_probs = generator.log_prob([*lines, ""])
    for line, log_prob in list(zip([*lines, ""], log_probs, strict=True))[::4]:
        ids = [*generator.tokenizer.encode([line])[0], END_ID]
        assert log_prob == pytest.approx(stepwise(generator, ids), abs=1e-3)
    np.testing.assert_allclose(generator.log_prob([*lines, ""], batch_size=5), log_probs, rtol=1e-4)
    assert generator.log_prob([]) == []


def test_bits_per_byte_are_those_of_the_file(generator):
    """Two lines of 7 and 10 bytes; the second contains a character outside ASCII."""
    lines = ["one two", "nine tén"]
    nats = -sum(generator.log_prob(lines))
    assert generator.bits_per_byte(lines) == pytest.approx(nats / math.log(2) / (8 + 10))


def test_sentences_that_are_too_long_are_left_out_of_bits_per_byte(generator, lines):
    long = " ".join(NUMBERS * 5)
    with pytest.warns(UserWarning, match=r"1 of 25 sentences had more than 31 tokens, the"):
        assert generator.bits_per_byte([*lines, long]) == pytest.approx(
            generator.bits_per_byte(lines)
        )
    with pytest.raises(ValueError, match=r"1 of 1 sentences had more than 31 tokens, the model's"):
        generator.bits_per_byte([long])
    with pytest.raises(ValueError, match="no sentence can be measured: 0 of 0 sentences had more"):
        generator.bits_per_byte([])


def test_greedy_counts_on_from_any_prefix(generator):
    prefixes = ["three four", "", "seven", "one two three"]
    completed = generator.complete(prefixes)
    for prefix, (text, score) in zip(prefixes, completed, strict=True):
        assert text.startswith(prefix)
        words = text.split()
        first = NUMBERS.index(words[0])
        assert words == NUMBERS[first : first + len(words)]
        assert 2 <= len(words) <= 4
        ids, given = ([*generator.tokenizer.encode([string])[0]] for string in (text, prefix))
        assert score == pytest.approx(
            stepwise(generator, [*ids, END_ID], first=len(given)), abs=1e-3
        )


def test_a_continuation_is_the_same_alone_and_beside_longer_and_shorter_prefixes(generator):
    prefixes = ["three four", "", "seven", "one two three", "eight nine"]
    together = generator.complete(prefixes)
    for prefix, continuation in zip(prefixes, together, strict=True):
        [alone] = generator.complete([prefix])
        assert alone.text == continuation.text
        assert alone.score == pytest.approx(continuation.score, abs=1e-4)
    assert [c.text for c in generator.complete(prefixes, batch_size=2)] == [
        c.text for c in together
    ]


@pytest.mark.slow
def test_samples_follow_their_seed_and_the_distribution(generator, lines):
    drawn = [c.text for c in generator.sample([""] * 600, seed=1)]
    assert drawn == [c.text for c in generator.sample([""] * 600, seed=1)]
    assert drawn != [c.text for c in generator.sample([""] * 600, seed=2)]
    shares = {line: drawn.count(line) / 600 for line in lines}
    expected = np.exp(generator.log_prob(lines))
    for line, p in zip(lines, expected, strict=True):
        assert shares[line] == pytest.approx(p, abs=4.5 * (p * (1 - p) / 600) ** 0.5)
    greedy = generator.complete(["two"])[0].text
    for settings in ({"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}):
        assert generator.sample(["two"], seed=3, **settings)[0].text == greedy


def test_a_text_that_is_too_long_is_truncated_with_a_warning(generator):
    long = " ".join(NUMBERS * 5)
    with pytest.warns(UserWarning, match=r"1 of 2 sentences had more than 31 tokens, the model's"):
        _, continued = generator.complete(["one", long])
    assert long.startswith(continued.text.removesuffix(continued.text.split()[-1]))
    with pytest.warns(UserWarning, match="1 of 1 sentences had more than 31 tokens"):
        generator.log_prob([long])


def test_damaged_weights_are_refused(generator):
    broken = generator.with_model(keras.models.clone_model(generator.model))
    broken.model.set_weights([weight * np.nan for weight in generator.model.get_weights()])
    calls = (broken.log_prob, broken.bits_per_byte, broken.complete)
    for call in (*calls, lambda prefixes: broken.sample(prefixes, seed=1)):
        with pytest.raises(ValueError, match="score for a sentence is not finite: its weights"):
            call(["one two"])
