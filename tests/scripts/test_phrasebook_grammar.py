"""The phrasebook's grammar against hand-written translations.

A table of genders and the phrasebook's own promises are further witnesses.
"""

import gzip
from collections import Counter

import phrasebook
import pytest
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
HAND_WRITTEN = {
    # statements: the three genders, strong, weak and mixed endings, accusative and dative, polite
    # address
    "I buy a small suitcase.": "Ich kaufe einen kleinen Koffer.",
    "She ordered fresh cheese.": "Sie bestellte frischen Käse.",
    "They drink cold milk.": "Sie trinken kalte Milch.",
    "We wore the red shoes.": "Wir trugen die roten Schuhe.",
    "The old woman helped her daughter.": "Die alte Frau half ihrer Tochter.",
    "The girl thanks the young woman.": "Das Mädchen dankt der jungen Frau.",
    "My mother waits for him.": "Meine Mutter wartet auf ihn.",
    "The students help the boy.": "Die Studenten helfen dem Jungen.",
    "The girl visited you.": "Das Mädchen besuchte Sie.",
    # separable verbs: apart, joined in the last place, with -ge- and with -zu-
    "He closes the window.": "Er macht das Fenster zu.",
    "The teacher called my aunt.": "Der Lehrer rief meine Tante an.",
    "I know that he picked up my father.": "Ich weiß, dass er meinen Vater abholte.",
    "Our uncle has invited us.": "Unser Onkel hat uns eingeladen.",
    "She promised to call him.": "Sie versprach, ihn anzurufen.",
    "My mother forgot to close the window.": "Meine Mutter vergaß, das Fenster zuzumachen.",
    "He tried to repair the radio.": "Er versuchte, das Radio zu reparieren.",
    # the verb in second place
    "Yesterday my mother sold the lamp.": "Gestern verkaufte meine Mutter die Lampe.",
    "Today the young man turns off the lamp.": "Heute macht der junge Mann die Lampe aus.",
    # negation
    "I don't need a table.": "Ich brauche keinen Tisch.",
    "They didn't order water.": "Sie bestellten kein Wasser.",
    "He didn't open the door.": "Er machte die Tür nicht auf.",
    "We didn't wait for the train.": "Wir warteten nicht auf den Zug.",
    "She doesn't thank the doctor.": "Sie dankt dem Arzt nicht.",
    # questions
    "Do you need the umbrella?": "Brauchen Sie den Regenschirm?",
    "Has your brother called them?": "Hat Ihr Bruder sie angerufen?",
    "Why does she look for the boy?": "Warum sucht sie den Jungen?",
    "Where can I buy a black shirt?": "Wo kann ich ein schwarzes Hemd kaufen?",
    "Which shirt does she wear?": "Welches Hemd trägt sie?",
    "How much do the shoes cost?": "Wie viel kosten die Schuhe?",
    "How do I get from the hotel to the station?": "Wie komme ich vom Hotel zum Bahnhof?",
    "Is there a pharmacy next to the hotel?": "Gibt es eine Apotheke neben dem Hotel?",
    # modal verbs and subordinate clauses
    "You can't move your left arm.": "Sie können Ihren linken Arm nicht bewegen.",
    "He wants to visit our son.": "Er will unseren Sohn besuchen.",
    "I was sad because he lost the key.": "Ich war traurig, weil er den Schlüssel verlor.",
    "We were happy although they sold the car.": (
        "Wir waren glücklich, obwohl sie das Auto verkauften."
    ),
    "I am happy because she has called my father.": (
        "Ich bin glücklich, weil sie meinen Vater angerufen hat."
    ),
    "If it rains, my brother takes the bus.": "Wenn es regnet, nimmt mein Bruder den Bus.",
    "When the guests arrive, we open the door.": "Wenn die Gäste ankommen, machen wir die Tür auf.",
    # two objects, places, going
    "She gave the boy a new book.": "Sie gab dem Jungen ein neues Buch.",
    "He shows me a long letter.": "Er zeigt mir einen langen Brief.",
    "The key is in the bag.": "Der Schlüssel ist in der Tasche.",
    "I have put the key into the bag.": "Ich habe den Schlüssel in die Tasche gelegt.",
    "The hotel is in front of the park.": "Das Hotel ist vor dem Park.",
    "They have gone to the church with him.": "Sie sind mit ihm zur Kirche gegangen.",
    # numbers, times, comparison
    "We need five fresh apples.": "Wir brauchen fünf frische Äpfel.",
    "The coat costs seventy-five euros.": "Der Mantel kostet fünfundsiebzig Euro.",
    "Her son is sixteen years old.": "Ihr Sohn ist sechzehn Jahre alt.",
    "The train leaves at half past seven.": "Der Zug fährt um halb acht ab.",
    "We got up at quarter to one.": "Wir standen um Viertel vor eins auf.",
    "The bus arrived at one o'clock.": "Der Bus kam um ein Uhr an.",
    "The sofa is more expensive than the table.": "Das Sofa ist teurer als der Tisch.",
    # the phrasebook proper
    "I would like a quiet room with a shower for three nights.": (
        "Ich möchte ein ruhiges Zimmer mit einer Dusche für drei Nächte."
    ),
    "Could you bring us a bottle of water, please?": (
        "Könnten Sie uns bitte eine Flasche Wasser bringen?"
    ),
    "The soup is too salty for my aunt.": "Die Suppe ist zu salzig für meine Tante.",
    "My father likes the green coat.": "Meinem Vater gefällt der grüne Mantel.",
    "Turn left at the church and then go straight ahead to the bridge.": (
        "Biegen Sie an der Kirche links ab und gehen Sie dann geradeaus bis zur Brücke."
    ),
    "It is very cold in Munich today.": "Heute ist es in München sehr kalt.",
    "My right knee has hurt since Monday.": "Mein rechtes Knie tut seit Montag weh.",
    # everyday life: the present tense, requests, habits
    "They are waiting for the bus.": "Sie warten auf den Bus.",
    "My mother is turning off the radio.": "Meine Mutter macht das Radio aus.",
    "Are you looking for your key?": "Suchen Sie Ihren Schlüssel?",
    "She will call my aunt tomorrow.": "Morgen wird sie meine Tante anrufen.",
    "We will buy a car.": "Wir werden ein Auto kaufen.",
    "Please close the window.": "Bitte machen Sie das Fenster zu.",
    "Please help me.": "Bitte helfen Sie mir.",
    "Could you call my friend, please?": "Könnten Sie bitte meinen Freund anrufen?",
    "Could you help me, please?": "Könnten Sie mir bitte helfen?",
    "Please give me the book.": "Bitte geben Sie mir das Buch.",
    "Could you bring us two glasses of water, please?": (
        "Könnten Sie uns bitte zwei Gläser Wasser bringen?"
    ),
    "Three cups of coffee, please.": "Drei Tassen Kaffee, bitte.",
    "I would like two tickets to Vienna, please.": "Ich möchte zwei Fahrkarten nach Wien, bitte.",
    "Every day my brother takes the bus.": "Jeden Tag nimmt mein Bruder den Bus.",
    "Her sister works at home.": "Ihre Schwester arbeitet zu Hause.",
    "He doesn't sleep well.": "Er schläft nicht gut.",
    "They don't work today.": "Sie arbeiten heute nicht.",
    "She wants to stay here.": "Sie will hier bleiben.",
    "Where does your brother work?": "Wo arbeitet Ihr Bruder?",
    "I am tired.": "Ich bin müde.",
    "We were not hungry.": "Wir waren nicht hungrig.",
    "Is your mother sick?": "Ist Ihre Mutter krank?",
    "I don't have a dog.": "Ich habe keinen Hund.",
    "Do you have a black umbrella?": "Haben Sie einen schwarzen Regenschirm?",
    "She doesn't like coffee.": "Sie mag keinen Kaffee.",
    "Do you like cold milk?": "Mögen Sie kalte Milch?",
    "He loves her.": "Er liebt sie.",
    "I understand you.": "Ich verstehe Sie.",
    # languages, homes, introductions
    "Do you speak English?": "Sprechen Sie Englisch?",
    "I speak a little German.": "Ich spreche ein wenig Deutsch.",
    "They don't speak Polish.": "Sie sprechen kein Polnisch.",
    "I am from Berlin.": "Ich komme aus Berlin.",
    "She comes from Austria.": "Sie kommt aus Österreich.",
    "We live in Cologne.": "Wir wohnen in Köln.",
    "My name is Anna.": "Ich heiße Anna.",
    "His name is Peter.": "Er heißt Peter.",
    "I am Maria Koch.": "Ich bin Maria Koch.",
    "Good morning, Mrs. Weber.": "Guten Morgen, Frau Weber.",
    "Thank you, Mr. Klein.": "Danke, Herr Klein.",
    "This is my brother.": "Das ist mein Bruder.",
    "How is your mother?": "Wie geht es Ihrer Mutter?",
    "How old is his daughter?": "Wie alt ist seine Tochter?",
    # the way and the time
    "Where is the station?": "Wo ist der Bahnhof?",
    "Where is the nearest pharmacy?": "Wo ist die nächste Apotheke?",
    "Where are my new shoes?": "Wo sind meine neuen Schuhe?",
    "How far is it from the hotel to the beach?": "Wie weit ist es vom Hotel zum Strand?",
    "When does the train to Munich arrive?": "Wann kommt der Zug nach München an?",
    "What time does the next bus to Rome leave?": (
        "Um wie viel Uhr fährt der nächste Bus nach Rom ab?"
    ),
    "When does the museum open?": "Wann macht das Museum auf?",
    "The last train to Hamburg leaves at quarter to one.": (
        "Der letzte Zug nach Hamburg fährt um Viertel vor eins ab."
    ),
    "It is half past twelve.": "Es ist halb eins.",
    # coreference: each gender on either side
    "The dog couldn't cross the bridge because it was too narrow.": (
        "Der Hund konnte die Brücke nicht überqueren, weil sie zu eng war."
    ),
    "The cat didn't climb the tree because it was too scared.": (
        "Die Katze kletterte nicht auf den Baum, weil sie zu ängstlich war."
    ),
    "This horse can't jump over the ditch because it is too wide.": (
        "Dieses Pferd kann nicht über den Graben springen, weil er zu breit ist."
    ),
    "A goat crossed the valley although it was very deep.": (
        "Eine Ziege überquerte das Tal, obwohl es sehr tief war."
    ),
    "My radio didn't fit into the bag because it was too big.": (
        "Mein Radio passte nicht in die Tasche, weil es zu groß war."
    ),
    "My radio didn't fit into the bag because it was too small.": (
        "Mein Radio passte nicht in die Tasche, weil sie zu klein war."
    ),
    **FAMOUS,
}
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
    """The whole grammar: English sentence -> what the rule wrote."""
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
    assert {found for found in drawn if found[0] in CHOSEN} <= CHOSEN.items()


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
    written = {source: phrasebook.spell(grammar[source].german) for source in HAND_WRITTEN}
    assert written == HAND_WRITTEN


def test_alignment_is_ordered_and_in_range(everything):
    for pair in everything:
        source, target = len(pair.source.split()), len(pair.target.split())
        assert pair.alignment == tuple(sorted(set(pair.alignment)))
        assert all(0 <= i < source and 0 <= j < target for i, j in pair.alignment)


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


def test_every_pair_is_grammatical(everything):
    assert all(phrasebook.is_grammatical(pair.source, "en") for pair in everything)
    assert all(phrasebook.is_grammatical(pair.target, "de") for pair in everything)


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
