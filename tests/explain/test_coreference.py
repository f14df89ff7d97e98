"""The search for the head that resolves "it".

The attention is made up, with a known answer.
"""

import numpy as np
import pytest

from tfformer.config import DecodingConfig
from tfformer.data.phrasebook import Pair
from tfformer.data.tokenizers import Tokenizer
from tfformer.explain.attention import Attention, AttentionMaps, attention
from tfformer.explain.coreference import (
    HeadScore,
    Mention,
    draw_pronoun,
    find_coreference_head,
    head_scores,
    mention,
    noun_influence,
    pronoun_accuracy,
    table,
    word_maps,
)
from tfformer.explain.influence import Decision, Hidden, log_odds
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Tokenizers

WORDS = ("the", "big", "cat", "saw", "a", "dog", "because", "it", "slept")
CAT, DOG, IT = (0, 1, 2), (4, 5), 7
CAT_SLEPT, DOG_SLEPT = Mention(IT, CAT, DOG), Mention(IT, DOG, CAT)
LINKS = tuple((n, n) for n in range(9))


def cat_and_dog(antecedent: tuple, distractor: tuple, pronoun: str) -> Pair:
    return Pair(
        "The cat saw the dog because it was big.",
        f"Die Katze sah den Hund, weil {pronoun} alt war.",
        "coreference",
        LINKS,
        antecedent,
        distractor,
        (6, 6),
    )


PAIRS = [cat_and_dog((0, 1), (3, 4), "sie"), cat_and_dog((3, 4), (0, 1), "er")]


@pytest.fixture(scope="module")
def translator() -> Translator:
    """A model of random weights that reads the two pairs."""
    texts = [text for pair in PAIRS for text in (pair.source, pair.target)]
    tokenizer = Tokenizer.train(texts, 60, "bpe")
    sizes = {"num_layers": 2, "num_decoder_layers": 3, "d_model": 16, "num_heads": 2, "d_ff": 24}
    vocabulary = tokenizer.vocab_size
    model = Transformer(vocabulary, vocabulary, **sizes)
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.4, size=w.shape) for w in model.get_weights()])
    both = Tokenizers(tokenizer, tokenizer)
    return Translator(model, both, DecodingConfig(beam_size=1), max_length=40)


def made_up_maps(mentions: list[Mention]) -> list[AttentionMaps]:
    """Four heads, of which one resolves the pronoun.

    The others look at the first noun, at the pronoun itself, and faintly at the right noun.
    """
    maps = []
    for one in mentions:
        weights = np.zeros((1, 4, len(WORDS), len(WORDS)), np.float32)
        resolves, first, itself, faint = weights[0, :, IT]
        resolves[list(one.antecedent)] = 0.75 / len(one.antecedent)
        resolves[list(one.distractor)] = 0.25 / len(one.distractor)
        first[[0, 1, 2]] = 1 / 3
        itself[IT] = 1.0
        faint[one.antecedent[-1]] = 0.01
        faint[IT] = 0.99
        maps.append(AttentionMaps("encoder", WORDS, WORDS, weights))
    return maps


def test_head_scores_of_made_up_heads():
    mentions = [CAT_SLEPT, CAT_SLEPT, DOG_SLEPT]
    resolves, first, itself, faint = head_scores(made_up_maps(mentions), mentions)
    assert [score[:3] for score in (resolves, first, itself, faint)] == [
        ("encoder", 1, head) for head in (1, 2, 3, 4)
    ]
    assert resolves[3:] == pytest.approx((0.75, 0.25, 1, 1))
    assert first[3:] == pytest.approx((2 / 3, 1 / 3, 1, 0))
    assert itself[3:] == (0, 0, 0, 0)
    assert faint[3:] == pytest.approx((0.01, 0, 1, 1))


def test_a_head_resolves_by_accuracy_above_chance_and_by_weight():
    mentions = [CAT_SLEPT, CAT_SLEPT, DOG_SLEPT]
    scores = head_scores(made_up_maps(mentions), mentions)
    resolution = [score.resolution for score in scores]
    assert resolution == pytest.approx([0.75, 0.0, 0.0, 0.01])
    assert [score.balanced for score in scores] == [1, 0.5, 0, 1]


def test_a_noun_phrase_counts_as_a_whole():
    """The article counts together with its noun.

    The article of the right noun phrase alone gets less than the other noun, with its noun more.
    """
    weights = np.zeros((1, 1, len(WORDS), len(WORDS)), np.float32)
    weights[0, 0, IT, [4, 5]] = 0.3
    weights[0, 0, IT, 2] = 0.4
    maps = AttentionMaps("encoder", WORDS, WORDS, weights)
    [score] = head_scores([maps, maps], [DOG_SLEPT, CAT_SLEPT])
    assert (score.first, score.second) == (0, 1)


@pytest.mark.parametrize("one", [CAT_SLEPT, DOG_SLEPT])
def test_one_order_of_the_nouns_alone_tells_nothing(one):
    with pytest.raises(ValueError, match=r"always the first or always the second .* both orders"):
        head_scores(made_up_maps([one, one]), [one, one])


