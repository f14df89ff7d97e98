"""The words of the phrasebook and how they inflect in English and German. Knows no sentence.

Words and phrases are written through `format`. An English form is asked for by its English name (`{verb:past}`), a
German form by its German name (`{verb:Präteritum}`, `{phrase:Akkusativ}`). What comes back is glossed: `Tier/animal`
says that "Tier" renders "animal", and an English and a German word with the same gloss are aligned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import ceil

FIRST, THIRD, PLURAL = range(
    3
)  # the persons with a verb form of their own; the polite "Sie" takes the plural
CASES = ("Nominativ", "Akkusativ", "Dativ")

ARTICLES = {
    "Nominativ": {"der": "der", "die": "die", "das": "das", "plural": "die"},
    "Akkusativ": {"der": "den", "die": "die", "das": "das", "plural": "die"},
    "Dativ": {"der": "dem", "die": "der", "das": "dem", "plural": "den"},
}
STRONG_ENDINGS = {
    "Nominativ": {"der": "er", "die": "e", "das": "es", "plural": "e"},
    "Akkusativ": {"der": "en", "die": "e", "das": "es", "plural": "e"},
    "Dativ": {"der": "em", "die": "er", "das": "em", "plural": "en"},
}
WEAK_ENDINGS = {
    "Nominativ": {"der": "e", "die": "e", "das": "e", "plural": "en"},
    "Akkusativ": {"der": "en", "die": "e", "das": "e", "plural": "en"},
    "Dativ": {"der": "en", "die": "en", "das": "en", "plural": "en"},
}
EIN_WITHOUT_ENDING = {("Nominativ", "der"), ("Nominativ", "das"), ("Akkusativ", "das")}
PRONOUN_OF_GENDER = {"der": "er", "die": "sie", "das": "es"}
CONTRACTIONS = {
    "an dem": "am",
    "an das": "ans",
    "bei dem": "beim",
    "in dem": "im",
    "in das": "ins",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
}


def glossed(words: str, gloss: str) -> str:
    """Every one of the words with the same gloss: `next/next_to to/next_to`."""
    return " ".join(f"{word}/{gloss}" for word in words.split())


def with_s(word: str) -> str:
    """The regular English plural, which is also the regular third person."""
    if word.endswith(("s", "sh", "ch", "x", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def with_ing(word: str) -> str:
    """The English present participle: putting, writing, seeing, opening."""
    if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", word):
        return word + word[-1] + "ing"
    if word.endswith("e") and not word.endswith("ee"):
        word = word[:-1]
    return word + "ing"


@dataclass(frozen=True, eq=False)
class Noun:
    english: str
    german: str  # with its article, as a dictionary has it: "das Tier"
    german_plural: str = ""
    english_plural: str = ""
    oblique: str = ""  # accusative and dative singular of a weak noun: "Jungen"
    countable: bool = True

    def __str__(self) -> str:
        return self.english

    @property
    def gender(self) -> str:
        """The article of the nominative singular: der, die or das."""
        return self.german.split()[0]

    def in_english(self, plural: bool) -> str:
        return (self.english_plural or with_s(self.english)) if plural else self.english

    def in_german(self, case: str, plural: bool) -> str:
        if plural:
            needs_n = case == "Dativ" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        nominative = self.german.split()[1]
        return nominative if case == "Nominativ" else self.oblique or nominative


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    german: str
    stem: str = ""  # what the endings are added to, where it is not the predicative form: "teur"
    comparative: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return self.english

    def __format__(self, form: str) -> str:
        """`""` and `Prädikat` stand after "is" and "ist", `comparative` and `Komparativ` before "than" and "als"."""
        word = {
            "": self.english,
            "Prädikat": self.german,
            "comparative": self.comparative[0],
            "Komparativ": self.comparative[1],
        }[form]
        return glossed(word, self.english)

    def with_ending(self, ending: str) -> str:
        return (self.stem or self.german.removesuffix("e")) + ending


@dataclass(frozen=True, eq=False)
class Determiner:
    english: str
    german: str
    kind: str  # "der", "dieser" and "ein" name the pattern of endings; "bare" has none

    def __str__(self) -> str:
        return self.english

    def in_german(self, case: str, gender: str) -> str:
        if self.kind == "der":
            return ARTICLES[case][gender]
        return (
            self.german
            if self.without_ending(case, gender)
            else self.german + STRONG_ENDINGS[case][gender]
        )

    def without_ending(self, case: str, gender: str) -> bool:
        return self.kind == "bare" or (self.kind == "ein" and (case, gender) in EIN_WITHOUT_ENDING)

    def adjective_ending(self, case: str, gender: str) -> str:
        """German shows the gender once: on the determiner if that has an ending, else on the adjective."""
        endings = STRONG_ENDINGS if self.without_ending(case, gender) else WEAK_ENDINGS
        return endings[case][gender]


THE = Determiner("the", "", "der")
THIS = Determiner("this", "dies", "dieser")
THESE = Determiner("these", "dies", "dieser")
WHICH = Determiner("which", "welch", "dieser")
A = Determiner("a", "ein", "ein")
NO_ARTICLE = Determiner("", "", "bare")
NOT_A = Determiner("a", "kein", "ein")  # "didn't buy a book" is "kaufte kein Buch"
MY = Determiner("my", "mein", "ein")
YOUR = Determiner("your", "Ihr", "ein")
HIS = Determiner("his", "sein", "ein")
HER = Determiner("her", "ihr", "ein")
OUR = Determiner("our", "unser", "ein")
THEIR = Determiner("their", "ihr", "ein")
OWNERS = (MY, YOUR, HIS, HER, OUR, THEIR)


@dataclass(frozen=True, eq=False)
class NounPhrase:
    noun: Noun
    adjective: Adjective | None = None
    determiner: Determiner = NO_ARTICLE
    plural: bool = False

    def __str__(self) -> str:
        noun = self.noun.in_english(self.plural)
        return f"{self.adjective.english} {noun}" if self.adjective else noun

    @property
    def person(self) -> int:
        return PLURAL if self.plural else THIRD

    def determined(self, determiner: Determiner | None) -> NounPhrase:
        """The phrase with this determiner, or as it is for None; no "a" before a plural or what is not counted."""
        return self if determiner is None else determined(self, determiner)

    def __format__(self, case: str) -> str:
        """`""` and `object` are the same in English; otherwise a German case."""
        return written(self, case)

    def in_english(self) -> tuple[str, str, str]:
        adjective = str(self.adjective or "")
        noun = self.noun.in_english(self.plural)
        vowel_follows = self.determiner is A and (adjective or noun)[0] in "aeiou"
        return self.determiner.english + "n" * vowel_follows, adjective, noun

    def in_german(self, case: str) -> tuple[str, str, str]:
        gender = "plural" if self.plural else self.noun.gender
        ending = self.determiner.adjective_ending(case, gender)
        adjective = self.adjective.with_ending(ending) if self.adjective else ""
        return (
            self.determiner.in_german(case, gender),
            adjective,
            self.noun.in_german(case, self.plural),
        )


@cache
def written(phrase: NounPhrase, case: str) -> str:
    """Determiner, adjective and noun, each with its gloss."""
    words = phrase.in_german(case) if case in CASES else phrase.in_english()
    noun = phrase.noun.english
    glosses = (f"{phrase.determiner!s}:{noun}", f"{phrase.adjective!s}:{noun}", noun)
    return " ".join(
        glossed(word, gloss) for word, gloss in zip(words, glosses, strict=True) if word
    )


@cache
def determined(phrase: NounPhrase, determiner: Determiner) -> NounPhrase:
    if determiner is A and (phrase.plural or not phrase.noun.countable):
        determiner = NO_ARTICLE
    if determiner is THIS and phrase.plural:
        determiner = THESE
    return replace(phrase, determiner=determiner)


@dataclass(frozen=True, eq=False)
class Pronoun:
    person: int
    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str

    def __str__(self) -> str:
        return self.english

    def determined(self, determiner: None) -> Pronoun:
        return self

    def __format__(self, case: str) -> str:
        """`""` and `object` are the English forms, `experiencer` is who likes what gefällt; otherwise a German case."""
        word, gloss = {
            "": (self.english, self.english),
            "object": (self.english_object, self.english_object),
            "experiencer": (self.english, self.english_object),
            "Nominativ": (self.nominative, self.english),
            "Akkusativ": (self.accusative, self.english_object),
            "Dativ": (self.dative, self.english_object),
        }[case]
        return glossed(word, gloss)


@dataclass(frozen=True, eq=False)
class PrepositionalPhrase:
    english: str
    german: str
    case: str
    phrase: NounPhrase | Pronoun

    def __str__(self) -> str:
        return f"{self.english} {self.phrase}"

    def __format__(self, language: str) -> str:
        """`""` is English, `deutsch` German, with preposition and article contracted ("zum Bahnhof")."""
        gloss = self.english.replace(" ", "_")
        if language == "":
            return f"{glossed(self.english, gloss)} {self.phrase:object}"
        return contracted(glossed(self.german, gloss), f"{self.phrase:{self.case}}")


def contracted(preposition: str, phrase: str) -> str:
    """Join glossed German: `zu/to` and `dem/the:station Bahnhof/station` -> `zum/to+the:station Bahnhof/station`."""
    word, _, gloss = preposition.rpartition("/")
    first, _, rest = phrase.partition(" ")
    article, _, article_gloss = first.partition("/")
    if f"{word} {article}" not in CONTRACTIONS:
        return f"{preposition} {phrase}"
    return f"{CONTRACTIONS[f'{word} {article}']}/{gloss}+{article_gloss} {rest}"


@dataclass(frozen=True, eq=False)
class Verb:
    lemma: str
    particle: str
    forms: dict[str, tuple[str, str, str]]  # name of the form -> the word for each person

    def __str__(self) -> str:
        return self.lemma

    def of(self, subject: NounPhrase | Pronoun) -> Predicate:
        """The verb as it agrees with its subject."""
        return Predicate(self, subject.person)


def verb(english: str, german: str, particle: str = "", **irregular: tuple[str, str, str]) -> Verb:
    """A verb from its principal parts; forms that no rule gives are passed by name, `present=("am", "is", "are")`.

    English: infinitive, past, participle. German: infinitive with its separable prefix marked ("an|rufen"), third
    person present and preterite, auxiliary and participle.
    """
    lemma = "_".join((english.split()[0], *particle.split()))
    return Verb(
        lemma, particle, english_forms(*english.split()) | german_forms(*german.split()) | irregular
    )


def modal(english: str, german: str, third: str = "") -> Verb:
    """A modal verb, present tense only; `german` is first (and third) person singular and plural."""
    singular, plural = german.split()
    forms = {
        "present": (english, third or english, english),
        "Präsens": (singular, singular, plural),
    }
    return Verb(english.split()[0], "", forms | {"Präsens am Ende": forms["Präsens"]})


def future() -> Verb:
    """`will` and `werden`."""
    forms = {"present": ("will",) * 3, "Präsens": ("werde", "wird", "werden")}
    return Verb("will", "", forms)


def english_forms(base: str, past: str, participle: str) -> dict[str, tuple[str, str, str]]:
    return {
        "base": (base,) * 3,
        "present": (base, with_s(base), base),
        "past": (past,) * 3,
        "participle": (participle,) * 3,
        "ing": (with_ing(base),) * 3,
        "progressive": tuple(f"{be} {with_ing(base)}" for be in ("am", "is", "are")),
        "am": ("am", "is", "are"),
        "do": ("do", "does", "do"),
        "don't": ("don't", "doesn't", "don't"),
        "didn't": ("didn't",) * 3,
        "have": ("have", "has", "have"),
        "haven't": ("haven't", "hasn't", "haven't"),
    }


def german_forms(
    infinitive: str, present: str, preterite: str, auxiliary: str, participle: str
) -> dict[str, tuple[str, str, str]]:
    prefix, _, stem = infinitive.rpartition("|")
    finite = {
        "Präsens": (stem.removesuffix("n"), present, stem),
        "Präteritum": (preterite, preterite, preterite.removesuffix("e") + "en"),
    }
    at_the_end = {
        f"{tense} am Ende": tuple(prefix + word for word in words)
        for tense, words in finite.items()
    }
    return (
        finite
        | at_the_end
        | {
            "Vorsilbe": (prefix,) * 3,
            "Infinitiv": (prefix + stem,) * 3,
            "zu-Infinitiv": (f"{prefix}zu{stem}" if prefix else f"zu {stem}",) * 3,
            "Partizip": (participle,) * 3,
            "Hilfsverb": {"hat": ("habe", "hat", "haben"), "ist": ("bin", "ist", "sind")}[
                auxiliary
            ],
        }
    )


GLOSS_OF_FORM = {
    "don't": "not",
    "didn't": "not",
    "have": "perfect",
    "haven't": "perfect+not",
    "Hilfsverb": "perfect",
}
FORMS_WITH_PARTICLE = ("base", "present", "past", "participle", "ing", "progressive")


@dataclass(frozen=True, eq=False)
class Predicate:
    verb: Verb
    person: int

    def __format__(self, form: str) -> str:
        """`form` is one of `Verb.forms`; `Vorsilbe` is empty for a verb without a separable prefix."""
        return conjugated(self.verb, self.person, form)


@cache
def conjugated(verb: Verb, person: int, form: str) -> str:
    words = verb.forms[form][person]
    if form in FORMS_WITH_PARTICLE:
        words = f"{words} {verb.particle}"
    return glossed(words, GLOSS_OF_FORM.get(form, verb.lemma))


# --- Pronouns -------------------------------------------------------------------------------------------------------

ME = Pronoun(FIRST, "I", "me", "ich", "mich", "mir")
YOU = Pronoun(PLURAL, "you", "you", "Sie", "Sie", "Ihnen")
HE = Pronoun(THIRD, "he", "him", "er", "ihn", "ihm")
SHE = Pronoun(THIRD, "she", "her", "sie", "sie", "ihr")
IT = Pronoun(THIRD, "it", "it", "es", "es", "ihm")
WE = Pronoun(PLURAL, "we", "us", "wir", "uns", "uns")
THEY = Pronoun(PLURAL, "they", "them", "sie", "sie", "ihnen")

# --- Nouns ----------------------------------------------------------------------------------------------------------

MOTHER = Noun("mother", "die Mutter", "Mütter")
FATHER = Noun("father", "der Vater", "Väter")
SISTER = Noun("sister", "die Schwester", "Schwestern")
BROTHER = Noun("brother", "der Bruder", "Brüder")
DAUGHTER = Noun("daughter", "die Tochter", "Töchter")
SON = Noun("son", "der Sohn", "Söhne")
AUNT = Noun("aunt", "die Tante", "Tanten")
UNCLE = Noun("uncle", "der Onkel", "Onkel")
GRANDMOTHER = Noun("grandmother", "die Großmutter", "Großmütter")
GRANDFATHER = Noun("grandfather", "der Großvater", "Großväter")
CHILD = Noun("child", "das Kind", "Kinder", "children")
ADULTS = (MOTHER, FATHER, SISTER, BROTHER, AUNT, UNCLE)
CHILDREN = (DAUGHTER, SON, CHILD)

WOMAN = Noun("woman", "die Frau", "Frauen", "women")
MAN = Noun("man", "der Mann", "Männer", "men")
BOY = Noun("boy", "der Junge", "Jungen", oblique="Jungen")
GIRL = Noun("girl", "das Mädchen", "Mädchen")
TEACHER = Noun("teacher", "der Lehrer", "Lehrer")
DOCTOR = Noun("doctor", "der Arzt", "Ärzte")
NEIGHBOR = Noun("neighbor", "der Nachbar", "Nachbarn", oblique="Nachbarn")
FRIEND = Noun("friend", "der Freund", "Freunde")
STUDENT = Noun("student", "der Student", "Studenten", oblique="Studenten")

ANIMAL = Noun("animal", "das Tier", "Tiere")
DOG = Noun("dog", "der Hund", "Hunde")
CAT = Noun("cat", "die Katze", "Katzen")
HORSE = Noun("horse", "das Pferd", "Pferde")
COW = Noun("cow", "die Kuh", "Kühe")
PIG = Noun("pig", "das Schwein", "Schweine")
SHEEP = Noun("sheep", "das Schaf", "Schafe", "sheep")
GOAT = Noun("goat", "die Ziege", "Ziegen")
DONKEY = Noun("donkey", "der Esel", "Esel")
RABBIT = Noun("rabbit", "das Kaninchen", "Kaninchen")
MOUSE = Noun("mouse", "die Maus", "Mäuse", "mice")
DUCK = Noun("duck", "die Ente", "Enten")
CHICKEN = Noun("chicken", "das Huhn", "Hühner")
FOX = Noun("fox", "der Fuchs", "Füchse")
BEAR = Noun("bear", "der Bär", "Bären", oblique="Bären")
SQUIRREL = Noun("squirrel", "das Eichhörnchen", "Eichhörnchen")
MONKEY = Noun("monkey", "der Affe", "Affen", oblique="Affen")
WALKERS = (
    ANIMAL,
    DOG,
    CAT,
    HORSE,
    COW,
    PIG,
    SHEEP,
    GOAT,
    DONKEY,
    RABBIT,
    MOUSE,
    DUCK,
    CHICKEN,
    FOX,
    BEAR,
)
JUMPERS = (ANIMAL, DOG, CAT, HORSE, COW, SHEEP, GOAT, DONKEY, RABBIT, FOX)
CLIMBERS = (ANIMAL, CAT, GOAT, MOUSE, BEAR, SQUIRREL, MONKEY)

STREET = Noun("street", "die Straße", "Straßen")
BRIDGE = Noun("bridge", "die Brücke", "Brücken")
SQUARE = Noun("square", "der Platz", "Plätze")
RIVER = Noun("river", "der Fluss", "Flüsse")
STREAM = Noun("stream", "der Bach", "Bäche")
VALLEY = Noun("valley", "das Tal", "Täler")
FIELD = Noun("field", "das Feld", "Felder")
ICE = Noun("ice", "das Eis", countable=False)
MEADOW = Noun("meadow", "die Wiese", "Wiesen")
MOUNTAIN = Noun("mountain", "der Berg", "Berge")
HILL = Noun("hill", "der Hügel", "Hügel")
TREE = Noun("tree", "der Baum", "Bäume")
WALL = Noun("wall", "die Mauer", "Mauern")
ROOF = Noun("roof", "das Dach", "Dächer")
FENCE = Noun("fence", "der Zaun", "Zäune")
HEDGE = Noun("hedge", "die Hecke", "Hecken")
GATE = Noun("gate", "das Tor", "Tore")
DITCH = Noun("ditch", "der Graben", "Gräben")
HOLE = Noun("hole", "das Loch", "Löcher")
CAVE = Noun("cave", "die Höhle", "Höhlen")
BARN = Noun("barn", "die Scheune", "Scheunen")
STABLE = Noun("stable", "der Stall", "Ställe")
FOREST = Noun("forest", "der Wald", "Wälder")
TUNNEL = Noun("tunnel", "der Tunnel", "Tunnel")

ROOM = Noun("room", "das Zimmer", "Zimmer")
HOUSE = Noun("house", "das Haus", "Häuser")
KITCHEN = Noun("kitchen", "die Küche", "Küchen")
DOOR = Noun("door", "die Tür", "Türen")
WINDOW = Noun("window", "das Fenster", "Fenster")

HOTEL = Noun("hotel", "das Hotel", "Hotels")
STATION = Noun("station", "der Bahnhof", "Bahnhöfe")
AIRPORT = Noun("airport", "der Flughafen", "Flughäfen")
RESTAURANT = Noun("restaurant", "das Restaurant", "Restaurants")
MUSEUM = Noun("museum", "das Museum", "Museen")
CHURCH = Noun("church", "die Kirche", "Kirchen")
SCHOOL = Noun("school", "die Schule", "Schulen")
HOSPITAL = Noun("hospital", "das Krankenhaus", "Krankenhäuser")
PHARMACY = Noun("pharmacy", "die Apotheke", "Apotheken")
BAKERY = Noun("bakery", "die Bäckerei", "Bäckereien")
LIBRARY = Noun("library", "die Bibliothek", "Bibliotheken")
MARKET = Noun("market", "der Markt", "Märkte")
PARK = Noun("park", "der Park", "Parks")
BEACH = Noun("beach", "der Strand", "Strände")
CASTLE = Noun("castle", "das Schloss", "Schlösser")
CITY = Noun("city", "die Stadt", "Städte")
VILLAGE = Noun("village", "das Dorf", "Dörfer")
BUILDINGS = (
    HOTEL, STATION, RESTAURANT, MUSEUM, CHURCH, SCHOOL, HOSPITAL, PHARMACY, BAKERY, LIBRARY, MARKET, PARK, CASTLE
)  # fmt: skip
DESTINATIONS = (*BUILDINGS, AIRPORT, BEACH)

CAR = Noun("car", "das Auto", "Autos")
BUS = Noun("bus", "der Bus", "Busse")
TRAIN = Noun("train", "der Zug", "Züge")
TAXI = Noun("taxi", "das Taxi", "Taxis")
BICYCLE = Noun("bicycle", "das Fahrrad", "Fahrräder")
TRUCK = Noun("truck", "der Lastwagen", "Lastwagen")
TRACTOR = Noun("tractor", "der Traktor", "Traktoren")
CARRIAGE = Noun("carriage", "die Kutsche", "Kutschen")

SHIRT = Noun("shirt", "das Hemd", "Hemden")
DRESS = Noun("dress", "das Kleid", "Kleider")
COAT = Noun("coat", "der Mantel", "Mäntel")
SKIRT = Noun("skirt", "der Rock", "Röcke")
SWEATER = Noun("sweater", "der Pullover", "Pullover")
JACKET = Noun("jacket", "die Jacke", "Jacken")
SHOE = Noun("shoe", "der Schuh", "Schuhe")
TABLE = Noun("table", "der Tisch", "Tische")
CHAIR = Noun("chair", "der Stuhl", "Stühle")
BED = Noun("bed", "das Bett", "Betten")
SOFA = Noun("sofa", "das Sofa", "Sofas")
LAMP = Noun("lamp", "die Lampe", "Lampen")
CUPBOARD = Noun("cupboard", "der Schrank", "Schränke")
SHELF = Noun("shelf", "das Regal", "Regale", "shelves")
DRAWER = Noun("drawer", "die Schublade", "Schubladen")
MIRROR = Noun("mirror", "der Spiegel", "Spiegel")
PICTURE = Noun("picture", "das Bild", "Bilder")
CLOCK = Noun("clock", "die Uhr", "Uhren")
RADIO = Noun("radio", "das Radio", "Radios")

BOOK = Noun("book", "das Buch", "Bücher")
NEWSPAPER = Noun("newspaper", "die Zeitung", "Zeitungen")
LETTER = Noun("letter", "der Brief", "Briefe")
POSTCARD = Noun("postcard", "die Postkarte", "Postkarten")
TICKET = Noun("ticket", "die Fahrkarte", "Fahrkarten")
KEY = Noun("key", "der Schlüssel", "Schlüssel")
UMBRELLA = Noun("umbrella", "der Regenschirm", "Regenschirme")
CAMERA = Noun("camera", "die Kamera", "Kameras")
SUITCASE = Noun("suitcase", "der Koffer", "Koffer")
BAG = Noun("bag", "die Tasche", "Taschen")
BOX = Noun("box", "die Kiste", "Kisten")
BACKPACK = Noun("backpack", "der Rucksack", "Rucksäcke")
BALL = Noun("ball", "der Ball", "Bälle")
GUITAR = Noun("guitar", "die Gitarre", "Gitarren")
TROPHY = Noun("trophy", "der Pokal", "Pokale")
KNIFE = Noun("knife", "das Messer", "Messer", "knives")
FORK = Noun("fork", "die Gabel", "Gabeln")
SPOON = Noun("spoon", "der Löffel", "Löffel")
GLASS = Noun("glass", "das Glas", "Gläser")
CUP = Noun("cup", "die Tasse", "Tassen")
BOTTLE = Noun("bottle", "die Flasche", "Flaschen")
PIECE = Noun("piece", "das Stück", "Stücke")

APPLE = Noun("apple", "der Apfel", "Äpfel")
PEAR = Noun("pear", "die Birne", "Birnen")
ORANGE = Noun("orange", "die Orange", "Orangen")
CARROT = Noun("carrot", "die Karotte", "Karotten")
POTATO = Noun("potato", "die Kartoffel", "Kartoffeln")
EGG = Noun("egg", "das Ei", "Eier")
SOUP = Noun("soup", "die Suppe", "Suppen")
SALAD = Noun("salad", "der Salat", "Salate")
CAKE = Noun("cake", "der Kuchen", "Kuchen")
SAUSAGE = Noun("sausage", "die Wurst", "Würste")
BREAD = Noun("bread", "das Brot", countable=False)
CHEESE = Noun("cheese", "der Käse", countable=False)
MEAT = Noun("meat", "das Fleisch", countable=False)
COFFEE = Noun("coffee", "der Kaffee", countable=False)
TEA = Noun("tea", "der Tee", countable=False)
MILK = Noun("milk", "die Milch", countable=False)
WATER = Noun("water", "das Wasser", countable=False)
JUICE = Noun("juice", "der Saft", countable=False)
BEER = Noun("beer", "das Bier", countable=False)
WINE = Noun("wine", "der Wein", countable=False)

BALCONY = Noun("balcony", "der Balkon", "Balkone")
SHOWER = Noun("shower", "die Dusche", "Duschen")
BATHROOM = Noun("bathroom", "das Bad", "Bäder")
TELEVISION = Noun("television", "der Fernseher", "Fernseher")
NIGHT = Noun("night", "die Nacht", "Nächte")
PERSON = Noun("person", "die Person", "Personen", "people")

HEAD = Noun("head", "der Kopf", "Köpfe")
BACK = Noun("back", "der Rücken", "Rücken")
KNEE = Noun("knee", "das Knie", "Knie")
HAND = Noun("hand", "die Hand", "Hände")
ARM = Noun("arm", "der Arm", "Arme")
LEG = Noun("leg", "das Bein", "Beine")
FOOT = Noun("foot", "der Fuß", "Füße", "feet")
SHOULDER = Noun("shoulder", "die Schulter", "Schultern")
EYE = Noun("eye", "das Auge", "Augen")
EAR = Noun("ear", "das Ohr", "Ohren")
FINGER = Noun("finger", "der Finger", "Finger")

# --- Adjectives -----------------------------------------------------------------------------------------------------

NEW = Adjective("new", "neu", comparative=("newer", "neuer"))
OLD = Adjective("old", "alt", comparative=("older", "älter"))
BIG = Adjective("big", "groß", comparative=("bigger", "größer"))
SMALL = Adjective("small", "klein", comparative=("smaller", "kleiner"))
LONG = Adjective("long", "lang", comparative=("longer", "länger"))
CHEAP = Adjective("cheap", "billig", comparative=("cheaper", "billiger"))
EXPENSIVE = Adjective("expensive", "teuer", "teur", ("more expensive", "teurer"))
BEAUTIFUL = Adjective("beautiful", "schön", comparative=("more beautiful", "schöner"))
HEAVY = Adjective("heavy", "schwer", comparative=("heavier", "schwerer"))
RED = Adjective("red", "rot")
BLUE = Adjective("blue", "blau")
GREEN = Adjective("green", "grün")
WHITE = Adjective("white", "weiß")
BLACK = Adjective("black", "schwarz")
COLORS = (RED, BLUE, GREEN, WHITE, BLACK)
WARM = Adjective("warm", "warm")
COLD = Adjective("cold", "kalt")
HOT = Adjective("hot", "heiß")
FRESH = Adjective("fresh", "frisch")
GOOD = Adjective("good", "gut")
CLEAN = Adjective("clean", "sauber")
DIRTY = Adjective("dirty", "schmutzig")
QUIET = Adjective("quiet", "ruhig")
INTERESTING = Adjective("interesting", "interessant")
FULL = Adjective("full", "voll")

TIRED = Adjective("tired", "müde")
HUNGRY = Adjective("hungry", "hungrig")
SCARED = Adjective("scared", "ängstlich")
WEAK = Adjective("weak", "schwach")
SLOW = Adjective("slow", "langsam")
SICK = Adjective("sick", "krank")
LAZY = Adjective("lazy", "faul")
NERVOUS = Adjective("nervous", "nervös")
YOUNG = Adjective("young", "jung", comparative=("younger", "jünger"))
SIDES = (Adjective("left", "link"), Adjective("right", "recht"))  # only ever with an ending
FIRST_ONE = Adjective("first", "erst")
LAST_ONE = Adjective("last", "letzt")
NEXT_ONE = Adjective("next", "nächst")
NEAREST = Adjective("nearest", "nächst")
THIRSTY = Adjective("thirsty", "durstig")
ANGRY = Adjective("angry", "wütend")
READY = Adjective("ready", "bereit")
HEALTHY = Adjective("healthy", "gesund")
WINDY = Adjective("windy", "windig")
FOGGY = Adjective("foggy", "neblig")
HAPPY = Adjective("happy", "glücklich")
SAD = Adjective("sad", "traurig")

WIDE = Adjective("wide", "breit")
DEEP = Adjective("deep", "tief")
STEEP = Adjective("steep", "steil")
HIGH = Adjective("high", "hoch", "hoh")
NARROW = Adjective("narrow", "eng")
BUSY = Adjective("busy", "belebt")
SLIPPERY = Adjective("slippery", "rutschig")
MUDDY = Adjective("muddy", "matschig")
DARK = Adjective("dark", "dunkel", "dunkl")
DENSE = Adjective("dense", "dicht")
SOUR = Adjective("sour", "sauer", "saur")
HARD = Adjective("hard", "hart")
DRY = Adjective("dry", "trocken")
TOUGH = Adjective("tough", "zäh")
SALTY = Adjective("salty", "salzig")

# --- Verbs ----------------------------------------------------------------------------------------------------------

CROSS = verb("cross crossed crossed", "überqueren überquert überquerte hat überquert")
CLIMB = verb("climb climbed climbed", "klettern klettert kletterte ist geklettert")
JUMP = verb("jump jumped jumped", "springen springt sprang ist gesprungen")
ENTER = verb("enter entered entered", "betreten betritt betrat hat betreten")
DEVOUR = verb("eat ate eaten", "fressen frisst fraß hat gefressen")  # what an animal does
FIT = verb("fit fit fit", "passen passt passte hat gepasst")

BUY = verb("buy bought bought", "kaufen kauft kaufte hat gekauft")
SELL = verb("sell sold sold", "verkaufen verkauft verkaufte hat verkauft")
WRITE = verb("write wrote written", "schreiben schreibt schrieb hat geschrieben")
EAT = verb("eat ate eaten", "essen isst aß hat gegessen")
DRINK = verb("drink drank drunk", "trinken trinkt trank hat getrunken")
ORDER = verb("order ordered ordered", "bestellen bestellt bestellte hat bestellt")
FIND = verb("find found found", "finden findet fand hat gefunden")
LOOK_FOR = verb("look looked looked", "suchen sucht suchte hat gesucht", particle="for")
NEED = verb("need needed needed", "brauchen braucht brauchte hat gebraucht")
LOSE = verb("lose lost lost", "verlieren verliert verlor hat verloren")
FORGET = verb("forget forgot forgotten", "vergessen vergisst vergaß hat vergessen")
CLEAN_UP = verb("clean cleaned cleaned", "putzen putzt putzte hat geputzt")
REPAIR = verb("repair repaired repaired", "reparieren repariert reparierte hat repariert")
WEAR = verb("wear wore worn", "tragen trägt trug hat getragen")
TAKE = verb("take took taken", "nehmen nimmt nahm hat genommen")
VISIT = verb("visit visited visited", "besuchen besucht besuchte hat besucht")
MEET = verb("meet met met", "treffen trifft traf hat getroffen")
HELP = verb("help helped helped", "helfen hilft half hat geholfen")
THANK = verb("thank thanked thanked", "danken dankt dankte hat gedankt")
WAIT = verb("wait waited waited", "warten wartet wartete hat gewartet")

OPEN = verb("open opened opened", "auf|machen macht machte hat aufgemacht")
CLOSE = verb("close closed closed", "zu|machen macht machte hat zugemacht")
TURN_ON = verb("turn turned turned", "an|machen macht machte hat angemacht", particle="on")
TURN_OFF = verb("turn turned turned", "aus|machen macht machte hat ausgemacht", particle="off")
PUT_ON = verb("put put put", "an|ziehen zieht zog hat angezogen", particle="on")
TAKE_OFF = verb("take took taken", "aus|ziehen zieht zog hat ausgezogen", particle="off")
BRING_ALONG = verb(
    "bring brought brought", "mit|bringen bringt brachte hat mitgebracht", particle="along"
)
CALL = verb("call called called", "an|rufen ruft rief hat angerufen")
PICK_UP = verb("pick picked picked", "ab|holen holt holte hat abgeholt", particle="up")
INVITE = verb("invite invited invited", "ein|laden lädt lud hat eingeladen")
ARRIVE = verb("arrive arrived arrived", "an|kommen kommt kam ist angekommen")
LEAVE = verb("leave left left", "ab|fahren fährt fuhr ist abgefahren")
GET_UP = verb("get got got", "auf|stehen steht stand ist aufgestanden", particle="up")

GIVE = verb("give gave given", "geben gibt gab hat gegeben")
SHOW = verb("show showed shown", "zeigen zeigt zeigte hat gezeigt")
SEND = verb("send sent sent", "schicken schickt schickte hat geschickt")
BRING = verb("bring brought brought", "bringen bringt brachte hat gebracht")
PUT = verb("put put put", "legen legt legte hat gelegt")
GO = verb("go went gone", "gehen geht ging ist gegangen")
DRIVE = verb("drive drove driven", "fahren fährt fuhr ist gefahren")
WORK = verb("work worked worked", "arbeiten arbeitet arbeitete hat gearbeitet")
LIVE = verb("live lived lived", "wohnen wohnt wohnte hat gewohnt")
COST = verb("cost cost cost", "kosten kostet kostete hat gekostet")
LIKE = verb("like liked liked", "gefallen gefällt gefiel hat gefallen")
HURT = verb("hurt hurt hurt", "weh|tun tut tat hat wehgetan")
GET_TO = verb("get got got", "kommen kommt kam ist gekommen")
MOVE = verb("move moved moved", "bewegen bewegt bewegte hat bewegt")
RAIN = verb("rain rained rained", "regnen regnet regnete hat geregnet")
SNOW = verb("snow snowed snowed", "schneien schneit schneite hat geschneit")
READ = verb("read read read", "lesen liest las hat gelesen")
SEE = verb("see saw seen", "sehen sieht sah hat gesehen")
HEAR = verb("hear heard heard", "hören hört hörte hat gehört")
ASK = verb("ask asked asked", "fragen fragt fragte hat gefragt")
LOVE = verb("love loved loved", "lieben liebt liebte hat geliebt")
UNDERSTAND = verb("understand understood understood", "verstehen versteht verstand hat verstanden")
KNOW_SOMEONE = verb("know knew known", "kennen kennt kannte hat gekannt")
HAVE = verb("have had had", "haben hat hatte hat gehabt", present=("have", "has", "have"))
SPEAK = verb("speak spoke spoken", "sprechen spricht sprach hat gesprochen")
COME = verb("come came come", "kommen kommt kam ist gekommen")
BE_CALLED = verb("be was been", "heißen heißt hieß hat geheißen", present=("am", "is", "are"))
LIKE_EATING = verb(
    "like liked liked", "mögen mag mochte hat gemocht", Präsens=("mag", "mag", "mögen")
)
SLEEP = verb("sleep slept slept", "schlafen schläft schlief hat geschlafen")
SWIM = verb("swim swam swum", "schwimmen schwimmt schwamm ist geschwommen")
DANCE = verb("dance danced danced", "tanzen tanzt tanzte hat getanzt")
SING = verb("sing sang sung", "singen singt sang hat gesungen")
COOK = verb("cook cooked cooked", "kochen kocht kochte hat gekocht")
LEARN = verb("learn learned learned", "lernen lernt lernte hat gelernt")
LAUGH = verb("laugh laughed laughed", "lachen lacht lachte hat gelacht")
PLAY = verb("play played played", "spielen spielt spielte hat gespielt")
STAY = verb("stay stayed stayed", "bleiben bleibt blieb ist geblieben")
TRAVEL = verb("travel traveled traveled", "reisen reist reiste ist gereist")
BE = verb(
    "be was been",
    "sein ist war ist gewesen",
    present=("am", "is", "are"),
    past=("was", "was", "were"),
    Präsens=("bin", "ist", "sind"),
)

KNOW = verb("know knew known", "wissen weiß wusste hat gewusst", Präsens=("weiß", "weiß", "wissen"))
BELIEVE = verb("believe believed believed", "glauben glaubt glaubte hat geglaubt")
SAY = verb("say said said", "sagen sagt sagte hat gesagt")
HOPE = verb("hope hoped hoped", "hoffen hofft hoffte hat gehofft")
TRY = verb("try tried tried", "versuchen versucht versuchte hat versucht")
PROMISE = verb("promise promised promised", "versprechen verspricht versprach hat versprochen")


WILL = future()
CAN = modal("can", "kann können")
MUST = modal("must", "muss müssen")
SHOULD = modal("should", "sollte sollten")
WANT_TO = modal("want to", "will wollen", third="wants to")
WOULD_LIKE_TO = modal("would like to", "möchte möchten")
WOULD_LIKE = modal("would like", "möchte möchten")

# --- Who does what to what ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Complement:
    """The object of a verb, with the preposition and the case that the verb governs."""

    action: Action
    phrase: NounPhrase | Pronoun

    def __format__(self, form: str) -> str:
        """`""` is English, `deutsch` German, `verneint` German with "nicht" or "kein" where it belongs."""
        return {"": governed, "deutsch": regiert, "verneint": verneint}[form](
            self.action, self.phrase
        )


@cache
def governed(action: Action, phrase: NounPhrase | Pronoun) -> str:
    return f"{glossed(action.english_preposition, 'to_object')} {phrase:object}"


@cache
def regiert(action: Action, phrase: NounPhrase | Pronoun) -> str:
    gloss = "to_object" if action.english_preposition else action.verb.lemma
    return contracted(glossed(action.german_preposition, gloss), f"{phrase:{action.case}}")


@cache
def verneint(action: Action, phrase: NounPhrase | Pronoun) -> str:
    """An object without a preposition stands before "nicht", one with it after; "nicht ein" is "kein"."""
    if action.german_preposition:
        return f"nicht/not {regiert(action, phrase)}"
    if isinstance(phrase, NounPhrase) and phrase.determiner in (A, NO_ARTICLE):
        kein, _, rest = f"{phrase.determined(NOT_A):{action.case}}".partition(" ")
        return f"{kein}+not {rest}"
    return f"{regiert(action, phrase)} nicht/not"


@dataclass(frozen=True, eq=False)
class Action:
    """A verb and the objects it makes sense with."""

    verb: Verb
    objects: tuple[NounPhrase | Pronoun, ...]
    case: str = "Akkusativ"
    english_preposition: str = ""
    german_preposition: str = ""

    def __str__(self) -> str:
        return self.verb.lemma

    def on(self, phrase: NounPhrase | Pronoun) -> Complement:
        return Complement(self, phrase)


def described(
    nouns: tuple[Noun, ...], adjectives: tuple[Adjective, ...], plural: bool = False
) -> tuple:
    """Each noun alone and with each adjective, without a determiner."""
    return tuple(
        NounPhrase(noun, adjective, plural=plural)
        for noun in nouns
        for adjective in (None, *adjectives)
    )


@cache
def phrase(determiner: Determiner, noun: Noun) -> NounPhrase:
    return NounPhrase(noun, determiner=determiner)


@cache
def the(noun: Noun, adjective: Adjective | None = None, plural: bool = False) -> NounPhrase:
    return NounPhrase(noun, adjective, THE, plural)


SUBJECTS = (
    ME, HE, SHE, WE, THEY,
    NounPhrase(MOTHER, determiner=MY), NounPhrase(FATHER, determiner=HIS), NounPhrase(SISTER, determiner=HER),
    NounPhrase(BROTHER, determiner=MY), NounPhrase(DAUGHTER, determiner=THEIR), NounPhrase(UNCLE, determiner=OUR),
    NounPhrase(NEIGHBOR, determiner=OUR), NounPhrase(FRIEND, determiner=HER, plural=True),
    the(GIRL), the(TEACHER), the(STUDENT, plural=True), the(WOMAN, OLD), the(MAN, YOUNG),
)  # fmt: skip
ASKED_ABOUT = (
    YOU, HE, SHE, THEY,
    NounPhrase(MOTHER, determiner=YOUR), NounPhrase(BROTHER, determiner=YOUR), NounPhrase(SISTER, determiner=HIS),
    NounPhrase(UNCLE, determiner=HER), NounPhrase(CHILD, determiner=YOUR, plural=True), the(TEACHER), the(GIRL),
    the(WOMAN, YOUNG), the(STUDENT, plural=True),
)  # fmt: skip
GIVERS = (
    ME, HE, SHE, WE, THEY, NounPhrase(MOTHER, determiner=HER), NounPhrase(UNCLE, determiner=MY), the(TEACHER),
    NounPhrase(FRIEND, determiner=OUR, plural=True),
)  # fmt: skip
RECEIVERS = (
    ME, HE, SHE, WE, THEY, YOU,
    NounPhrase(FATHER, determiner=MY), NounPhrase(AUNT, determiner=MY), NounPhrase(BROTHER, determiner=HIS),
    NounPhrase(DAUGHTER, determiner=HER), NounPhrase(SON, determiner=OUR), NounPhrase(CHILD, determiner=THEIR),
    NounPhrase(FRIEND, determiner=MY), NounPhrase(NEIGHBOR, determiner=HIS), the(DOCTOR), the(BOY), the(GIRL),
    the(TEACHER, NEW), the(WOMAN, YOUNG), the(STUDENT, plural=True),
)  # fmt: skip
DINERS = tuple(
    person for person in RECEIVERS if getattr(person, "noun", None) not in (CHILD, BOY, GIRL)
)
PEOPLE = (
    *RECEIVERS,
    NounPhrase(FRIEND, OLD, A),
    NounPhrase(WOMAN, YOUNG, A),
    NounPhrase(CHILD, SICK, A),
)

WORN_BY_ALL = described((SHIRT, COAT, JACKET, SWEATER), (NEW, WARM, *COLORS))
WORN_BY_ALL += described((SHOE,), (NEW, *COLORS), plural=True)
CLOTHES = WORN_BY_ALL + described((DRESS, SKIRT), (NEW, WARM, *COLORS))
FURNITURE = described(
    (TABLE, CHAIR, BED, SOFA, LAMP, CUPBOARD, MIRROR, CLOCK), (NEW, OLD, SMALL, EXPENSIVE)
)
LUGGAGE = described((SUITCASE, BAG, BACKPACK, UMBRELLA, CAMERA, KEY), (NEW, OLD, SMALL, BLACK))
PRINTED = described((BOOK, NEWSPAPER), (NEW, OLD, GOOD, INTERESTING)) + described(
    (TICKET,), (NEW, CHEAP)
)
MAIL = described((LETTER, POSTCARD), (LONG, BEAUTIFUL))
GROCERIES = described((BREAD, CHEESE, CAKE, SALAD), (FRESH, GOOD)) + described(
    (SOUP,), (WARM, GOOD)
)
GROCERIES += described((APPLE, PEAR, ORANGE, CARROT, POTATO, EGG), (BIG, FRESH), plural=True)
DRINKS = (
    described((COFFEE, TEA), (HOT, COLD, GOOD))
    + described((MILK, WATER), (WARM, COLD))
    + described((JUICE,), (COLD, FRESH))
)
VEHICLES = described((CAR, BICYCLE), (NEW, OLD, RED, EXPENSIVE))
SIGHTS = described((MUSEUM, CASTLE, CHURCH, MARKET, CITY, VILLAGE), (OLD, BEAUTIFUL, SMALL))
ROOMS = described((ROOM, KITCHEN), (DIRTY, BIG, SMALL))
OPENINGS = described((DOOR, WINDOW), (BIG, SMALL)) + described((SUITCASE, BAG, BOX), (BIG, HEAVY))
DEVICES = described((LAMP, RADIO, TELEVISION), (NEW, OLD, SMALL))

BUYING = Action(BUY, CLOTHES + FURNITURE + LUGGAGE + PRINTED + GROCERIES + VEHICLES)
ORDERING = Action(ORDER, GROCERIES + DRINKS)
FINDING = Action(FIND, LUGGAGE + PRINTED)
LOSING = Action(LOSE, LUGGAGE + described((TICKET,), (NEW,)))
FORGETTING = Action(FORGET, LUGGAGE + PRINTED)
SELLING = Action(SELL, FURNITURE + VEHICLES)
REPAIRING = Action(REPAIR, VEHICLES + DEVICES + described((CLOCK, CHAIR, CAMERA), (OLD,)))
CLEANING = Action(
    CLEAN_UP, ROOMS + described((WINDOW,), (DIRTY,)) + described((SHOE,), (DIRTY,), plural=True)
)
SEEING_SIGHTS = Action(VISIT, SIGHTS)
BRINGING_ALONG = Action(BRING_ALONG, GROCERIES + PRINTED + described((UMBRELLA, CAMERA), (OLD,)))
NEEDING = Action(NEED, LUGGAGE + FURNITURE + CLOTHES)
WEARING = Action(WEAR, WORN_BY_ALL)
WAITING = Action(WAIT, described((BUS, TRAIN, TAXI), ()), "Akkusativ", "for", "auf")
TAKING = Action(TAKE, described((BUS, TRAIN, TAXI), ()))
PUTTING_ON = Action(PUT_ON, WORN_BY_ALL)  # apart, because its past tense looks like its present
SWITCHING = (
    Action(OPEN, OPENINGS),
    Action(CLOSE, OPENINGS),
    Action(TURN_ON, DEVICES),
    Action(TURN_OFF, DEVICES),
)
THING_ACTIONS = (
    BUYING, ORDERING, FINDING, LOSING, FORGETTING, SELLING, REPAIRING, CLEANING, SEEING_SIGHTS, BRINGING_ALONG, WAITING,
    NEEDING, WEARING,
    Action(LOOK_FOR, LUGGAGE + PRINTED),
    Action(WRITE, MAIL + described((BOOK,), (NEW, GOOD))),
    Action(EAT, GROCERIES),
    Action(DRINK, DRINKS),
    TAKING,
    *SWITCHING,
    Action(TAKE_OFF, WORN_BY_ALL),
)  # fmt: skip
CALLING = Action(CALL, PEOPLE)
HELPING = Action(HELP, PEOPLE, "Dativ")
INVITING = Action(INVITE, PEOPLE)
COLLECTING = Action(
    PICK_UP, tuple(one for one in PEOPLE if isinstance(one, NounPhrase))
)  # not "pick up him"
PERSON_ACTIONS = (
    CALLING, HELPING, INVITING, COLLECTING,
    Action(VISIT, PEOPLE),
    Action(MEET, PEOPLE),
    Action(THANK, PEOPLE, "Dativ"),
    Action(WAIT, PEOPLE, "Akkusativ", "for", "auf"),
    Action(LOOK_FOR, PEOPLE),
)  # fmt: skip
ACCOMPLISHMENTS = (*(action for action in THING_ACTIONS if action is not NEEDING), PUTTING_ON)
DELIBERATE = tuple(action for action in ACCOMPLISHMENTS if action not in (LOSING, FORGETTING))
PLANS = (
    SEEING_SIGHTS, CLEANING, REPAIRING, BRINGING_ALONG, WAITING, TAKING, WEARING, PUTTING_ON, *SWITCHING
)  # fmt: skip
GOOD_NEWS = (BUYING, FINDING, REPAIRING, CLEANING, SEEING_SIGHTS, BRINGING_ALONG)
BAD_NEWS = (LOSING, FORGETTING, SELLING)
INTENTIONS = (BUYING, SELLING, REPAIRING, CLEANING, SEEING_SIGHTS, BRINGING_ALONG, *SWITCHING)
PRESENTS = described((BOOK, BAG, BALL, LAMP, CAMERA, UMBRELLA, CLOCK), (NEW,)) + described(
    (LETTER, POSTCARD), (LONG,)
)
GIVING = tuple(Action(verb, PRESENTS) for verb in (GIVE, SHOW, SEND, BRING))


@dataclass(frozen=True, eq=False)
class Scene:
    """Something an animal or a vehicle did not do, and for which of two reasons: an adjective fits one noun only."""

    action: Action
    actors: tuple[Noun, ...]
    actor_qualities: tuple[Adjective, ...]
    obstacles: dict[Noun, tuple[Adjective, ...]]


CROSSING = Action(CROSS, ())
CLIMBING = Action(CLIMB, (), "Akkusativ", "", "auf")
JUMPING = Action(JUMP, (), "Akkusativ", "over", "über")
ENTERING = Action(ENTER, ())
DEVOURING = Action(DEVOUR, ())
FITTING = Action(FIT, (), "Akkusativ", "into", "in")

SCENES = (
    Scene(CROSSING, WALKERS, (TIRED, SCARED, WEAK, SLOW, HUNGRY, SICK, NERVOUS, YOUNG), {
        STREET: (WIDE, BUSY, SLIPPERY), BRIDGE: (NARROW, LONG, HIGH, SLIPPERY), SQUARE: (BUSY, SLIPPERY),
        RIVER: (WIDE, DEEP), STREAM: (WIDE, DEEP), VALLEY: (WIDE, DEEP), FIELD: (WIDE, MUDDY), MEADOW: (STEEP, MUDDY),
        ICE: (SLIPPERY,),
    }),
    Scene(CLIMBING, CLIMBERS, (TIRED, SCARED, WEAK, SICK, LAZY, YOUNG), {
        MOUNTAIN: (STEEP, HIGH), HILL: (STEEP,), TREE: (HIGH,), WALL: (HIGH, SLIPPERY),
        ROOF: (STEEP, HIGH, SLIPPERY), GATE: (HIGH,),
    }),
    Scene(JUMPING, JUMPERS, (TIRED, SCARED, WEAK, SICK, LAZY, YOUNG), {
        FENCE: (HIGH,), WALL: (HIGH, WIDE), HEDGE: (HIGH, DENSE), GATE: (HIGH,), DITCH: (WIDE, DEEP),
        HOLE: (WIDE, DEEP), STREAM: (WIDE,),
    }),
    Scene(ENTERING, WALKERS, (SCARED, NERVOUS, TIRED), {
        CAVE: (DARK, DEEP, NARROW), BARN: (DARK, NARROW), STABLE: (DARK, NARROW), FOREST: (DARK, DENSE),
        ROOM: (DARK, NARROW), HOUSE: (DARK,), TUNNEL: (DARK, NARROW, LONG),
    }),
    Scene(DEVOURING, (ANIMAL, HORSE, GOAT, DONKEY, PIG, RABBIT, MOUSE, BEAR, MONKEY), (TIRED, SICK, NERVOUS, SCARED), {
        APPLE: (SOUR, HARD), PEAR: (SOUR, HARD), CARROT: (HARD,), BREAD: (HARD, DRY), CHEESE: (HARD, SALTY),
    }),
    Scene(DEVOURING, (ANIMAL, DOG, CAT, FOX, BEAR), (TIRED, SICK, NERVOUS, SCARED), {
        MEAT: (TOUGH, SALTY), SAUSAGE: (DRY, SALTY), EGG: (SALTY,), SOUP: (SALTY,),
    }),
    Scene(CROSSING, (CAR, BUS, TRUCK, TRACTOR, CARRIAGE), (HEAVY, SLOW), {
        BRIDGE: (NARROW, STEEP), STREAM: (DEEP, WIDE), FIELD: (MUDDY,), MEADOW: (MUDDY,), RIVER: (DEEP,),
        ICE: (SLIPPERY,),
    }),
    Scene(FITTING, (SUITCASE, BOX, BICYCLE, GUITAR, PICTURE, LAMP, MIRROR, TABLE, SOFA), (BIG, WIDE, HIGH), {
        CAR: (SMALL,), KITCHEN: (SMALL, NARROW), CUPBOARD: (SMALL, NARROW), ROOM: (SMALL, NARROW),
    }),
    Scene(FITTING, (BOOK, TROPHY, BALL, RADIO, CAMERA, UMBRELLA, NEWSPAPER, PICTURE), (BIG, WIDE), {
        BAG: (SMALL, NARROW, FULL), SUITCASE: (SMALL, FULL), BACKPACK: (SMALL, FULL), DRAWER: (SMALL, NARROW, FULL),
        BOX: (SMALL, NARROW, FULL),
    }),
)  # fmt: skip


def scenes(fitting: bool) -> Iterator[tuple]:
    """Actor, action, obstacle, quality and the noun that has it; the two nouns differ in German gender."""
    for scene in SCENES:
        if (scene.action is FITTING) != fitting:
            continue
        for actor, obstacle in product(scene.actors, scene.obstacles):
            if actor.gender != obstacle.gender:
                yield from (
                    (actor, scene.action, obstacle, quality, actor)
                    for quality in scene.actor_qualities
                )
                yield from (
                    (actor, scene.action, obstacle, quality, obstacle)
                    for quality in scene.obstacles[obstacle]
                )


def properties() -> Iterator[tuple]:
    """Each noun of the scenes with each adjective that can be true of it."""
    yield from dict.fromkeys(
        (bearer, quality) for fitting in (False, True) for *_, quality, bearer in scenes(fitting)
    )


def transitive(
    subjects: tuple, actions: tuple[Action, ...], adjectives: bool = True, at_most: int = 30
) -> Iterator[tuple]:
    """Who does what to what or to whom, not to oneself; `at_most` objects each, so that no verb crowds out another."""
    for subject, action in product(subjects, actions):
        things = [
            thing for thing in action.objects if adjectives or not getattr(thing, "adjective", None)
        ]
        for thing in things[:: ceil(len(things) / at_most)]:
            if not same_person(subject, thing):
                yield subject, action, thing


def same_person(one: NounPhrase | Pronoun, other: NounPhrase | Pronoun) -> bool:
    if isinstance(one, NounPhrase) and isinstance(other, NounPhrase):
        return one.noun is other.noun
    return one is other or {one, other} == {ME, WE}


# --- Tenses, moods and what surrounds a clause ----------------------------------------------------------------------

IS_AND_WAS = (("is", "ist"), ("was", "war"))
TOO_AND_VERY = (("too", "zu"), ("very", "sehr"))
NOT_DONE = ((("didn't", "Präteritum"), ("was", "war")), (("don't", "Präsens"), ("is", "ist")))
UNABLE = (("couldn't", "konnte", ("was", "war")), ("can't", "kann", ("is", "ist")))
PRESENT = ("present", "Präsens")
PAST = ("past", "Präteritum")
NEGATED = (("don't", "Präsens"), ("didn't", "Präteritum"))
WHEN = (
    ("every day", "jeden Tag", PRESENT),
    ("yesterday", "gestern", PAST),
    ("last week", "letzte Woche", PAST),
    ("on Sunday", "am Sonntag", PAST),
    ("today", "heute", PRESENT),
)
MODALS = (CAN, MUST, SHOULD, WANT_TO, WOULD_LIKE_TO, WILL)
TO_DO = ((TRY, PAST), (PROMISE, PRESENT), (PROMISE, PAST), (HOPE, PRESENT), (FORGET, PAST))
KNOWING = ((ME, KNOW), (HE, KNOW), (SHE, SAY), (WE, BELIEVE))
OTHERS = (ME, WE, NounPhrase(GRANDMOTHER, determiner=MY), NounPhrase(GRANDFATHER, determiner=THEIR))
GLAD_OR_SORRY = ((HAPPY, "because", "weil"), (SAD, "although", "obwohl"))
SORRY_OR_GLAD = ((SAD, "because", "weil"), (HAPPY, "although", "obwohl"))
CONDITIONS = (
    ("if/if it/rain rains/rain", "wenn/if es/rain regnet/rain"),
    ("if/if it/snow snows/snow", "wenn/if es/snow schneit/snow"),
    (
        "if/if the/the:weather weather is good",
        "wenn/if das/the:weather Wetter/weather gut/good ist/is",
    ),
    (
        "if/if the/the:weather weather is bad",
        "wenn/if das/the:weather Wetter/weather schlecht/bad ist/is",
    ),
    (
        "when/when the/the:guests guests arrive",
        "wenn/when die/the:guests Gäste/guests ankommen/arrive",
    ),
)

# --- Places, numbers, times and the topics of a phrasebook ------------------------------------------------------------

SMALL_THINGS = (
    KEY,
    BOOK,
    NEWSPAPER,
    LETTER,
    TICKET,
    CAMERA,
    KNIFE,
    FORK,
    SPOON,
    POSTCARD,
    UMBRELLA,
    SHIRT,
)
SPOTS = (
    *product((("in", "in", "into"),), (BAG, BOX, DRAWER, SUITCASE, CUPBOARD, BACKPACK, CAR)),
    *product((("on", "auf", "on"),), (TABLE, CHAIR, BED, SOFA, SHELF)),
    *product((("under", "unter", "under"),), (TABLE, CHAIR, BED, SOFA)),
    *product(
        (("next to", "neben", "next to"),),
        (LAMP, CLOCK, BED, MIRROR, GLASS, CUP, RADIO, TELEVISION),
    ),
    *product((("behind", "hinter", "behind"),), (DOOR, SOFA, MIRROR, CUPBOARD, TELEVISION)),
)
SITES = tuple(
    product((("next to", "neben"), ("behind", "hinter"), ("in front of", "vor")), BUILDINGS)
)

ENGLISH_NUMBERS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
GERMAN_NUMBERS = (
    "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf", "dreizehn",
    "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)  # fmt: skip
ENGLISH_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
GERMAN_TENS = (
    "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig",
)  # fmt: skip


def numeral(number: int) -> Determiner:
    """A number below a hundred as the determiner of what it counts: twenty-five, fünfundzwanzig."""
    if number < 20:
        return Determiner(ENGLISH_NUMBERS[number - 1], GERMAN_NUMBERS[number - 1], "bare")
    tens, ones = divmod(number, 10)
    english, german = ENGLISH_TENS[tens - 2], GERMAN_TENS[tens - 2]
    if ones:
        english = f"{english}-{ENGLISH_NUMBERS[ones - 1]}"
        german = f"{GERMAN_NUMBERS[ones - 1]}und{german}"
    return Determiner(english, german, "bare")


SMALL_NUMBERS = tuple(numeral(number) for number in range(2, 13))
AGES_OF_CHILDREN = tuple(numeral(number) for number in range(2, 20))
AGES_OF_ADULTS = tuple(numeral(number) for number in range(25, 100, 5))
PRICES = tuple(numeral(number) for number in (*range(10, 21), *range(25, 100, 5)))
HOUSEHOLD = (*CLOTHES, *FURNITURE, *LUGGAGE, *VEHICLES)
COUNTED = described((APPLE, PEAR, ORANGE, CARROT, POTATO, EGG), (BIG, FRESH), plural=True)
COUNTED += described(
    (SHIRT, DRESS, CHAIR, LAMP, BOOK, TICKET, GLASS, CUP, BOTTLE), (NEW, CHEAP), plural=True
)


def clock_times() -> Iterator[tuple[str, str, str]]:
    """Name, English and German of each quarter of an hour; German names the half hour by the hour to come."""
    for hour in range(1, 13):
        english, german = ENGLISH_NUMBERS[hour - 1], GERMAN_NUMBERS[hour - 1]
        spoken = "eins" if hour == 1 else german
        following = "eins" if hour == 12 else GERMAN_NUMBERS[hour]
        yield f"{english} o'clock", f"{english} o'clock", f"{german}/{english} Uhr/o'clock"
        yield (
            f"half past {english}",
            f"half past {english}",
            f"halb/half+past {following}/{english}",
        )
        for relation, beziehung in (("past", "nach"), ("to", "vor")):
            yield (
                f"quarter {relation} {english}",
                f"quarter {relation}/quarter_{relation} {english}",
                f"Viertel/quarter {beziehung}/quarter_{relation} {spoken}/{english}",
            )


CLOCK_TIMES = tuple(clock_times())
EVENTS = (
    *product(
        (the(noun, which) for noun in (TRAIN, BUS) for which in (None, FIRST_ONE, LAST_ONE)),
        (ARRIVE, LEAVE),
    ),
    *product(
        (the(noun) for noun in (MUSEUM, CASTLE, LIBRARY, BAKERY, PHARMACY, RESTAURANT, MARKET)),
        (OPEN, CLOSE),
    ),
    *product(SUBJECTS, (GET_UP, ARRIVE)),
)

COMPARABLE = tuple(
    (adjective, one, other)
    for nouns, adjectives in (
        ((SHIRT, DRESS, COAT, SKIRT, JACKET), (NEW, OLD, LONG, CHEAP, EXPENSIVE, BEAUTIFUL)),
        (
            (TABLE, CHAIR, BED, SOFA, LAMP, CUPBOARD, MIRROR),
            (NEW, OLD, BIG, SMALL, CHEAP, EXPENSIVE, BEAUTIFUL, HEAVY),
        ),
        (BUILDINGS, (NEW, OLD, BIG, SMALL, BEAUTIFUL)),
        ((CAR, BUS, TRAIN, BICYCLE, TAXI), (NEW, OLD, BIG, SMALL, CHEAP, EXPENSIVE)),
    )
    for adjective, one, other in product(adjectives, nouns, nouns)
    if one is not other
)
PEERS = tuple(
    (adjective, one, other)
    for generation in ((MOTHER, FATHER, AUNT, UNCLE), (SISTER, BROTHER, FRIEND, NEIGHBOR), CHILDREN)
    for adjective, one, other in product((OLD, YOUNG), generation, generation)
    if one is not other
)
CITIES = (
    ("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("Dresden", "Dresden"), ("Bremen", "Bremen"), ("Leipzig", "Leipzig"),
    ("Zurich", "Zürich"), ("Munich", "München"), ("Vienna", "Wien"), ("Cologne", "Köln"),
)  # fmt: skip
SERVINGS = (
    *product((CUP,), (COFFEE, TEA, MILK)), *product((GLASS,), (WATER, MILK, JUICE, WINE, BEER)),
    *product((BOTTLE,), (WATER, JUICE, WINE, BEER, MILK)), *product((PIECE,), (CAKE, BREAD, CHEESE, MEAT)),
)  # fmt: skip
DISHES = (
    *product((SOUP, TEA, COFFEE, MEAT), (COLD, HOT)), *product((SOUP, SALAD, MEAT, SAUSAGE, CHEESE), (SALTY,)),
    *product((MEAT, SAUSAGE, CAKE, BREAD), (DRY,)), *product((SOUP, SALAD, CAKE, WINE, BEER, COFFEE), (EXPENSIVE,)),
)  # fmt: skip
DAYS = (
    ("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"), ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"), ("Saturday", "Samstag"), ("Sunday", "Sonntag"),
)  # fmt: skip
WEATHER_DAYS = (
    ("is", "today", "ist", "heute"), ("was", "yesterday", "war", "gestern"),
)  # fmt: skip
LIMBS = described((KNEE, HAND, ARM, LEG, FOOT, SHOULDER), SIDES)
LIMBS += described((KNEE, HAND, ARM, LEG, FOOT, SHOULDER, FINGER), (), plural=True)
BODY = (
    *LIMBS,
    *described((HEAD, BACK), ()),
    *described((EYE, EAR), SIDES),
    *described((EYE, EAR), (), plural=True),
)

# --- Everyday life ----------------------------------------------------------------------------------

THINGS_TO_HAVE = (
    *LUGGAGE, *PRINTED, *VEHICLES, *described((DOG, CAT, HORSE), (OLD, YOUNG, BIG, SMALL, BLACK, WHITE)),
    *described((SISTER, BROTHER, DAUGHTER, SON), ()), *described((APPLE, PEAR, ORANGE), (BIG, FRESH), plural=True),
)  # fmt: skip
HAVING = Action(HAVE, THINGS_TO_HAVE)
LOVED = tuple(person for person in PEOPLE if person is not YOU)  # a stranger is not told so
READING = Action(READ, PRINTED + MAIL)
SEEING_THINGS = (Action(SEE, SIGHTS), Action(KNOW_SOMEONE, SIGHTS))
SEEING_PEOPLE = (
    *(Action(verb, PEOPLE) for verb in (SEE, KNOW_SOMEONE, HEAR, ASK, UNDERSTAND)),
    Action(LOVE, LOVED),
)
IN_PROGRESS = (*(action for action in DELIBERATE if action is not FINDING), READING)
REQUESTS = (
    BUYING, REPAIRING, CLEANING, BRINGING_ALONG, WAITING, TAKING, *SWITCHING, READING
)  # fmt: skip
PEOPLE_REQUESTS = (CALLING, HELPING, INVITING, COLLECTING)
EATING = Action(LIKE_EATING, GROCERIES + DRINKS)

# An adverb: English, German, and whether "nicht" stands before it.
HERE = ("here", "hier", True)
AT_HOME = ("at home", "zu Hause", True)
ALONE = ("alone", "allein", True)
WELL = ("well", "gut", True)
A_LOT = ("a lot", "viel", True)
TODAY = ("today", "heute", False)
EVERY_DAY = ("every day", "jeden Tag", True)
IN_THE_EVENING = ("in the evening", "am Abend", False)
HABITS = (
    *product((WORK,), (HERE, AT_HOME, ALONE, A_LOT, TODAY, EVERY_DAY, IN_THE_EVENING)),
    *product((LEARN,), (HERE, AT_HOME, ALONE, A_LOT, TODAY, EVERY_DAY, IN_THE_EVENING)),
    *product((COOK,), (HERE, AT_HOME, WELL, TODAY, EVERY_DAY, IN_THE_EVENING)),
    *product((DANCE, SING), (HERE, ALONE, WELL, A_LOT, EVERY_DAY, IN_THE_EVENING)),
    *product((SWIM,), (HERE, ALONE, WELL, A_LOT, EVERY_DAY)),
    *product((SLEEP,), (HERE, AT_HOME, WELL, ALONE)),
    *product((PLAY,), (HERE, AT_HOME, ALONE, WELL, TODAY, EVERY_DAY)),
    *product((STAY,), (HERE, AT_HOME, ALONE)),
    *product((LIVE,), (HERE, ALONE)),
    *product((TRAVEL,), (ALONE, A_LOT)),
    *product((LAUGH,), (A_LOT,)),
)
ASKED_WITH_WHY = (WORK, LEARN, COOK, DANCE, SING, SWIM, SLEEP, PLAY, LAUGH, READ)
QUESTION_WORDS = (("where", "wo"), ("when", "wann"), ("why", "warum"))
STATES = (
    TIRED, HUNGRY, THIRSTY, SICK, HEALTHY, HAPPY, SAD, ANGRY, NERVOUS, READY
)  # fmt: skip
NATIVES = (
    ME, HE, SHE, WE, THEY, the(TEACHER), the(WOMAN, OLD), the(MAN, YOUNG), the(GIRL), the(DOCTOR),
)  # fmt: skip
TOWNS = (
    *CITIES, ("Frankfurt", "Frankfurt"), ("Stuttgart", "Stuttgart"), ("Salzburg", "Salzburg"),
    ("Rome", "Rom"), ("Paris", "Paris"), ("London", "London"),
)  # fmt: skip
HOMES = (
    *TOWNS, ("Germany", "Deutschland"), ("Austria", "Österreich"), ("England", "England"), ("France", "Frankreich"),
    ("Italy", "Italien"), ("Spain", "Spanien"), ("Poland", "Polen"),
)  # fmt: skip
TONGUES = (
    ("English", "Englisch"), ("German", "Deutsch"), ("French", "Französisch"), ("Italian", "Italienisch"),
    ("Spanish", "Spanisch"), ("Polish", "Polnisch"), ("Turkish", "Türkisch"), ("Russian", "Russisch"),
)  # fmt: skip
LINES = described((TRAIN, BUS), (FIRST_ONE, NEXT_ONE, LAST_ONE))
MEN = ("Peter", "Paul", "Thomas", "Martin", "Max", "Felix", "Jonas", "David")
WOMEN = ("Anna", "Maria", "Julia", "Laura", "Sarah", "Eva", "Lisa", "Clara")
SURNAMES = (
    "Weber", "Wagner", "Becker", "Schulz", "Hoffmann", "Koch", "Richter", "Klein", "Wolf", "Neumann"
)  # fmt: skip
INTRODUCED = (
    *product(((ME, MY),), MEN + WOMEN), *product(((ME, MY),), map(" ".join, product(MEN + WOMEN, SURNAMES))),
    *product(((HE, HIS),), MEN), *product(((SHE, HER),), WOMEN)
)  # fmt: skip
CALLED = (
    *((name, name) for name in MEN + WOMEN),
    *((f"Mr. {name}", f"Herr/Mr {name}/{name}") for name in SURNAMES),
    *((f"Mrs. {name}", f"Frau/Mrs {name}/{name}") for name in SURNAMES),
)
GREETINGS = (
    ("hello", "hallo/hello"), ("good morning", "guten/good Morgen/morning"),
    ("good evening", "guten/good Abend/evening"),
    ("good night", "gute/good Nacht/night"), ("goodbye", "auf/goodbye Wiedersehen/goodbye"),
    ("thank/thank you/thank", "danke/thank"),
)  # fmt: skip
RELATIVES = (*ADULTS, GRANDMOTHER, GRANDFATHER, *CHILDREN, FRIEND, NEIGHBOR)
FEW = tuple(numeral(number) for number in range(2, 6))
NEARBY = (None, NEAREST)
DEGREES = (("", ""), ("very", "sehr"), ("too", "zu"), ("not", "nicht"))
SOON = (("tomorrow", "morgen"), ("this evening", "heute Abend"), ("next week", "nächste Woche"))
ASKING_THE_TIME = (("when", "wann"), ("what time", "um wie viel Uhr"))
