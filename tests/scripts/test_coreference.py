"""How much a pronoun depends on each noun phrase of a sentence."""

import coreference
import numpy as np
import pytest

from tfformer.data.phrasebook import Pair
from tfformer.data.tokenizers import Tokenizer
from tfformer.explain.influence import Decision, Hidden, log_odds
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer

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
    """A model with random weights that reads the two pairs."""
    texts = [text for pair in PAIRS for text in (pair.source, pair.target)]
    tokenizer = Tokenizer.train(texts, 60, "bpe")
    sizes = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24}
    vocabulary = tokenizer.vocab_size
    model = Transformer(vocabulary, vocabulary, **sizes)
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.4, size=w.shape) for w in model.get_weights()])
    return Translator(model, tokenizer, beam_size=1, max_length=40)


def test_noun_influence_hides_a_noun_phrase_in_both_languages(translator):
    """In the second pair, the pronoun refers to the other noun of the same sentence."""
    measured = coreference.noun_influence(translator, PAIRS)
    katze = Hidden(source=(0, 1), target=(0, 1))
    hund = Hidden(source=(3, 4), target=(3, 4))
    decisions = [
        Decision(PAIRS[0].source, PAIRS[0].target, 6, ("er", "es")),
        Decision(PAIRS[1].source, PAIRS[1].target, 6, ("sie", "es")),
    ]
    seen = log_odds(translator, decisions, [Hidden()] * 2)
    right = seen - log_odds(translator, decisions, [katze, hund])
    wrong = seen - log_odds(translator, decisions, [hund, katze])
    expected = (right.mean(), wrong.mean(), *map(float, right > wrong))
    assert measured == pytest.approx(expected, abs=1e-6)


def test_a_translation_without_a_pronoun_is_refused():
    with pytest.raises(ValueError, match=r"'Gut\.' must contain one of the pronouns "):
        coreference.pronoun_decision("Good.", "Gut.")
