"""Rules for statements, questions, negation, clauses, coreference and topics.

Words and their forms come from the lexicon.
`Tier/animal` in a German sentence says that "Tier" renders "animal": that is where the word
alignment comes from. The docstring of each rule is one pair that it writes.
"""

# A word and its form in the sentence share a name.
# mypy: allow-redefinition

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from phrasebook.inflection import (
    HER,
    HIS,
    MY,
    NO_ARTICLE,
    OUR,
    OWNERS,
    PRONOUN_OF_GENDER,
    THE,
    THIS,
    WHICH,
    YOUR,
    A,
    Action,
    Adjective,
    Determiner,
    Noun,
    NounPhrase,
    PrepositionalPhrase,
    Verb,
    glossed,
    phrase,
    the,
)
from phrasebook.lexicon import (
    ACCOMPLISHMENTS,
    ADULTS,
    AGES_OF_ADULTS,
    AGES_OF_CHILDREN,
    ASKED_ABOUT,
    BAD_NEWS,
    BALCONY,
    BATHROOM,
    BE,
    BEAUTIFUL,
    BIG,
    BODY,
    BRIDGE,
    BUILDINGS,
    BUYING,
    CALLING,
    CAN,
    CHEAP,
    CHILDREN,
    CITIES,
    CLEAN,
    CLOCK_TIMES,
    CLOTHES,
    COLD,
    COLLECTING,
    COMPARABLE,
    CONDITIONS,
    COST,
    COULD,
    COUNTED,
    DAUGHTER,
    DAYS,
    DELIBERATE,
    DESTINATIONS,
    DINERS,
    DIRTY,
    DISHES,
    DRIVE,
    DRY,
    EATING,
    EVENTS,
    EXPENSIVE,
    FEW,
    FINDING,
    FOGGY,
    GET_TO,
    GIVERS,
    GIVING,
    GLAD_OR_SORRY,
    GO,
    GOOD_NEWS,
    GOODS,
    HAVING,
    HE,
    HEAVY,
    HELPING,
    HOT,
    HOUSEHOLD,
    HURT,
    INTENTIONS,
    INVITING,
    IS_AND_WAS,
    IT,
    KITCHEN,
    KNOWING,
    LIKE,
    LIMBS,
    LIVE,
    LUGGAGE,
    ME,
    MODALS,
    MOVE,
    NEEDING,
    NEGATED,
    NEW,
    NIGHT,
    NOT_DONE,
    OLD,
    ORDERING,
    OTHERS,
    PAST,
    PEERS,
    PERSON,
    PERSON_ACTIONS,
    PLANS,
    PRESENT,
    PRICES,
    PUT,
    QUIET,
    RAIN,
    READING,
    RECEIVERS,
    REPAIRING,
    RIVER,
    ROOM,
    SEEING_PEOPLE,
    SEEING_THINGS,
    SELLING,
    SERVINGS,
    SHE,
    SHOWER,
    SITES,
    SMALL,
    SMALL_NUMBERS,
    SMALL_THINGS,
    SNOW,
    SON,
    SORRY_OR_GLAD,
    SPOTS,
    SUBJECTS,
    SWITCHING,
    TELEVISION,
    THEY,
    THING_ACTIONS,
    TO_DO,
    TOO_AND_VERY,
    TURN,
    UNABLE,
    WARM,
    WE,
    WEARING,
    WEATHER_DAYS,
    WHEN,
    WINDY,
    WORK,
    WOULD_LIKE,
    YOU,
    properties,
    same_person,
    scenes,
    transitive,
)
from phrasebook.rules import Sentence, Subject, Tense, Words, clause, rule

# --- Clauses --------------------------------------------------------------------------------------


@rule("statement", 30, transitive(GIVERS, THING_ACTIONS), product((PRESENT, PAST), (THE, A)))
@rule("statement", 25, transitive(SUBJECTS, PERSON_ACTIONS), product((PRESENT, PAST), (None,)))
@rule("statement", 8, transitive(SUBJECTS, SEEING_THINGS), product((PRESENT, PAST), (THE,)))
@rule("statement", 11, transitive(SUBJECTS, SEEING_PEOPLE), product((PRESENT, PAST), (None,)))
@rule("statement", 8, transitive(SUBJECTS, (HAVING,), at_most=100), product((PRESENT, PAST), (A,)))
@rule(
    "statement", 9, transitive(SUBJECTS, (EATING,), at_most=100), product((PRESENT,), (NO_ARTICLE,))
)
def statement(
    subject: Subject, action: Action, thing: Subject, tense: Tense, determiner: Determiner | None
) -> Sentence:
    """Their daughter likes big potatoes. / Ihre Tochter mag große Kartoffeln."""
    english, german = tense
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {verb:{english}} {thing}.",
        f"{subject:Nominativ} {verb:{german}} {thing:deutsch} {verb:Vorsilbe}.",
    )


@rule(
    "verb-second",
    20,
    transitive(SUBJECTS, THING_ACTIONS, adjectives=False, at_most=8),
    product(WHEN, (THE, A)),
)
@rule("verb-second", 15, transitive(SUBJECTS, PERSON_ACTIONS), product(WHEN, (None,)))
def verb_second(
    subject: Subject,
    action: Action,
    thing: Subject,
    when: tuple[str, str, Tense],
    determiner: Determiner | None,
) -> Sentence:
    """On Sunday the young man thanked him. / Am Sonntag dankte der junge Mann ihm."""
    english_when, german_when, (english, german) = when
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{glossed(english_when, 'when')} {subject} {verb:{english}} {thing}.",
        f"{glossed(german_when, 'when')} {verb:{german}} {subject:Nominativ} {thing:deutsch} "
        f"{verb:Vorsilbe}.",
    )


