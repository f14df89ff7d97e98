"""How words inflect in English and German.

It has nouns, adjectives, determiners, pronouns and verbs. Words and phrases are written through
`format`. An English form is asked for by its English name (`{verb:past}`), a German form by its
German name (`{verb:Präteritum}`, `{phrase:Akkusativ}`). The result is glossed: `Tier/animal` says
that "Tier" renders "animal", and an English and a German word with the same gloss are aligned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

# The persons with a verb form of their own; the polite "Sie" takes the plural. The forms of "du"
# come from the third person, see `second_person`.
FIRST, THIRD, PLURAL, FAMILIAR = range(4)
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
    """A noun in both languages, with its irregular forms."""

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
        """The English singular or plural."""
        return (self.english_plural or with_s(self.english)) if plural else self.english

    def in_german(self, case: str, plural: bool) -> str:
        """The German form in a case."""
        if plural:
            needs_n = case == "Dativ" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        nominative = self.german.split()[1]
        return nominative if case == "Nominativ" else self.oblique or nominative


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective in both languages."""

    english: str
    german: str
    stem: str = ""  # takes the endings, where it is not the predicative form: "teur"
    comparative: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return self.english

    def __format__(self, form: str) -> str:
        """Write the adjective alone, or compared.

        `""` and `Prädikat` stand after "is" and "ist", `comparative` and `Komparativ` before "than"
        and "als".
        """
        word = {
            "": self.english,
            "Prädikat": self.german,
            "comparative": self.comparative[0],
            "Komparativ": self.comparative[1],
        }[form]
        return glossed(word, self.english)

    def with_ending(self, ending: str) -> str:
        """The German adjective before its noun."""
        return (self.stem or self.german.removesuffix("e")) + ending


@dataclass(frozen=True, eq=False)
class Determiner:
    """An article, a possessive, a demonstrative or a number in both languages."""

    english: str
    german: str
    kind: str  # "der", "dieser" and "ein" name the pattern of endings; "bare" has none

    def __str__(self) -> str:
        return self.english

    def in_german(self, case: str, gender: str) -> str:
        """The German form in a case, for a gender or "plural"."""
        if self.kind == "der":
            return ARTICLES[case][gender]
        return (
            self.german
            if self.without_ending(case, gender)
            else self.german + STRONG_ENDINGS[case][gender]
        )

    def without_ending(self, case: str, gender: str) -> bool:
        """Whether the German form is bare, as "ein" is in "ein Buch"."""
        return self.kind == "bare" or (self.kind == "ein" and (case, gender) in EIN_WITHOUT_ENDING)

    def adjective_ending(self, case: str, gender: str) -> str:
        """Return the ending of an adjective behind this determiner.

        German shows the gender once: on the determiner if that has an ending, else on the
        adjective.
        """
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
YOUR_FAMILIAR = Determiner("your", "dein", "ein")
HIS = Determiner("his", "sein", "ein")
HER = Determiner("her", "ihr", "ein")
OUR = Determiner("our", "unser", "ein")
THEIR = Determiner("their", "ihr", "ein")
OWNERS = (MY, YOUR, HIS, HER, OUR, THEIR)


@dataclass(frozen=True, eq=False)
class NounPhrase:
    """A noun with its adjective and its determiner."""

    noun: Noun
    adjective: Adjective | None = None
    determiner: Determiner = NO_ARTICLE
    plural: bool = False

    def __str__(self) -> str:
        noun = self.noun.in_english(self.plural)
        return f"{self.adjective.english} {noun}" if self.adjective else noun

    @property
    def person(self) -> int:
        """The person of the verb."""
        return PLURAL if self.plural else THIRD

    def determined(self, determiner: Determiner | None) -> NounPhrase:
        """Return the phrase with this determiner, or as it is for None.

        There is no "a" before a plural or an uncountable noun.
        """
        return self if determiner is None else determined(self, determiner)

    def __format__(self, case: str) -> str:
        """`""` and `object` are the same in English; otherwise a German case."""
        return written(self, case)

    def in_english(self) -> tuple[str, str, str]:
        """Determiner, adjective and noun; empty without one."""
        adjective = str(self.adjective or "")
        noun = self.noun.in_english(self.plural)
        vowel_follows = self.determiner is A and (adjective or noun)[0] in "aeiou"
        return self.determiner.english + "n" * vowel_follows, adjective, noun

    def in_german(self, case: str) -> tuple[str, str, str]:
        """Determiner, adjective and noun in a case."""
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
    """The phrase with this determiner, adapted to plural and uncountable nouns."""
    if determiner is A and (phrase.plural or not phrase.noun.countable):
        determiner = NO_ARTICLE
    if determiner is THIS and phrase.plural:
        determiner = THESE
    return replace(phrase, determiner=determiner)


