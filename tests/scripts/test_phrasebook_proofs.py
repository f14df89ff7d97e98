"""What the scripts that measure tags and terms count as right."""

import phrasebook_tags
import phrasebook_terms
import pytest


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("Wo bist du?", True),
        ("Du bist wo?", False),  # "Du" is not "du"
        ("Wo sind Sie?", False),
        ("Wo bist du, Sie?", False),
        ("Wo sind du?", False),
        ("Wo bist du jetzt?", True),  # other words are not counted
    ],
)
def test_a_form_of_address_is_right_with_all_its_words(text, is_right):
    assert phrasebook_tags.has_form(text, "Wo bist du?", "Wo sind Sie?") is is_right


def test_pronouns_of_address():
    assert phrasebook_tags.pronouns("Du gibst ihr deinen Hut.") == ["Du", "deinen", "ihr"]


def test_the_form_of_a_term_is_the_word_with_its_gloss():
    german = "der/the:dog teure/expensive:dog Hund/dog schläft/sleep ."
    forms = phrasebook_terms.forms_of("expensive", "Der teure Hund schläft.", german)
    assert list(forms) == ["teure"]


def test_a_term_is_replaced_by_words_of_its_kind():
    words = {word.english: word for word in phrasebook_terms.words()}
    assert words["dogs"].german == "Hunde"
    assert words["dogs"].kind == ("noun", True) != words["dog"].kind
    assert words["old"].kind == ("adjective", False)