@rule(
    "negation",
    24,
    transitive(SUBJECTS, THING_ACTIONS, adjectives=False, at_most=8),
    product(NEGATED, (THE, A, HER)),
)
@rule("negation", 16, transitive(SUBJECTS, PERSON_ACTIONS), product(NEGATED, (None,)))
@rule("negation", 5, transitive(SUBJECTS, (*SEEING_THINGS, READING)), product(NEGATED, (THE,)))
@rule("negation", 6, transitive(SUBJECTS, SEEING_PEOPLE), product(NEGATED, (None,)))
@rule("negation", 6, transitive(SUBJECTS, (HAVING,), at_most=100), product(NEGATED, (A,)))
@rule(
    "negation", 5, transitive(SUBJECTS, (EATING,), at_most=100), product(NEGATED[:1], (NO_ARTICLE,))
)
def negation(
    subject: Subject, action: Action, thing: Subject, tense: Tense, determiner: Determiner | None
) -> Sentence:
    """My brother doesn't like fresh bread. / Mein Bruder mag kein frisches Brot."""
    english, german = tense
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {verb:{english}} {verb:base} {thing}.",
        f"{subject:Nominativ} {verb:{german}} {thing:verneint} {verb:Vorsilbe}.",
    )


@rule(
    "question",
    16,
    transitive(ASKED_ABOUT, THING_ACTIONS, adjectives=False, at_most=8),
    product((THE, A, THIS)),
)
@rule("question", 8, transitive(ASKED_ABOUT, PERSON_ACTIONS), ((None,),))
@rule("question", 4, transitive(ASKED_ABOUT, (*SEEING_THINGS, READING)), ((THE,),))
@rule("question", 5, transitive(ASKED_ABOUT, SEEING_PEOPLE), ((None,),))
@rule("question", 6, transitive(ASKED_ABOUT, (HAVING,), at_most=100), ((A,),))
@rule("question", 4, transitive(ASKED_ABOUT, (EATING,), at_most=100), ((NO_ARTICLE,),))
def question(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """Does the young woman like good tea? / Mag die junge Frau guten Tee?"""
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{verb:do} {subject} {verb:base} {thing}?",
        f"{verb:Präsens} {subject:Nominativ} {thing:deutsch} {verb:Vorsilbe}?",
    )


@rule(
    "question",
    16,
    transitive(ASKED_ABOUT, ACCOMPLISHMENTS, adjectives=False, at_most=8),
    product((THE, A, YOUR)),
)
@rule("question", 8, transitive(ASKED_ABOUT, PERSON_ACTIONS), ((None,),))
def perfect_question(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """Have your children thanked the girl? / Haben Ihre Kinder dem Mädchen gedankt?"""
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{verb:have} {subject} {verb:participle} {thing}?",
        f"{verb:Hilfsverb} {subject:Nominativ} {thing:deutsch} {verb:Partizip}?",
    )


@rule(
    "question",
    12,
    transitive(ASKED_ABOUT, THING_ACTIONS, adjectives=False, at_most=8),
    product((THE, THIS)),
)
@rule("question", 8, transitive(ASKED_ABOUT, PERSON_ACTIONS), ((None,),))
def why(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """Why does the girl pick up my friend? / Warum holt das Mädchen meinen Freund ab?"""
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"why {verb:do} {subject} {verb:base} {thing}?",
        f"warum/why {verb:Präsens} {subject:Nominativ} {thing:deutsch} {verb:Vorsilbe}?",
    )


@rule(
    "question",
    8,
    transitive((*ASKED_ABOUT, ME, WE), (BUYING, FINDING, REPAIRING, SELLING)),
    product((THE, A)),
)
def where_can(subject: Subject, action: Action, thing: Subject, determiner: Determiner) -> Sentence:
    """Where can they repair the new radio? / Wo können sie das neue Radio reparieren?"""
    can = CAN.of(subject)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"where {can:present} {subject} {verb:base} {thing}?",
        f"wo/where {can:Präsens} {subject:Nominativ} {thing:deutsch} {verb:Infinitiv}?",
    )


@rule("question", 8, transitive((HE,), ACCOMPLISHMENTS), product((THE, MY)))
def who(someone: Subject, action: Action, thing: Subject, determiner: Determiner) -> Sentence:
    """Who has looked for the cheap ticket? / Wer hat die billige Fahrkarte gesucht?"""
    verb, thing = clause(someone, action, thing, determiner)
    return Sentence(
        f"who {verb:have} {verb:participle} {thing}?",
        f"wer/who {verb:Hilfsverb} {thing:deutsch} {verb:Partizip}?",
    )


@rule(
    "question",
    8,
    transitive(ASKED_ABOUT, (BUYING, WEARING, NEEDING, *SWITCHING), adjectives=False, at_most=8),
)
def which(subject: Subject, action: Action, thing: Subject) -> Sentence:
    """Which mirror does your brother need? / Welchen Spiegel braucht Ihr Bruder?"""
    verb = action.verb.of(subject)
    thing = thing.determined(WHICH)
    return Sentence(
        f"{thing} {verb:do} {subject} {verb:base}?",
        f"{thing:Akkusativ} {verb:Präsens} {subject:Nominativ} {verb:Vorsilbe}?",
    )


