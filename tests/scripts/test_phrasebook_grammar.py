"""Compare the phrasebook's grammar with hand-written translations and a table of genders.

The phrasebook's documented properties are tested too.
"""

import gzip
from collections import Counter
from pathlib import Path

import phrasebook
import pytest
from phrasebook.inflection import second_person
from phrasebook.rules import CHOSEN

from tfformer.data.phrasebook import FOLDER, SPLITS

pytestmark = pytest.mark.nightly

FAMOUS = {
    "The animal didn't cross the street because it was too tired.": (
        "Das Tier überquerte die Straße nicht, weil es zu müde war."
    ),
    "The animal didn't cross the street because it was too wide.": (
        "Das Tier überquerte die Straße nicht, weil sie zu breit war."
    ),
}
SENTENCES = Path(__file__).parents[1] / "support" / "hand_written.tsv"
NOUNS_OF_PRONOUN = {
    "er": """Hund Esel Fuchs Bär Affe Bus Lastwagen Traktor Koffer Pokal Ball Regenschirm Spiegel
        Tisch Platz Fluss Bach Berg Hügel Baum Zaun Graben Stall Wald Tunnel Apfel Käse Schrank
        Rucksack""",
    "sie": """Katze Kuh Ziege Maus Ente Kutsche Kiste Gitarre Lampe Kamera Zeitung Straße Brücke
        Wiese Mauer Hecke Höhle Scheune Birne Karotte Wurst Suppe Küche Tasche Schublade""",
    "es": """Tier Pferd Schwein Schaf Kaninchen Huhn Eichhörnchen Auto Fahrrad Bild Sofa Buch Radio
        Tal Feld Eis Dach Tor Loch Zimmer Haus Brot Fleisch Ei""",
}
PRONOUN_OF_NOUN = {
    noun: pronoun for pronoun, nouns in NOUNS_OF_PRONOUN.items() for noun in nouns.split()
}


@pytest.fixture(scope="module")
def corpus():
    return {split: phrasebook.drawn(split) for split in SPLITS}


@pytest.fixture(scope="module")
def everything(corpus):
    return [pair for pairs in corpus.values() for pair in pairs]


@pytest.fixture(scope="module")
def grammar():
    """The whole grammar: English sentence -> the rule's output."""
    return {
        phrasebook.spell(sentence.english): sentence for sentence in phrasebook.every_sentence()
    }


@pytest.mark.parametrize("split", SPLITS)
def test_the_package_contains_what_the_grammar_writes(split):
    shipped = gzip.decompress((FOLDER / f"{split}.tsv.gz").read_bytes())
    assert shipped.decode("utf-8") == phrasebook.table(split)


def words(sentence):
    return [word.strip(".,?") for word in sentence.split()]


def combinations(pairs):
    return {pair.combination for pair in pairs}


def test_combinations_of_words_are_held_out(corpus):
    train, valid, test = (combinations(corpus[split]) for split in SPLITS)
    assert train.isdisjoint(valid)
    assert train.isdisjoint(test)
    assert valid.isdisjoint(test)


def test_a_chosen_combination_is_in_no_other_split(corpus):
    drawn = {(pair.combination, split) for split in SPLITS for pair in corpus[split]}
    assert {combination for combination in drawn if combination[0] in CHOSEN} <= CHOSEN.items()


def test_every_word_of_valid_and_test_is_in_train(corpus):
    for side in ("source", "target"):
        known = {word for pair in corpus["train"] for word in words(getattr(pair, side))}
        used = {
            word
            for split in ("valid", "test")
            for pair in corpus[split]
            for word in words(getattr(pair, side))
        }
        assert used <= known


def test_the_famous_sentences_are_tested_and_not_trained(corpus):
    assert FAMOUS.items() <= {pair.source: pair.target for pair in corpus["test"]}.items()
    for split in ("train", "valid"):
        assert not FAMOUS.keys() & {pair.source for pair in corpus[split]}


def test_hand_written_translations(grammar):
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(pairs) > 100
    for source, target in [*pairs, *FAMOUS.items()]:
        assert phrasebook.spell(grammar[source].german) == target