@dataclass(frozen=True, eq=False)
class Pronoun:
    """A personal pronoun in both languages."""

    person: int
    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str

    def __str__(self) -> str:
        return self.english

    def determined(self, determiner: Determiner | None) -> Pronoun:
        """The pronoun itself: it takes no determiner."""
        return self

    def __format__(self, case: str) -> str:
        """Write the pronoun in English, or in a German case.

        `""` and `object` are the English forms; `experiencer` is the person who likes (gefällt).
        """
        word, gloss = {
            "": (self.english, self.english),
            "object": (self.english_object, self.english_object),
            "experiencer": (self.english, self.english_object),
            "Nominativ": (self.nominative, self.english),
            "Akkusativ": (self.accusative, self.english_object),
            "Dativ": (self.dative, self.english_object),
        }[case]
        return glossed(word, gloss)


Nominal = NounPhrase | Pronoun  # a subject or an object


@dataclass(frozen=True, eq=False)
class PrepositionalPhrase:
    """A preposition and its object, with the case that the German one governs."""

    english: str
    german: str
    case: str
    phrase: Nominal

    def __str__(self) -> str:
        return f"{self.english} {self.phrase}"

    def __format__(self, language: str) -> str:
        """Write the phrase in English (`""`) or German (`deutsch`).

        German contracts preposition and article ("zum Bahnhof").
        """
        gloss = self.english.replace(" ", "_")
        if language == "":
            return f"{glossed(self.english, gloss)} {self.phrase:object}"
        return contracted(glossed(self.german, gloss), f"{self.phrase:{self.case}}")