@rule(
    "modal",
    16,
    transitive(SUBJECTS, DELIBERATE, adjectives=False, at_most=8),
    product(MODALS, (THE, A)),
)
@rule("modal", 12, transitive(SUBJECTS, PERSON_ACTIONS), product(MODALS, (None,)))
def modal(
    subject: Subject,
    action: Action,
    thing: Subject,
    modal_verb: Verb,
    determiner: Determiner | None,
) -> Sentence:
    """My mother must pick up a sick child.

    Meine Mutter muss ein krankes Kind abholen.
    """
    modal = modal_verb.of(subject)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {modal:present} {verb:base} {thing}.",
        f"{subject:Nominativ} {modal:Präsens} {thing:deutsch} {verb:Infinitiv}.",
    )


@rule(
    "modal", 12, transitive(SUBJECTS, DELIBERATE, adjectives=False, at_most=8), product((THE, MY))
)
@rule("modal", 8, transitive(SUBJECTS, PERSON_ACTIONS), ((None,),))
def cannot(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """The girl can't meet the young woman.

    Das Mädchen kann die junge Frau nicht treffen.
    """
    can = CAN.of(subject)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} can't/can+not {verb:base} {thing}.",
        f"{subject:Nominativ} {can:Präsens} {thing:verneint} {verb:Infinitiv}.",
    )


@rule("perfect", 23, transitive(SUBJECTS, ACCOMPLISHMENTS), product((A, HER)))
@rule("perfect", 14, transitive(SUBJECTS, PERSON_ACTIONS), ((None,),))
def perfect(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """The girl has picked up a sick child.

    Das Mädchen hat ein krankes Kind abgeholt.
    """
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {verb:have} {verb:participle} {thing}.",
        f"{subject:Nominativ} {verb:Hilfsverb} {thing:deutsch} {verb:Partizip}.",
    )


@rule(
    "infinitive",
    14,
    transitive(SUBJECTS, INTENTIONS, adjectives=False, at_most=8),
    product(TO_DO, (THE, MY)),
)
@rule(
    "infinitive",
    14,
    transitive(SUBJECTS, (CALLING, HELPING, INVITING, COLLECTING)),
    product(TO_DO, (None,)),
)
def infinitive(
    subject: Subject,
    action: Action,
    thing: Subject,
    to_do: tuple[Verb, Tense],
    determiner: Determiner | None,
) -> Sentence:
    """They promise to invite her daughter. / Sie versprechen, ihre Tochter einzuladen."""
    control, (english, german) = to_do
    control = control.of(subject)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {control:{english}} to/{action} {verb:base} {thing}.",
        f"{subject:Nominativ} {control:{german}}, {thing:deutsch} {verb:zu-Infinitiv}.",
    )


# --- Subordinate clauses --------------------------------------------------------------------------


def main(words: str) -> str:
    """Mark the glosses of a main clause as its own.

    So in "I am sad because I ..." each "I" has an "ich" of its own.
    """
    return " ".join(f"{word}:main" for word in words.split())


@rule(
    "subordinate",
    26,
    transitive(SUBJECTS, THING_ACTIONS, adjectives=False, at_most=8),
    product(KNOWING, (PRESENT, PAST), (THE,)),
)
@rule("subordinate", 12, transitive(SUBJECTS, PERSON_ACTIONS), product(KNOWING, (PAST,), (None,)))
def that(
    subject: Subject,
    action: Action,
    thing: Subject,
    knowing: tuple[Subject, Verb],
    tense: Tense,
    determiner: Determiner | None,
) -> Sentence:
    """We believe that he invited the girl. / Wir glauben, dass er das Mädchen einlud."""
    someone, know = knowing
    english, german = tense
    know = know.of(someone)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{main(f'{someone} {know:present}')} that {subject} {verb:{english}} {thing}.",
        f"{main(f'{someone:Nominativ} {know:Präsens}')},"
        f" dass/that {subject:Nominativ} {thing:deutsch} {verb:{german} am Ende}.",
    )


@rule(
    "subordinate",
    16,
    transitive(SUBJECTS, GOOD_NEWS, adjectives=False, at_most=8),
    product(OTHERS, GLAD_OR_SORRY, (PRESENT, PAST), (THE,)),
)
@rule(
    "subordinate",
    7,
    transitive(SUBJECTS, BAD_NEWS, adjectives=False, at_most=8),
    product(OTHERS, SORRY_OR_GLAD, (PRESENT, PAST), (THE, MY)),
)
@rule(
    "subordinate",
    8,
    transitive(SUBJECTS, (CALLING, HELPING, INVITING)),
    product(OTHERS, GLAD_OR_SORRY, (PRESENT,), (None,)),
)
def because_and_although(
    subject: Subject,
    action: Action,
    thing: Subject,
    person: Subject,
    mood: tuple[Adjective, str, str],
    tense: Tense,
    determiner: Determiner | None,
) -> Sentence:
    """I am sad although they have helped you.

    Ich bin traurig, obwohl sie Ihnen geholfen haben.
    """
    feeling, english, german = mood
    english_be, german_be = tense
    be = BE.of(person)
    verb, thing = clause(subject, action, thing, determiner)
    if tense is PRESENT:
        happened, geschah = f"{verb:have} {verb:participle}", f"{verb:Partizip} {verb:Hilfsverb}"
    else:
        happened, geschah = f"{verb:past}", f"{verb:Präteritum am Ende}"
    return Sentence(
        f"{main(f'{person} {be:{english_be}}')} {feeling} {english} {subject} {happened} {thing}.",
        f"{main(f'{person:Nominativ} {be:{german_be}}')} {feeling:Prädikat},"
        f" {german}/{english} {subject:Nominativ} {thing:deutsch} {geschah}.",
    )


