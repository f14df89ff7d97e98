"""Translate strings with a small trained run."""

import math
import shutil
import warnings

import numpy as np
import pytest
from support.numpy_layers import pair_log_probs, target_log_probs
from support.untrained_models import untrained_translator

from tfformer.data import phrasebook
from tfformer.inference.translator import Translator


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return [pair.source for pair in phrasebook.pairs("test")[:20]]


def test_the_runs_own_search_is_used_unless_told_otherwise(translator, sentences):
    assert translator.n_best(sentences) == translator.n_best(
        sentences, beam_size=3, length_penalty=1.0
    )
    assert translator.n_best(sentences) != translator.n_best(
        sentences, beam_size=3, length_penalty=0.0
    )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_is_the_same_alone_in_a_batch_and_in_another_order(
    translator, sentences, beam_size
):
    together = translator.translate(sentences, beam_size)
    assert [translator.translate([sentence], beam_size)[0] for sentence in sentences] == together
    assert translator.translate(sentences[::-1], beam_size) == together[::-1]
    assert [t[0].text for t in translator.n_best(sentences, beam_size, batch_size=7)] == together


def test_the_score_is_the_log_probability_of_the_text_under_teacher_forcing(translator, sentences):
    """Recomputed without cache and search: the whole target at once, with the softmax in NumPy."""
    compared = 0
    for sentence, [best] in zip(sentences, translator.n_best(sentences, beam_size=1), strict=True):
        log_probs, target = pair_log_probs(translator, sentence, best.text)
        if log_probs.argmax(-1).tolist() == target:  # else the search wrote it with other pieces
            expected = log_probs[range(len(target)), target].sum()
            assert best.score == pytest.approx(expected, abs=1e-3)
            compared += 1
    assert compared > len(sentences) / 2


def test_forced_scores_are_numpys_log_softmax(translator):
    pairs = phrasebook.pairs("test")[:12]
    sources, targets = (
        [pair.source for pair in pairs],
        [pair.target for pair in pairs[1:] + pairs[:1]],
    )
    scores = translator.score(sources, targets, batch_tokens=100)
    for source, target, scored in zip(sources, targets, scores, strict=True):
        expected = target_log_probs(translator, source, target)
        np.testing.assert_allclose(scored.log_probs, expected, atol=1e-3)
        assert scored.log_prob == pytest.approx(expected.sum(), abs=1e-3)
        assert scored.perplexity == pytest.approx(np.exp(-expected.mean()), rel=1e-3)
        ids = translator.tokenizers.target.encode([target])[0]
        assert scored.tokens == (*translator.tokenizers.target.pieces(ids), "</s>")


def test_a_pair_has_the_same_score_alone_and_in_any_batch(translator):
    pairs = phrasebook.pairs("test")[:12]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    together = translator.score(sources, targets)
    for batched, source, target in zip(together, sources, targets, strict=True):
        np.testing.assert_allclose(
            translator.score([source], [target])[0].log_probs, batched.log_probs, atol=1e-4
        )


def test_forced_scores_of_blank_and_overlong_sentences(translator, sentences):
    limit = translator.max_length - 1
    cut = translator.tokenizers.target.decode(
        [translator.tokenizers.target.encode([" ".join(sentences)])[0][:limit]]
    )
    with pytest.warns(UserWarning, match=f"1 of 6 sentences had more than {limit} tokens, the"):
        nothing, empty, long = translator.score(
            ["  ", sentences[0], sentences[0]], ["x", "", " ".join(sentences)]
        )
    assert nothing.tokens == ()
    assert nothing.log_prob == 0
    assert np.isnan(nothing.perplexity)
    assert empty.tokens == ("</s>",)
    np.testing.assert_allclose(
        empty.log_probs, target_log_probs(translator, sentences[0], ""), atol=1e-3
    )
    assert long.log_prob == pytest.approx(
        translator.score(sentences[:1], cut)[0].log_prob, abs=1e-3
    )
    assert translator.score([], []) == []


def test_blank_sentences_give_empty_translations_in_their_places(translator, sentences):
    n_best = translator.n_best(["", sentences[0], "   ", sentences[1]])
    assert [row[0].text for row in n_best] == [
        "",
        *translator.translate(sentences[:1]),
        "",
        *translator.translate(sentences[1:2]),
    ]
    assert n_best[0] == n_best[2] == [("", 0.0)]
    assert translator.translate([]) == []