def contracted(preposition: str, phrase: str) -> str:
    """Join a glossed German preposition and article.

    `zu/to` and `dem/the:station Bahnhof/station` become `zum/to+the:station Bahnhof/station`.
    """
    word, _, gloss = preposition.rpartition("/")
    first, _, noun = phrase.partition(" ")
    article, _, article_gloss = first.partition("/")
    if f"{word} {article}" not in CONTRACTIONS:
        return f"{preposition} {phrase}"
    return f"{CONTRACTIONS[f'{word} {article}']}/{gloss}+{article_gloss} {noun}"


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with all its forms in both languages, by name and person."""

    lemma: str
    particle: str
    forms: dict[str, tuple[str, str, str]]  # name of the form -> the word for each person

    def __str__(self) -> str:
        return self.lemma

    def of(self, subject: Nominal) -> Predicate:
        """The verb as it agrees with its subject."""
        return Predicate(self, subject.person)


def verb(english: str, german: str, particle: str = "", **irregular: tuple[str, str, str]) -> Verb:
    """Return a verb from its principal parts.

    Forms that no rule gives are passed by name, `present=("am", "is", "are")`. English: infinitive,
    past, participle. German: infinitive with its separable prefix marked ("an|rufen"), third person
    present and preterite, auxiliary and participle.
    """
    lemma = "_".join((english.split()[0], *particle.split()))
    return Verb(
        lemma, particle, english_forms(*english.split()) | german_forms(*german.split()) | irregular
    )


def modal(english: str, german: str, third: str = "") -> Verb:
    """Return a modal verb, present tense only.

    `german` is first (and third) person singular and plural.
    """
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
    """The English forms of a verb for each person, by their English names."""
    return {
        "base": (base,) * 3,
        "present": (base, with_s(base), base),
        "past": (past,) * 3,
        "participle": (participle,) * 3,
        "ing": (with_ing(base),) * 3,
        "progressive": (f"am {with_ing(base)}", f"is {with_ing(base)}", f"are {with_ing(base)}"),
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
    """Return the German forms of a verb for each person.

    Args:
        infinitive: Its separable prefix is marked, "an|rufen".
        present: Third person singular, without the prefix: "ruft".
        preterite: Third person singular, without the prefix: "rief".
        auxiliary: "hat" or "ist".
        participle: With the prefix: "angerufen".

    Returns:
        The forms by their German names: first and third person singular, and plural.
    """
    prefix, _, stem = infinitive.rpartition("|")
    finite = {
        "Präsens": (stem.removesuffix("n"), present, stem),
        "Präteritum": (preterite, preterite, preterite.removesuffix("e") + "en"),
    }
    at_the_end = {
        f"{tense} am Ende": (prefix + first, prefix + third, prefix + plural)
        for tense, (first, third, plural) in finite.items()
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


IRREGULAR_SECOND_PERSON = {"ist": "bist", "wird": "wirst"}
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
    """A verb in the person of its subject."""

    verb: Verb
    person: int

    def __format__(self, form: str) -> str:
        """Write a form of the verb, one of `Verb.forms`, or `Imperativ` with "Sie" if polite.

        `Vorsilbe` is empty for a verb without a separable prefix.
        """
        if form == "Imperativ":
            if self.person == FAMILIAR:
                return glossed(imperative(self.verb), self.verb.lemma)
            return f"{self:Präsens} {glossed('Sie', self.verb.lemma)}"
        return conjugated(self.verb, self.person, form)


def second_person(third: str, form: str) -> str:
    """Return the form for "du", given the third person.

    Example:
        >>> [second_person(word, "Präsens") for word in ("macht", "liest", "muss", "ist")]
        ['machst', 'liest', 'musst', 'bist']
        >>> [second_person(word, "Präteritum") for word in ("machte", "rief", "las")]
        ['machtest', 'riefst', 'lasest']
    """
    if third in IRREGULAR_SECOND_PERSON:
        return IRREGULAR_SECOND_PERSON[third]
    if form.startswith("Präteritum"):
        return third + ("est" if third.endswith(("s", "ß", "d", "t")) else "st")
    stem = third.removesuffix("t")
    return stem + ("t" if stem.endswith(("s", "ß", "z")) else "st")


def imperative(verb: Verb) -> str:
    """Return the imperative for "du": mach, öffne, and with the third person's vowel gib.

    The vowel does not become an umlaut: "fahr" beside "fährt".
    """
    _, third, plural = verb.forms["Präsens"]
    stem = plural.removesuffix("n").removesuffix("e")
    of_third = third.removesuffix("t")
    return stem if re.search("[äöü]", of_third) and of_third != stem + "e" else of_third


@cache
def conjugated(verb: Verb, person: int, form: str) -> str:
    """A form of a verb with its gloss; a particle belongs to it."""
    forms = verb.forms[form]
    if person == FAMILIAR:
        is_finite = form.startswith(("Präsens", "Präteritum", "Hilfsverb"))
        words = second_person(forms[THIRD], form) if is_finite else forms[PLURAL]
    else:
        words = forms[person]
    if form in FORMS_WITH_PARTICLE:
        words = f"{words} {verb.particle}"
    return glossed(words, GLOSS_OF_FORM.get(form, verb.lemma))


# --- Objects and phrases ---


@dataclass(frozen=True, eq=False)
class Complement:
    """The object of a verb, with the preposition and the case that the verb governs."""

    action: Action
    phrase: Nominal

    def __format__(self, form: str) -> str:
        """Write the complement in English (`""`) or German.

        `deutsch` affirms; `verneint` has "nicht" or "kein" where it belongs.
        """
        return {"": governed, "deutsch": regiert, "verneint": verneint}[form](
            self.action, self.phrase
        )


@cache
def governed(action: Action, phrase: Nominal) -> str:
    """The English object with its preposition."""
    return f"{glossed(action.english_preposition, 'to_object')} {phrase:object}"


@cache
def regiert(action: Action, phrase: Nominal) -> str:
    """The German object with its preposition, in its case."""
    gloss = "to_object" if action.english_preposition else action.verb.lemma
    return contracted(glossed(action.german_preposition, gloss), f"{phrase:{action.case}}")


@cache
def verneint(action: Action, phrase: Nominal) -> str:
    """Negate a German object, with "nicht" or "kein".

    An object without a preposition stands before "nicht", one with it after; "nicht ein" is "kein".
    """
    if action.german_preposition:
        return f"nicht/not {regiert(action, phrase)}"
    if isinstance(phrase, NounPhrase) and phrase.determiner in (A, NO_ARTICLE):
        kein, _, noun = f"{phrase.determined(NOT_A):{action.case}}".partition(" ")
        return f"{kein}+not {noun}"
    return f"{regiert(action, phrase)} nicht/not"


@dataclass(frozen=True, eq=False)
class Action:
    """A verb and the objects it makes sense with."""

    verb: Verb
    objects: tuple[Nominal, ...]
    case: str = "Akkusativ"
    english_preposition: str = ""
    german_preposition: str = ""

    def __str__(self) -> str:
        return self.verb.lemma

    def on(self, phrase: Nominal) -> Complement:
        """The object of this verb."""
        return Complement(self, phrase)


def described(
    nouns: tuple[Noun, ...], adjectives: tuple[Adjective, ...], plural: bool = False
) -> tuple[NounPhrase, ...]:
    """Each noun alone and with each adjective, without a determiner."""
    return tuple(
        NounPhrase(noun, adjective, plural=plural)
        for noun in nouns
        for adjective in (None, *adjectives)
    )


@cache
def phrase(determiner: Determiner, noun: Noun) -> NounPhrase:
    """A determiner and a noun: `my aunt`."""
    return NounPhrase(noun, determiner=determiner)


@cache
def the(noun: Noun, adjective: Adjective | None = None, plural: bool = False) -> NounPhrase:
    """A noun with the definite article: `the old woman`."""
    return NounPhrase(noun, adjective, THE, plural)