@rule(
    "subordinate",
    17,
    transitive(SUBJECTS, PLANS, adjectives=False, at_most=8),
    product(CONDITIONS, (THE,)),
)
@rule("subordinate", 8, transitive(SUBJECTS, PERSON_ACTIONS), product(CONDITIONS, (None,)))
def conditional(
    subject: Subject,
    action: Action,
    thing: Subject,
    condition: Words,
    determiner: Determiner | None,
) -> Sentence:
    """If it rains, the teacher visits him. / Wenn es regnet, besucht der Lehrer ihn."""
    english, german = condition
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{english}, {subject} {verb:present} {thing}.",
        f"{german}, {verb:Präsens} {subject:Nominativ} {thing:deutsch} {verb:Vorsilbe}.",
    )


# --- Coreference ----------------------------------------------------------------------------------


def reason(
    quality: Adjective, bearer: Noun, degree: tuple[str, str], tense: tuple[str, str]
) -> tuple[str, str]:
    """Return a reason such as `it was too wide` in English and German.

    The German pronoun has the gender of the noun that it stands for: `sie zu breit war`.
    """
    english_degree, german_degree = degree
    english_be, german_be = tense
    return (
        f"it {english_be}/be {english_degree} {quality}",
        f"{PRONOUN_OF_GENDER[bearer.gender]}/it {german_degree}/{english_degree} "
        f"{quality:Prädikat} {german_be}/be",
    )


@rule("coreference", 72, scenes(fitting=False), product((THE, THIS, A), NOT_DONE[:1], TOO_AND_VERY))
@rule("coreference", 24, scenes(fitting=True), product((THE, MY, HER), NOT_DONE, TOO_AND_VERY))
def did_not(
    actor: Noun,
    action: Action,
    obstacle: Noun,
    quality: Adjective,
    bearer: Noun,
    determiner: Determiner,
    tenses: tuple[Tense, Words],
    degree: Words,
) -> Sentence:
    """My box didn't fit into the room because it was too big.

    Meine Kiste passte nicht ins Zimmer, weil sie zu groß war.
    """
    (english, german), be = tenses
    subject = phrase(determiner, actor)
    english_reason, german_reason = reason(quality, bearer, degree, be)
    verb, thing = clause(subject, action, the(obstacle), None)
    return Sentence(
        f"{subject} {verb:{english}} {verb:base} {thing} because {english_reason}.",
        f"{subject:Nominativ} {verb:{german}} {thing:verneint} {verb:Vorsilbe}, weil/because "
        f"{german_reason}.",
        antecedent=bearer,
        distractor=obstacle if bearer is actor else actor,
    )


@rule("coreference", 62, scenes(fitting=False), product(UNABLE, (THE, THIS), TOO_AND_VERY))
def could_not(
    actor: Noun,
    action: Action,
    obstacle: Noun,
    quality: Adjective,
    bearer: Noun,
    unable: tuple[str, str, Words],
    determiner: Determiner,
    degree: Words,
) -> Sentence:
    """The fox can't eat the egg because it is very scared.

    Der Fuchs kann das Ei nicht fressen, weil er sehr ängstlich ist.
    """
    english, german, be = unable
    subject = phrase(determiner, actor)
    english_reason, german_reason = reason(quality, bearer, degree, be)
    verb, thing = clause(subject, action, the(obstacle), None)
    return Sentence(
        f"{subject} {english}/can+not {verb:base} {thing} because {english_reason}.",
        f"{subject:Nominativ} {german}/can {thing:verneint} {verb:Infinitiv}, weil/because "
        f"{german_reason}.",
        antecedent=bearer,
        distractor=obstacle if bearer is actor else actor,
    )


@rule("coreference", 37, scenes(fitting=False), product((THE, THIS, A)))
def did_although(
    actor: Noun,
    action: Action,
    obstacle: Noun,
    quality: Adjective,
    bearer: Noun,
    determiner: Determiner,
) -> Sentence:
    """A mouse ate the apple although it was very sour.

    Eine Maus fraß den Apfel, obwohl er sehr sauer war.
    """
    subject = phrase(determiner, actor)
    english_reason, german_reason = reason(quality, bearer, ("very", "sehr"), ("was", "war"))
    verb, thing = clause(subject, action, the(obstacle), None)
    return Sentence(
        f"{subject} {verb:past} {thing} although {english_reason}.",
        f"{subject:Nominativ} {verb:Präteritum} {thing:deutsch}, obwohl/although {german_reason}.",
        antecedent=bearer,
        distractor=obstacle if bearer is actor else actor,
    )


# --- Giving, going, being somewhere ---------------------------------------------------------------