def test_a_sentence_that_is_too_long_is_cut_to_the_models_length(translator, sentences):
    limit = translator.max_length - 1
    long = " ".join(sentences[:20])
    ids = translator.tokenizers.source.encode([long])[0]
    assert len(ids) > limit
    with pytest.warns(UserWarning, match=rf"1 of 2 sentences had more than {limit} tokens, the"):
        texts = translator.translate([sentences[0], long])
    assert (
        texts[1] == translator.translate([translator.tokenizers.source.decode([ids[:limit]])[0]])[0]
    )


@pytest.mark.slow
def test_sampling_follows_its_seed_and_its_temperature(translator, sentences):
    once = translator.sample(sentences, seed=1, temperature=1.0)
    assert translator.sample(sentences, seed=1, temperature=1.0) == once
    assert translator.sample(sentences, seed=2, temperature=1.0) != once
    greedy = translator.translate(sentences, beam_size=1)
    assert translator.sample(sentences, seed=1, temperature=1e-6) == greedy
    assert translator.sample(sentences, seed=3, top_k=1) == greedy
    assert translator.sample(sentences[:2], seed=4, top_p=1e-6) == greedy[:2]


def test_continuations_have_their_prefixes_and_the_probabilities_of_teacher_forcing(
    translator, sentences
):
    """Each continuation's tokens are the most likely ones, but for the first after the prefix."""
    prefixes = ["Der", "", "Die Katze", "Ein"] * 5
    compared = 0
    for sentence, prefix, row in zip(
        sentences, prefixes, translator.continuations(sentences, prefixes, count=3), strict=True
    ):
        begun = len(translator.tokenizers.target.encode([prefix])[0])
        assert len({continuation.text for continuation in row}) == 3
        for rank, continuation in enumerate(row):
            assert continuation.text.startswith(prefix)
            log_probs, target = pair_log_probs(translator, sentence, continuation.text)
            order = np.argsort(-log_probs, axis=1)
            if order[begun + 1 :, 0].tolist() != target[begun + 1 :]:
                continue  # the text has other pieces than the search has chosen
            compared += 1
            assert order[begun, rank] == target[begun]
            expected = log_probs[begun, target[begun]]
            assert continuation.score == pytest.approx(expected, abs=1e-3)
    assert compared >= 40  # of 60


def test_a_prefix_that_cannot_begin_a_translation_is_refused(translator):
    with pytest.raises(ValueError, match="vocabulary lacks a character of the prefix 'Der Ж'"):
        translator.continuations(["The dog."], ["Der Ж"])
    with pytest.raises(ValueError, match=r"has \d+ tokens, and a translation has at most \d+; sho"):
        translator.continuations(["The dog."], ["Hund" * 120])
    with pytest.raises(ValueError, match="1 sources and 2 targets cannot be paired"):
        translator.continuations(["The dog."], ["Der", "Die"])
    assert translator.continuations([" "], ["Der"]) == [[("", 0.0)]]


def test_a_prefix_may_have_all_tokens_of_a_translation_but_the_end_token():
    translator = untrained_translator(max_length=12)
    longest = next(
        text
        for text in (" ".join("abcdefgh"[:n] * 2) for n in range(8, 0, -1))
        if len(translator.tokenizers.target.encode([text])[0]) <= 11
    )
    while len(translator.tokenizers.target.encode([longest])[0]) < 11:
        longest += "a"
    [row] = translator.continuations(["a b"], [longest], count=2)
    assert all(continuation.text.startswith(longest) for continuation in row)
    with pytest.raises(ValueError, match="has 12 tokens, and a translation has at most 11; sho"):
        translator.continuations(["a b"], [longest + "a"])