def test_a_mention_counts_words_of_each_kind_of_map():
    """German: Die Katze sah den Hund, weil sie ...

    The decoder reads <s> before "Die".
    """
    assert mention(PAIRS[0], "encoder") == Mention(6, (0, 1), (3, 4))
    assert mention(PAIRS[0], "cross") == Mention(6, (0, 1), (3, 4))
    assert mention(PAIRS[0], "decoder") == Mention(6, (1, 2), (4, 5))


def test_a_pair_without_a_pronoun_has_no_mention():
    with pytest.raises(ValueError, match=r"'The dog.' has no pronoun; give a pair of the family"):
        mention(Pair("The dog.", "Der Hund.", "statement", ()), "cross")


def test_rows_of_the_decoder_are_named_by_the_word_that_they_write():
    """Each row of pieces has all weight on one column, by which it can be told apart."""
    read, written = ("<s>", "▁Ti", "er", "▁es"), ("▁Ti", "er", "▁es", "</s>")
    weights = np.zeros((1, 1, 4, 4), np.float32)
    weights[0, 0, [0, 1, 2, 3], [0, 0, 2, 3]] = 1
    decoder = AttentionMaps("decoder", read, read, weights)
    cross = AttentionMaps("cross", written, ("▁it", "</s>"), weights[..., :2])
    words = word_maps(Attention(cross, decoder, cross), "decoder")
    assert words.rows == ("Tier", "es", "</s>")
    assert words.columns == ("<s>", "Tier", "es")
    np.testing.assert_allclose(words.weights[0, 0], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_find_coreference_head_reads_the_pronouns_of_both_sides(translator):
    others = [Pair("The dog.", "Der Hund.", "statement", ())]
    scores = find_coreference_head(translator, PAIRS + others)
    assert len(scores) == 2 * 2 + 3 * 2 + 3 * 2
    resolutions = [score.resolution for score in scores]
    assert resolutions == sorted(resolutions, reverse=True)
    found = [attention(translator, pair.source, pair.target) for pair in PAIRS]
    for score in scores:
        wanted = []
        for one, pronoun, nouns in zip(found, ("sie", "er"), ((0, 1), (3, 4)), strict=True):
            maps = word_maps(one, score.kind)
            assert maps.rows[6] == ("it" if score.kind == "encoder" else pronoun)
            columns = [noun + (score.kind == "decoder") for noun in nouns]
            wanted.append(maps.weights[score.layer - 1, score.head - 1, 6, columns].sum())
        assert score.antecedent == pytest.approx(np.mean(wanted))


def test_find_coreference_head_needs_coreference(translator):
    with pytest.raises(ValueError, match="none of the pairs is a coreference sentence"):
        find_coreference_head(translator, [Pair("The dog.", "Der Hund.", "statement", ())])


def test_pronoun_accuracy():
    translations = ["Die Katze sah den Hund, weil sie alt war.", "Die Katze sah, weil es alt war."]
    assert pronoun_accuracy(translations, PAIRS) == 0.5
    assert pronoun_accuracy(["Hund.", ""], PAIRS) == 0


def test_noun_influence_hides_a_noun_phrase_in_both_languages(translator):
    """The second pair means the other noun, of the same sentence."""
    measured = noun_influence(translator, [*PAIRS, Pair("A dog.", "Ein Hund.", "statement", ())])
    katze = Hidden(source=(0, 1), target=(0, 1))
    hund = Hidden(source=(3, 4), target=(3, 4))
    decisions = [
        Decision(PAIRS[0].source, PAIRS[0].target, 6, ("er", "es")),
        Decision(PAIRS[1].source, PAIRS[1].target, 6, ("sie", "es")),
    ]
    seen = log_odds(translator, decisions, [Hidden()] * 2)
    right = seen - log_odds(translator, decisions, [katze, hund])
    other = seen - log_odds(translator, decisions, [hund, katze])
    expected = (right.mean(), other.mean(), *map(float, right > other))
    assert measured == pytest.approx(expected, abs=1e-6)


def test_draw_pronoun_draws_the_words_that_decide_the_pronoun(translator, tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        "tfformer.explain.coreference.draw_influences",
        lambda measured, path: drawn.update(measured=measured, path=path),
    )
    monkeypatch.setattr(Translator, "translate", lambda *_: [PAIRS[0].target])
    path = tmp_path / "it.png"
    assert draw_pronoun(translator, PAIRS[0].source, path) == PAIRS[0].target
    assert drawn["path"] == path
    assert drawn["measured"].decided == "sie"
    assert drawn["measured"].target_words == ("Die", "Katze", "sah", "den", "Hund,", "weil")


def test_a_translation_without_a_pronoun_cannot_be_drawn(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(Translator, "translate", lambda *_: ["Gut."])
    with pytest.raises(
        ValueError, match=r"'Gut\.' has none of the pronouns .* behind a conjunction"
    ):
        draw_pronoun(translator, "Good.", tmp_path / "it.png")
    assert not list(tmp_path.iterdir())


def test_the_table_has_a_line_a_head():
    score = HeadScore("cross", 2, 11, 0.6071, 0.0322, 1.0, 0.25)
    title, line = table([score]).splitlines()
    assert line.split() == ["cross", "2", "11", "60.7%", "3.2%", "100.0%", "25.0%", "62.5%"]
    assert len(title) == len(line)