@rule(
    "dative",
    29,
    (
        (giver, action, receiver, thing)
        for giver, action in product(GIVERS, GIVING)
        for receiver, thing in product(RECEIVERS, action.objects)
        if not same_person(giver, receiver)
    ),
    product((PRESENT, PAST), (A,)),
)
def dative(
    giver: Subject,
    action: Action,
    receiver: Subject,
    thing: Subject,
    tense: Tense,
    determiner: Determiner,
) -> Sentence:
    """My uncle gives my friend a postcard.

    Mein Onkel gibt meinem Freund eine Postkarte.
    """
    english, german = tense
    verb, thing = clause(giver, action, thing, determiner)
    thing = thing.phrase
    return Sentence(
        f"{giver} {verb:{english}} {receiver:object} {thing:object}.",
        f"{giver:Nominativ} {verb:{german}} {receiver:Dativ} {thing:Akkusativ}.",
    )


def going() -> Iterator[tuple[Subject, Verb, Noun, Subject | None]]:
    """Who goes where and how, alone or with somebody else."""
    for subject, verb, place in product(SUBJECTS, (GO, DRIVE), DESTINATIONS):
        yield subject, verb, place, None
        for companion in RECEIVERS:
            if not same_person(subject, companion):
                yield subject, verb, place, companion


def together(companion: Subject | None) -> tuple[str, str]:
    """`with my aunt`, `mit meiner Tante`; empty without a companion."""
    if companion is None:
        return "", ""
    company = PrepositionalPhrase("with", "mit", "Dativ", companion)
    return f"{company}", f"{company:deutsch}"


@rule("motion", 17, going(), product((PRESENT, PAST)))
def motion(
    subject: Subject, verb: Verb, place: Noun, companion: Subject | None, tense: Tense
) -> Sentence:
    """Our neighbor drove to the restaurant. / Unser Nachbar fuhr zum Restaurant."""
    english, german = tense
    verb = verb.of(subject)
    goal = PrepositionalPhrase("to", "zu", "Dativ", the(place))
    with_someone, mit_jemandem = together(companion)
    return Sentence(
        f"{subject} {verb:{english}} {goal} {with_someone}.",
        f"{subject:Nominativ} {verb:{german}} {mit_jemandem} {goal:deutsch}.",
    )


@rule("motion", 12, going())
def has_gone(subject: Subject, verb: Verb, place: Noun, companion: Subject | None) -> Sentence:
    """The old woman has gone to the park. / Die alte Frau ist zum Park gegangen."""
    verb = verb.of(subject)
    goal = PrepositionalPhrase("to", "zu", "Dativ", the(place))
    with_someone, mit_jemandem = together(companion)
    return Sentence(
        f"{subject} {verb:have} {verb:participle} {goal} {with_someone}.",
        f"{subject:Nominativ} {verb:Hilfsverb} {mit_jemandem} {goal:deutsch} {verb:Partizip}.",
    )


@rule(
    "place",
    15,
    ((thing, preposition, spot) for thing in SMALL_THINGS for preposition, spot in SPOTS),
    product((THE, MY, YOUR), (THE, THIS, OUR), IS_AND_WAS),
)
def place(
    thing: Noun,
    prepositions: tuple[str, str, str],
    spot: Noun,
    determiner: Determiner,
    spot_determiner: Determiner,
    be: Words,
) -> Sentence:
    """The newspaper was next to our glass. / Die Zeitung war neben unserem Glas."""
    english, german, _ = prepositions
    english_be, german_be = be
    thing = phrase(determiner, thing)
    where = PrepositionalPhrase(english, german, "Dativ", phrase(spot_determiner, spot))
    return Sentence(
        f"{thing} {english_be}/be {where}.", f"{thing:Nominativ} {german_be}/be {where:deutsch}."
    )


@rule(
    "place",
    14,
    (
        (subject, PUT, thing, preposition, spot)
        for subject in GIVERS
        for thing in SMALL_THINGS
        for preposition, spot in SPOTS
    ),
    product((THE, MY)),
)
def has_put(
    subject: Subject,
    put: Verb,
    thing: Noun,
    prepositions: tuple[str, str, str],
    spot: Noun,
    determiner: Determiner,
) -> Sentence:
    """We have put my spoon under the sofa.

    Wir haben meinen Löffel unter das Sofa gelegt.
    """
    _, german, english = prepositions
    put = put.of(subject)
    thing = phrase(determiner, thing)
    where = PrepositionalPhrase(english, german, "Akkusativ", the(spot))
    return Sentence(
        f"{subject} {put:have} {put:participle} {thing} {where}.",
        f"{subject:Nominativ} {put:Hilfsverb} {thing:Akkusativ} {where:deutsch} {put:Partizip}.",
    )


@rule(
    "place",
    8,
    ((building, *site) for building, site in product(BUILDINGS, SITES) if building is not site[1]),
)
def site(building: Noun, prepositions: Words, landmark: Noun) -> Sentence:
    """The market is behind the restaurant. / Der Markt ist hinter dem Restaurant."""
    english, german = prepositions
    where = PrepositionalPhrase(english, german, "Dativ", the(landmark))
    return Sentence(
        f"{the(building)} is {where}.", f"{the(building):Nominativ} ist/is {where:deutsch}."
    )


# --- Numbers and times ----------------------------------------------------------------------------