def test_settings_that_make_no_sense(translator):
    for beam_size in (0, 2.5):
        message = f"beam_size={beam_size} must be a whole number of at least 1"
        with pytest.raises(ValueError, match=message):
            translator.translate(["Hello."], beam_size=beam_size)
    with pytest.raises(ValueError, match="length_penalty=nan must be a number of at least 0"):
        translator.translate(["Hello."], length_penalty=float("nan"))
    for temperature in (0, -1, math.nan, math.inf):
        message = f"temperature={temperature} must be a finite number above 0"
        with pytest.raises(ValueError, match=message):
            translator.sample(["Hello."], seed=1, temperature=temperature)
    with pytest.raises(ValueError, match="top_p=0 must be above 0 and at most 1"):
        translator.sample(["Hello."], seed=1, top_p=0)
    with pytest.raises(ValueError, match="2 sources and 1 targets cannot be paired; pass one"):
        translator.score(["Hello.", "Yes."], ["Hallo."])


def test_weights_that_are_not_numbers_are_noticed():
    broken = untrained_translator()
    broken.model.set_weights([weight * np.nan for weight in broken.model.get_weights()])
    message = "the model's score for a sentence is not finite: its weights are damaged"
    for beam_size in (1, 2):
        with pytest.raises(ValueError, match=message):
            broken.translate(["a b"], beam_size)
    with pytest.raises(ValueError, match=message):
        broken.score(["a b"], ["c d"])


def test_an_unfinished_run_says_what_is_missing(tiny_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run, ignore=shutil.ignore_patterns("best.weights.h5"))
    with pytest.raises(FileNotFoundError, match=r"has no best.weights.h5 yet: no validation has"):
        Translator.load(run)


# Truncation

LONG = "a b c d e f g h a b c d"


@pytest.fixture(scope="module")
def untrained() -> Translator:
    """A translator that reads up to 7 tokens of a sentence."""
    return untrained_translator(max_length=8)


@pytest.mark.parametrize(
    "call",
    [
        lambda translator: translator.translate(["a", LONG], beam_size=1),
        lambda translator: translator.n_best(["a", LONG], beam_size=1),
        lambda translator: translator.sample(["a", LONG], seed=1),
    ],
)
def test_truncated_sentences_are_one_warning_at_the_line_of_the_call(untrained, call):
    message = "^1 of 2 sentences had more than 7 tokens, the model's limit, and were truncated$"
    with pytest.warns(UserWarning, match=message) as caught:
        call(untrained)
    assert [warning.filename for warning in caught] == [__file__]


def test_both_sides_of_a_score_are_one_warning(untrained):
    with pytest.warns(UserWarning, match="^3 of 4 sentences had more than 7 tokens") as caught:
        untrained.score(["a", LONG], [LONG, LONG])
    assert len(caught) == 1


def test_encoded_sentences_are_counted_by_the_caller_and_translated_alike(untrained):
    with pytest.warns(UserWarning, match="1 of 2 sentences"):
        expected = untrained.translate(["a", LONG], beam_size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = untrained.encode(["a", LONG])
        assert untrained.translate(encoded, beam_size=1) == expected
        assert [best.text for [best] in untrained.n_best(encoded, beam_size=1)] == expected
        scores = untrained.score(encoded, untrained.encode_targets(expected))
    assert encoded.truncated == 1
    assert len(scores) == 2


# Seeds


@pytest.mark.parametrize("batch_size", [0, -1, 1.5])
@pytest.mark.parametrize("verb", ["n_best", "sample"])
def test_a_batch_has_a_whole_number_of_sentences(translator, verb, batch_size):
    settings = {"seed": 1} if verb == "sample" else {}
    with pytest.raises(ValueError, match=f"^batch_size={batch_size} must be a whole number of at"):
        getattr(translator, verb)(["a"], batch_size=batch_size, **settings)


def test_no_batch_of_one_seed_draws_the_numbers_of_another_seed(untrained):
    """64 equal sentences per batch, two batches per seed.

    The second batch must not equal the first batch of seed + 64.
    """
    drawn = untrained.sample(["a b c"] * 128, seed=1, temperature=2.0)
    assert drawn[:64] == untrained.sample(["a b c"] * 64, seed=1, temperature=2.0)
    for seed in (1, 2, 65):
        of_seed = untrained.sample(["a b c"] * 64, seed=seed, temperature=2.0)
        equal = np.mean([a == b for a, b in zip(drawn[64:], of_seed, strict=True)])
        assert equal < 0.3
