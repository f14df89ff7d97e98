"""Rules read out of a SentencePiece model, against SentencePiece itself."""

import random
import unicodedata

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tfformer.data import tokenizers
from tfformer.data.normalization import PLAIN, plain_rules, rules_of


@pytest.fixture(scope="module")
def charsmap():
    model = tokenizers.train(["a b c d"] * 20, 9)
    return sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap


def test_the_rules_are_what_sentencepiece_makes_of_each_text(charsmap):
    rules = dict(rules_of(charsmap))
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    some = random.Random(1).sample(sorted(rules), 5000)
    for text in some:
        shown = normalizer.normalize(f"x{text}x").replace("▁", " ")  # it joins and adds blanks
        assert shown.split() == f"x{rules[text]}x".split()


def test_there_is_a_rule_for_every_composed_and_every_wide_character(charsmap):
    rules = dict(rules_of(charsmap))
    changed = [chr(code) for code in range(0xA0, 0x3000) if unicodedata.name(chr(code), "")]
    changed = [text for text in changed if unicodedata.normalize("NFKC", text) != text]
    missing = [text for text in changed if text not in rules]
    assert len(missing) <= 0.02 * len(changed), missing  # Unicode has grown since


@pytest.mark.slow
def test_the_plain_rules_are_the_others_and_the_quotes(charsmap):
    usual = dict(rules_of(charsmap))
    lines = [line.split("\t") for line in plain_rules(charsmap).splitlines()]
    assert {read(text): read(other) for text, other in lines} == usual | PLAIN


def read(code_points):
    return "".join(chr(int(code, 16)) for code in code_points.split())