@rule(
    "number",
    17,
    product(GIVERS, (BUYING, NEEDING, ORDERING), SMALL_NUMBERS, COUNTED),
    product((PRESENT, PAST)),
)
def counted(
    subject: Subject, action: Action, number: Determiner, thing: Subject, tense: Tense
) -> Sentence:
    """Her mother bought eight big carrots. / Ihre Mutter kaufte acht große Karotten."""
    english, german = tense
    verb, thing = clause(subject, action, thing, number)
    return Sentence(
        f"{subject} {verb:{english}} {thing}.",
        f"{subject:Nominativ} {verb:{german}} {thing:deutsch}.",
    )


@rule("number", 13, product((*CLOTHES, *LUGGAGE, *GOODS), PRICES), product((THE, THIS)))
def price(thing: NounPhrase, number: Determiner, determiner: Determiner) -> Sentence:
    """This green jacket costs fifty euros. / Diese grüne Jacke kostet fünfzig Euro."""
    thing = thing.determined(determiner)
    cost = COST.of(thing)
    euros = f"{number.english}:euro"
    return Sentence(
        f"{thing} {cost:present} {glossed(number.english, euros)} euros/euro.",
        f"{thing:Nominativ} {cost:Präsens} {glossed(number.german, euros)} Euro/euro.",
    )


@rule(
    "number",
    11,
    (*product(CHILDREN, AGES_OF_CHILDREN), *product(ADULTS, AGES_OF_ADULTS)),
    product(OWNERS, IS_AND_WAS),
)
def age(relative: Noun, number: Determiner, owner: Determiner, be: Words) -> Sentence:
    """Her mother is thirty-five years old. / Ihre Mutter ist fünfunddreißig Jahre alt."""
    english, german = be
    relative = phrase(owner, relative)
    return Sentence(
        f"{relative} {english}/be {number.english} years old.",
        f"{relative:Nominativ} {german}/be {number.german}/{number.english} Jahre/years alt/old.",
    )


@rule(
    "time",
    22,
    ((subject, verb, time) for (subject, verb), time in product(EVENTS, CLOCK_TIMES)),
    product((PRESENT, PAST)),
)
def at_time(subject: Subject, verb: Verb, time: tuple[str, str, str], tense: Tense) -> Sentence:
    """The first bus left at three o'clock. / Der erste Bus fuhr um drei Uhr ab."""
    english, german = tense
    _, english_time, german_time = time
    verb = verb.of(subject)
    return Sentence(
        f"{subject} {verb:{english}} at {english_time}.",
        f"{subject:Nominativ} {verb:{german}} um/at {german_time} {verb:Vorsilbe}.",
    )


# --- Describing and comparing ---------------------------------------------------------------------


@rule("comparison", 15, COMPARABLE, product((THE, THIS), (THE, THIS)))
def comparison(
    adjective: Adjective,
    compared: Noun,
    standard: Noun,
    determiner: Determiner,
    other_determiner: Determiner,
) -> Sentence:
    """The mirror is smaller than this bed. / Der Spiegel ist kleiner als dieses Bett."""
    compared, standard = phrase(determiner, compared), phrase(other_determiner, standard)
    return Sentence(
        f"{compared} is {adjective:comparative} than {standard}.",
        f"{compared:Nominativ} ist/is {adjective:Komparativ} als/than {standard:Nominativ}.",
    )


@rule("description", 10, properties(), product(IS_AND_WAS, (("", ""), *TOO_AND_VERY)))
def property_of(noun: Noun, quality: Adjective, be: Words, degree: Words) -> Sentence:
    """The street was very slippery. / Die Straße war sehr rutschig."""
    (english_be, german_be), (too, zu) = be, degree
    return Sentence(
        f"{the(noun)} {english_be}/be {too} {quality}.",
        f"{the(noun):Nominativ} {german_be}/be {glossed(zu, too)} {quality:Prädikat}.",
    )


@rule(
    "description",
    11,
    (
        (thing, quality)
        for thing, quality in product(HOUSEHOLD, (OLD, EXPENSIVE, DIRTY, HEAVY))
        if thing.adjective not in (NEW, OLD, CHEAP, EXPENSIVE)
    ),
    product((THIS, MY, HER), TOO_AND_VERY, (PRESENT, PAST)),
)
def description(
    thing: NounPhrase, quality: Adjective, determiner: Determiner, degree: Words, tense: Tense
) -> Sentence:
    """This small chair is very expensive. / Dieser kleine Stuhl ist sehr teuer."""
    (too, zu), (english, german) = degree, tense
    thing = thing.determined(determiner)
    be = BE.of(thing)
    return Sentence(
        f"{thing} {be:{english}} {too} {quality}.",
        f"{thing:Nominativ} {be:{german}} {zu}/{too} {quality:Prädikat}.",
    )


# --- The phrasebook proper: family, hotel, restaurant, shopping, directions, weather, health ------


@rule(
    "family",
    8,
    product((*ADULTS, SON, DAUGHTER), (LIVE, WORK), CITIES),
    product(OWNERS, (PRESENT, PAST)),
)
def lives_in(relative: Noun, verb: Verb, city: Words, owner: Determiner, tense: Tense) -> Sentence:
    """Their daughter works in Hamburg. / Ihre Tochter arbeitet in Hamburg."""
    (english_city, german_city), (english, german) = city, tense
    relative = phrase(owner, relative)
    verb = verb.of(relative)
    return Sentence(
        f"{relative} {verb:{english}} in {english_city}.",
        f"{relative:Nominativ} {verb:{german}} in {german_city}/{english_city}.",
    )