@pytest.mark.parametrize(
    ("polite", "familiar"),
    [
        ("Bitte setzen Sie sich.", "Bitte setz dich."),
        ("Bitte warten Sie auf den Bus.", "Bitte warte auf den Bus."),
        ("Bitte nehmen Sie das Taxi.", "Bitte nimm das Taxi."),
        ("Bitte laden Sie uns ein.", "Bitte lad uns ein."),
        ("Sind Sie müde?", "Bist du müde?"),
        ("Sprechen Sie Deutsch?", "Sprichst du Deutsch?"),
        ("Bitte lesen Sie dieses Buch.", "Bitte lies dieses Buch."),
        ("Woher kommen Sie?", "Woher kommst du?"),
        ("Wie geht es Ihrem Vater?", "Wie geht es deinem Vater?"),
        ("Könnten Sie mir bitte helfen?", "Könntest du mir bitte helfen?"),
        ("Ihnen gefällt die Lampe.", "Dir gefällt die Lampe."),
    ],
)
def test_du_in_hand_written_sentences(everything, polite, familiar):
    known = {pair.target: pair.familiar for pair in everything}
    assert known[polite] == familiar


@pytest.mark.parametrize(
    ("third", "tense", "second"),
    [
        ("arbeitet", "Präsens", "arbeitest"),
        ("sitzt", "Präsens", "sitzt"),
        ("wird", "Präsens", "wirst"),
        ("weiß", "Präsens", "weißt"),
        ("möchte", "Präsens", "möchtest"),
        ("einlädt", "Präsens am Ende", "einlädst"),
        ("hat", "Hilfsverb", "hast"),
        ("verstand", "Präteritum", "verstandest"),
        ("wusste", "Präteritum", "wusstest"),
        ("war", "Präteritum", "warst"),
    ],
)
def test_the_second_person_of_a_dictionary(third, tense, second):
    assert second_person(third, tense) == second


def test_every_target_word_is_aligned(everything):
    for pair in everything:
        assert {j for _, j in pair.alignment} == set(range(len(pair.target.split()))), pair


@pytest.mark.parametrize(
    ("source", "links"),
    [
        (
            "The animal didn't cross the street because it was too wide.",
            "0-0 1-1 2-5 3-2 4-3 5-4 6-6 7-7 8-10 9-8 10-9",
        ),
        ("He closes the window.", "0-0 1-1 1-4 2-2 3-3"),
        ("How do I get from the hotel to the station?", "0-0 1-1 2-2 3-1 4-3 5-3 6-4 7-5 8-5 9-6"),
        ("They didn't order water.", "0-0 1-2 2-1 3-3"),
        ("I have put the key into the bag.", "0-0 1-1 2-7 3-2 4-3 5-4 6-5 7-6"),
        ("My father likes the green coat.", "0-0 1-1 2-2 3-3 4-4 5-5"),
        ("I like this black suitcase.", "0-0 1-1 2-2 3-3 4-4"),
    ],
)
def test_known_alignments(grammar, source, links):
    alignment = phrasebook.align(grammar[source].english, grammar[source].german)
    assert " ".join(f"{i}-{j}" for i, j in alignment) == links


def test_the_pronoun_has_the_gender_of_its_antecedent_and_not_of_the_other_noun(everything):
    antecedents = Counter()
    for pair in everything:
        if pair.family != "coreference":
            assert (pair.antecedent, pair.distractor, pair.pronoun) == ((), (), None)
            continue
        source, target, links = words(pair.source), words(pair.target), dict(pair.alignment)
        antecedent, distractor = (
            target[links[phrase[-1]]] for phrase in (pair.antecedent, pair.distractor)
        )
        it, pronoun = pair.pronoun
        assert source[it] == "it"
        assert links[it] == pronoun
        assert target[pronoun] == PRONOUN_OF_NOUN[antecedent] != PRONOUN_OF_NOUN[distractor]
        antecedents[target[pronoun], pair.antecedent < pair.distractor] += 1
    assert len(antecedents) == 6
    assert min(antecedents.values()) > 200


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Das Tier überquerte den Straße nicht, weil es zu müde war.", "de"),
        ("Das Tier überquerte die Straße nicht, weil er zu müde war.", "de"),
        ("Das Tier überquerte die Straße nicht, weil es war zu müde.", "de"),
        ("Gestern meine Mutter verkaufte die Lampe.", "de"),
        ("Ich kaufe einen kleiner Koffer.", "de"),
        ("Er zumacht das Fenster.", "de"),
        ("Der Zug fährt um halb acht.", "de"),
        ("The animal didn't crossed the street because it was too tired.", "en"),
        ("The animal didn't cross street because it was too tired.", "en"),
        ("My mother sold yesterday the lamp.", "en"),
        ("I buy an small suitcase.", "en"),
        ("He closes the window.", "de"),
        ("", "en"),
    ],
)
def test_what_the_grammar_does_not_write(sentence, language):
    assert not phrasebook.is_grammatical(sentence, language)