rule("family", 8, PEERS, product(OWNERS, (MY, YOUR)))(comparison)


@rule(
    "hotel",
    13,
    product(
        (QUIET, CLEAN, CHEAP, SMALL, BIG, BEAUTIFUL, WARM),
        (BALCONY, SHOWER, BATHROOM, TELEVISION, KITCHEN),
        (NIGHT, PERSON),
        SMALL_NUMBERS,
    ),
    product((WE, ME, THEY)),
)
def hotel_room(
    quality: Adjective, extra: Noun, unit: Noun, number: Determiner, guest: Subject
) -> Sentence:
    """I would like a big room with a shower for two nights.

    Ich möchte ein großes Zimmer mit einer Dusche für zwei Nächte.
    """
    like = WOULD_LIKE.of(guest)
    room = NounPhrase(ROOM, quality, A)
    extra = PrepositionalPhrase("with", "mit", "Dativ", phrase(A, extra))
    stay = PrepositionalPhrase(
        "for", "für", "Akkusativ", NounPhrase(unit, determiner=number, plural=True)
    )
    return Sentence(
        f"{guest} {like:present} {room} {extra} {stay}.",
        f"{guest:Nominativ} {like:Präsens} {room:Akkusativ} {extra:deutsch} {stay:deutsch}.",
    )


def serving(vessel: Noun, content: Noun, number: Determiner = A) -> tuple[str, str]:
    """`two cups of tea`, `zwei Tassen Tee`: German has no word for the "of"."""
    vessels = NounPhrase(vessel, determiner=number, plural=number is not A)
    contents = phrase(NO_ARTICLE, content)
    return f"{vessels} of {contents}", f"{vessels:Akkusativ} {contents:Akkusativ}"


@rule(
    "restaurant",
    16,
    (
        (*first, *second)
        for first, second in product(SERVINGS, SERVINGS)
        if first[0] is not second[0] and first[1] is not second[1]
    ),
    product((ME, WE, HE, SHE)),
)
def order(
    vessel: Noun, content: Noun, other_vessel: Noun, other_content: Noun, guest: Subject
) -> Sentence:
    """We would like a cup of tea and a piece of meat.

    Wir möchten eine Tasse Tee und ein Stück Fleisch.
    """
    like = WOULD_LIKE.of(guest)
    english, german = serving(vessel, content)
    other_english, other_german = serving(other_vessel, other_content)
    return Sentence(
        f"{guest} {like:present} {english} and {other_english}.",
        f"{guest:Nominativ} {like:Präsens} {german} und/and {other_german}.",
    )


@rule(
    "restaurant",
    12,
    ((*portion, guest) for portion, guest in product(SERVINGS, DINERS) if guest is not YOU),
    product((A, *FEW), (YOU,)),
)
def could_you_bring(
    vessel: Noun, content: Noun, guest: Subject, number: Determiner, you: Subject
) -> Sentence:
    """Could you bring us two cups of tea, please?

    Könnten Sie uns bitte zwei Tassen Tee bringen?
    """
    english, german = serving(vessel, content, number)
    return Sentence(
        f"could you bring {guest:object} {english}, please?",
        f"{COULD.of(you):Präsens} {you:Nominativ} {guest:Dativ} bitte/please {german}"
        " bringen/bring?",
    )


@rule(
    "restaurant", 8, ((*dish, guest) for dish, guest in product(DISHES, RECEIVERS)), (PRESENT, PAST)
)
def too_salty(
    dish: Noun, quality: Adjective, guest: Subject, english: str, german: str
) -> Sentence:
    """The sausage was too dry for our son.

    Die Wurst war zu trocken für unseren Sohn.
    """
    dish = the(dish)
    taste = PrepositionalPhrase("for", "für", "Akkusativ", guest)
    be = BE.of(dish)
    return Sentence(
        f"{dish} {be:{english}} too {quality} {taste}.",
        f"{dish:Nominativ} {be:{german}} zu/too {quality:Prädikat} {taste:deutsch}.",
    )


@rule("shopping", 7, ((thing,) for thing in (*HOUSEHOLD, *GOODS)), product((THE, THIS)))
def how_much(thing: NounPhrase, determiner: Determiner) -> Sentence:
    """How much does the old cupboard cost? / Wie viel kostet der alte Schrank?"""
    thing = thing.determined(determiner)
    cost = COST.of(thing)
    return Sentence(
        f"how much {cost:do} {thing} {cost:base}?",
        f"wie/how viel/much {cost:Präsens} {thing:Nominativ}?",
    )


@rule("shopping", 13, product(RECEIVERS, (*HOUSEHOLD, *GOODS)), product((THE, THIS)))
def likes(someone: Subject, thing: NounPhrase, determiner: Determiner) -> Sentence:
    """My father likes this small backpack.

    Meinem Vater gefällt dieser kleine Rucksack.
    """
    thing = thing.determined(determiner)
    return Sentence(
        f"{someone:experiencer} {LIKE.of(someone):present} {thing}.",
        f"{someone:Dativ} {LIKE.of(thing):Präsens} {thing:Nominativ}.",
    )


@rule(
    "direction",
    8,
    (
        (origin, place)
        for origin, place in product(DESTINATIONS, DESTINATIONS)
        if origin is not place
    ),
    product((ME, WE)),
)
def how_to_get(origin: Noun, place: Noun, traveller: Subject) -> Sentence:
    """How do I get from the beach to the park? / Wie komme ich vom Strand zum Park?"""
    get = GET_TO.of(traveller)
    start = PrepositionalPhrase("from", "von", "Dativ", the(origin))
    goal = PrepositionalPhrase("to", "zu", "Dativ", the(place))
    return Sentence(
        f"how {get:do} {traveller} {get:base} {start} {goal}?",
        f"wie/how {get:Präsens} {traveller:Nominativ} {start:deutsch} {goal:deutsch}?",
    )


@rule(
    "direction",
    8,
    (
        (corner, goal)
        for corner, goal in product(BUILDINGS, (BRIDGE, RIVER, *DESTINATIONS))
        if corner is not goal
    ),
    product((("left", "links"), ("right", "rechts")), (YOU,)),
)
def turn(corner: Noun, goal: Noun, side: Words, you: Subject) -> Sentence:
    """Turn left at the park and then go straight ahead to the beach.

    Biegen Sie am Park links ab und gehen Sie dann geradeaus bis zum Strand.
    """
    left, links = side
    corner = PrepositionalPhrase("at", "an", "Dativ", the(corner))
    goal = PrepositionalPhrase("to", "zu", "Dativ", the(goal))
    return Sentence(
        f"turn {left} {corner} and then go straight ahead/straight {goal}.",
        f"{TURN.of(you):Imperativ} {corner:deutsch} {links}/{left} ab/turn"
        f" und/and {GO.of(you):Imperativ} dann/then geradeaus/straight bis/to {goal:deutsch}.",
    )


@rule(
    "direction",
    8,
    ((building, *site) for building, site in product(BUILDINGS, SITES) if building is not site[1]),
)
def is_there(building: Noun, prepositions: Words, landmark: Noun) -> Sentence:
    """Is there a church next to the hotel? / Gibt es eine Kirche neben dem Hotel?"""
    english, german = prepositions
    where = PrepositionalPhrase(english, german, "Dativ", the(landmark))
    building = phrase(A, building)
    return Sentence(
        f"is/there_is there/there_is {building} {where}?",
        f"gibt/there_is es/there_is {building:Akkusativ} {where:deutsch}?",
    )


@rule("weather", 4, product((RAIN, SNOW), CITIES, DAYS))
def rained(verb: Verb, city: Words, day: Words) -> Sentence:
    """It snowed in Cologne on Wednesday. / Am Mittwoch schneite es in Köln."""
    (english_city, german_city), (english_day, german_day) = city, day
    verb = verb.of(IT)
    return Sentence(
        f"it {verb:past} in {english_city} on {english_day}.",
        f"am/on {german_day}/{english_day} {verb:Präteritum} es/it"
        f" in {german_city}/{english_city}.",
    )


@rule(
    "weather",
    8,
    product(CITIES, (COLD, WARM, HOT, DRY, WINDY, FOGGY)),
    product(WEATHER_DAYS, (*TOO_AND_VERY, ("quite", "ziemlich"))),
)
def weather(
    city: Words, quality: Adjective, day: tuple[str, str, str, str], degree: Words
) -> Sentence:
    """It was too warm in Vienna yesterday. / Gestern war es in Wien zu warm."""
    (english_city, german_city), (too, zu) = city, degree
    english_be, english_day, german_be, german_day = day
    return Sentence(
        f"it {english_be} {too} {quality} in {english_city} {english_day}.",
        f"{german_day}/{english_day} {german_be}/{english_be} es/it in {german_city}/{english_city}"
        f" {zu}/{too} {quality:Prädikat}.",
    )


@rule("health", 13, product(BODY, DAYS), product((MY, YOUR, HIS, HER)))
def has_hurt(part: NounPhrase, day: Words, owner: Determiner) -> Sentence:
    """My left arm has hurt since Thursday. / Mein linker Arm tut seit Donnerstag weh."""
    english_day, german_day = day
    part = part.determined(owner)
    hurt = HURT.of(part)
    return Sentence(
        f"{part} {hurt:have}/{hurt.verb} {hurt:participle} since {english_day}.",
        f"{part:Nominativ} {hurt:Präsens} seit/since {german_day}/{english_day} {hurt:Vorsilbe}.",
    )


@rule(
    "health",
    5,
    product(((ME, MY), (HE, HIS), (SHE, HER), (YOU, YOUR)), LIMBS),
    (("can't/can+not", "verneint"), ("can/can", "deutsch")),
)
def can_move(
    patient: tuple[Subject, Determiner], part: NounPhrase, english_can: str, german_part: str
) -> Sentence:
    """You can't move your right shoulder.

    Sie können Ihre rechte Schulter nicht bewegen.
    """
    subject, owner = patient
    can = CAN.of(subject)
    move = MOVE.of(subject)
    part = Action(MOVE, ()).on(part.determined(owner))
    return Sentence(
        f"{subject} {english_can} {move:base} {part}.",
        f"{subject:Nominativ} {can:Präsens} {part:{german_part}} {move:Infinitiv}.",
    )
