"""Rules for everyday life: requests, habits, introductions, actions, states.

The docstring of each rule is one pair that it writes. Most of them are in the present tense.
"""

# A word and its form in the sentence share a name.
# mypy: allow-redefinition

from __future__ import annotations

from itertools import product

from phrasebook.grammar import serving
from phrasebook.inflection import (
    MY,
    OWNERS,
    THE,
    THIS,
    YOUR,
    A,
    Action,
    Adjective,
    Determiner,
    Noun,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Verb,
    glossed,
    phrase,
    the,
)
from phrasebook.lexicon import (
    ARRIVE,
    ASKED_ABOUT,
    ASKED_WITH_WHY,
    ASKING_THE_TIME,
    BE,
    BE_CALLED,
    CALLED,
    CAN,
    CLOCK_TIMES,
    CLOTHES,
    COME,
    COULD,
    DEGREES,
    DELIBERATE,
    DESTINATIONS,
    EVENTS,
    FEW,
    GIVING,
    GREETINGS,
    HABITS,
    HOMES,
    IN_PROGRESS,
    INTRODUCED,
    LEAVE,
    LINES,
    LIVE,
    LUGGAGE,
    ME,
    MUST,
    NATIVES,
    NEARBY,
    NEGATED,
    PAST,
    PEOPLE_REQUESTS,
    PERSON_ACTIONS,
    PRESENT,
    PROGRESSIVE,
    QUESTION_WORDS,
    RECEIVERS,
    RELATIVES,
    REQUESTS,
    SERVINGS,
    SOON,
    SPEAK,
    STATES,
    SUBJECTS,
    TICKET,
    TONGUES,
    TOWNS,
    WANT_TO,
    WILL,
    WORK,
    WOULD_LIKE,
    WOULD_LIKE_TO,
    YOU,
    Adverb,
    transitive,
)
from phrasebook.rules import Sentence, Subject, Tense, Words, clause, rule

# --- Now and tomorrow -----------------------------------------------------------------------------


@rule("present", 18, transitive(SUBJECTS, IN_PROGRESS, adjectives=False), product((THE, A)))
@rule("present", 8, transitive(SUBJECTS, PERSON_ACTIONS), ((None,),))
def is_doing(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """They are waiting for the bus. / Sie warten auf den Bus."""
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {verb:progressive} {thing}.",
        f"{subject:Nominativ} {verb:Präsens} {thing:deutsch} {verb:Vorsilbe}.",
    )


@rule("question", 8, transitive(ASKED_ABOUT, IN_PROGRESS, adjectives=False), product((THE, YOUR)))
@rule("question", 5, transitive(ASKED_ABOUT, PERSON_ACTIONS), ((None,),))
def is_it_being_done(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """Are you looking for the key? / Suchen Sie den Schlüssel?"""
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{verb:am} {subject} {verb:ing} {thing}?",
        f"{verb:Präsens} {subject:Nominativ} {thing:deutsch} {verb:Vorsilbe}?",
    )


@rule("future", 10, transitive(SUBJECTS, DELIBERATE, adjectives=False), product(SOON, (THE,)))
@rule("future", 6, transitive(SUBJECTS, PERSON_ACTIONS), product(SOON, (None,)))
def will_do(
    subject: Subject, action: Action, thing: Subject, soon: Words, determiner: Determiner | None
) -> Sentence:
    """She will visit my aunt tomorrow. / Morgen wird sie meine Tante besuchen."""
    english, german = soon
    will = WILL.of(subject)
    verb, thing = clause(subject, action, thing, determiner)
    return Sentence(
        f"{subject} {will:present} {verb:base} {thing} {glossed(english, 'soon')}.",
        f"{glossed(german, 'soon')} {will:Präsens} {subject:Nominativ} {thing:deutsch}"
        f" {verb:Infinitiv}.",
    )


# --- Requests -------------------------------------------------------------------------------------


@rule("request", 8, transitive((YOU,), REQUESTS), product((THE, MY, THIS)))
@rule("request", 2, transitive((YOU,), PEOPLE_REQUESTS), ((None,),))
def please(you: Subject, action: Action, thing: Subject, determiner: Determiner | None) -> Sentence:
    """Please close the window. / Bitte machen Sie das Fenster zu."""
    verb, thing = clause(you, action, thing, determiner)
    return Sentence(
        f"please {verb:base} {thing}.",
        f"bitte/please {verb:Imperativ} {thing:deutsch} {verb:Vorsilbe}.",
    )


@rule("request", 8, transitive((YOU,), REQUESTS), product((THE, MY, THIS)))
@rule("request", 3, transitive((YOU,), PEOPLE_REQUESTS), ((None,),))
def could_you(
    you: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> Sentence:
    """Could you call my aunt, please? / Könnten Sie bitte meine Tante anrufen?"""
    verb, thing = clause(you, action, thing, determiner)
    is_light = isinstance(thing.phrase, Pronoun) and not action.german_preposition
    middle = f"{thing:deutsch} bitte/please" if is_light else f"bitte/please {thing:deutsch}"
    return Sentence(
        f"could you {verb:base} {thing}, please?",
        f"{COULD.of(you):Präsens} {you:Nominativ} {middle} {verb:Infinitiv}?",
    )


@rule(
    "request",
    6,
    (
        (action, receiver, thing)
        for action in GIVING
        for receiver, thing in product(RECEIVERS, action.objects)
        if receiver is not YOU
    ),
    product((THE, MY), (YOU,)),
)
def please_give(
    action: Action, receiver: Subject, thing: Subject, determiner: Determiner, you: Subject
) -> Sentence:
    """Please give me the new book. / Bitte geben Sie mir das neue Buch."""
    verb = action.verb.of(you)
    thing = thing.determined(determiner)
    return Sentence(
        f"please {verb:base} {receiver:object} {thing}.",
        f"bitte/please {verb:Imperativ} {receiver:Dativ} {thing:Akkusativ}.",
    )


@rule("restaurant", 3, ((*portion, number) for number, portion in product((A, *FEW), SERVINGS)))
def please_order(vessel: Noun, content: Noun, number: Determiner) -> Sentence:
    """Two cups of tea, please. / Zwei Tassen Tee, bitte."""
    english, german = serving(vessel, content, number)
    return Sentence(f"{english}, please.", f"{german}, bitte/please.")


@rule("travel", 5, product((A, *FEW), TOWNS), product((None, ME)))
def ticket(number: Determiner, town: Words, traveller: Subject | None) -> Sentence:
    """A ticket to Vienna, please. / Eine Fahrkarte nach Wien, bitte."""
    english_town, german_town = town
    tickets = NounPhrase(TICKET, determiner=number, plural=number is not A)
    wish, wunsch = "", ""
    if traveller:
        like = WOULD_LIKE.of(traveller)
        wish, wunsch = f"{traveller} {like:present}", f"{traveller:Nominativ} {like:Präsens}"
    return Sentence(
        f"{wish} {tickets} to {english_town}, please.",
        f"{wunsch} {tickets:Akkusativ} nach/to {german_town}/{english_town}, bitte/please.",
    )


# --- Habits, abilities, states --------------------------------------------------------------------


def habits(subjects: tuple[Subject, ...]) -> tuple[tuple[Subject, Verb, Adverb], ...]:
    """Who has which habit, and how or when."""
    return tuple((subject, *habit) for subject, habit in product(subjects, HABITS))


@rule("habit", 24, habits(SUBJECTS), product((PRESENT, PROGRESSIVE, PAST)))
def habit(subject: Subject, verb: Verb, adverb: Adverb, tense: Tense) -> Sentence:
    """Her sister works at home. / Ihre Schwester arbeitet zu Hause."""
    english, german = tense
    english_adverb, german_adverb, _ = adverb
    verb = verb.of(subject)
    return Sentence(
        f"{subject} {verb:{english}} {glossed(english_adverb, 'adverb')}.",
        f"{subject:Nominativ} {verb:{german}} {glossed(german_adverb, 'adverb')}.",
    )


@rule("habit", 14, habits(SUBJECTS), product(NEGATED))
def no_habit(subject: Subject, verb: Verb, adverb: Adverb, tense: Tense) -> Sentence:
    """He doesn't sleep well. / Er schläft nicht gut."""
    english, german = tense
    english_adverb, german_adverb, follows_not = adverb
    verb = verb.of(subject)
    how = glossed(german_adverb, "adverb")
    order = f"nicht/not {how}" if follows_not else f"{how} nicht/not"
    return Sentence(
        f"{subject} {verb:{english}} {verb:base} {glossed(english_adverb, 'adverb')}.",
        f"{subject:Nominativ} {verb:{german}} {order}.",
    )


@rule("habit", 10, habits(SUBJECTS), product((CAN, MUST, WANT_TO, WOULD_LIKE_TO)))
def wants_to(subject: Subject, verb: Verb, adverb: Adverb, modal_verb: Verb) -> Sentence:
    """We want to stay here. / Wir wollen hier bleiben."""
    english_adverb, german_adverb, _ = adverb
    modal, verb = modal_verb.of(subject), verb.of(subject)
    return Sentence(
        f"{subject} {modal:present} {verb:base} {glossed(english_adverb, 'adverb')}.",
        f"{subject:Nominativ} {modal:Präsens} {glossed(german_adverb, 'adverb')} {verb:Infinitiv}.",
    )


@rule("question", 8, habits(ASKED_ABOUT))
def is_it_a_habit(subject: Subject, verb: Verb, adverb: Adverb) -> Sentence:
    """Do you work here? / Arbeiten Sie hier?"""
    english_adverb, german_adverb, _ = adverb
    verb = verb.of(subject)
    return Sentence(
        f"{verb:do} {subject} {verb:base} {glossed(english_adverb, 'adverb')}?",
        f"{verb:Präsens} {subject:Nominativ} {glossed(german_adverb, 'adverb')}?",
    )


@rule("question", 12, product(ASKED_ABOUT, ASKED_WITH_WHY), product(QUESTION_WORDS))
def where_when_and_why(subject: Subject, verb: Verb, question_word: Words) -> Sentence:
    """Where does your brother work? / Wo arbeitet Ihr Bruder?"""
    english, german = question_word
    verb = verb.of(subject)
    return Sentence(
        f"{english} {verb:do} {subject} {verb:base}?",
        f"{german}/{english} {verb:Präsens} {subject:Nominativ} {verb:Vorsilbe}?",
    )


@rule("state", 14, product(SUBJECTS, STATES), product((PRESENT, PAST), DEGREES))
def state(subject: Subject, quality: Adjective, tense: Tense, degree: Words) -> Sentence:
    """I am very tired. / Ich bin sehr müde."""
    (english, german), (too, zu) = tense, degree
    be = BE.of(subject)
    return Sentence(
        f"{subject} {be:{english}} {too} {quality}.",
        f"{subject:Nominativ} {be:{german}} {glossed(zu, too)} {quality:Prädikat}.",
    )


@rule("question", 4, product(ASKED_ABOUT, STATES))
def is_he(subject: Subject, quality: Adjective) -> Sentence:
    """Are you hungry? / Sind Sie hungrig?"""
    be = BE.of(subject)
    return Sentence(
        f"{be:present} {subject} {quality}?",
        f"{be:Präsens} {subject:Nominativ} {quality:Prädikat}?",
    )


# --- Languages and homes --------------------------------------------------------------------------


@rule("language", 8, product(SUBJECTS, TONGUES), (("", ""), ("a little", "ein wenig")))
def speaks(subject: Subject, tongue: Words, english_degree: str, german_degree: str) -> Sentence:
    """He speaks a little French. / Er spricht ein wenig Französisch."""
    english, german = tongue
    verb = SPEAK.of(subject)
    return Sentence(
        f"{subject} {verb:present} {glossed(english_degree, 'little')} {english}.",
        f"{subject:Nominativ} {verb:Präsens} {glossed(german_degree, 'little')}"
        f" {german}/{english}.",
    )


@rule("language", 4, product(SUBJECTS, TONGUES))
def does_not_speak(subject: Subject, tongue: Words) -> Sentence:
    """I don't speak Polish. / Ich spreche kein Polnisch."""
    english, german = tongue
    verb = SPEAK.of(subject)
    return Sentence(
        f"{subject} {verb:don't} {verb:base} {english}.",
        f"{subject:Nominativ} {verb:Präsens} kein/not {german}/{english}.",
    )


@rule("question", 3, product(ASKED_ABOUT, TONGUES))
def does_he_speak(subject: Subject, tongue: Words) -> Sentence:
    """Do you speak English? / Sprechen Sie Englisch?"""
    english, german = tongue
    verb = SPEAK.of(subject)
    return Sentence(
        f"{verb:do} {subject} {verb:base} {english}?",
        f"{verb:Präsens} {subject:Nominativ} {german}/{english}?",
    )


@rule("home", 8, product(NATIVES, HOMES), product((BE, COME)))
def is_from(subject: Subject, home: Words, english_verb: Verb) -> Sentence:
    """We are from Spain. / Wir kommen aus Spanien."""
    english, german = home
    verb, come = english_verb.of(subject), COME.of(subject)
    return Sentence(
        f"{subject} {verb:present} from {english}.",
        f"{subject:Nominativ} {come:Präsens}+be aus/from {german}/{english}.",
    )


@rule("home", 8, product(NATIVES, (LIVE, WORK), HOMES))
def lives_there(subject: Subject, verb: Verb, home: Words) -> Sentence:
    """I live in Munich. / Ich wohne in München."""
    english, german = home
    verb = verb.of(subject)
    return Sentence(
        f"{subject} {verb:present} in {english}.",
        f"{subject:Nominativ} {verb:Präsens} in {german}/{english}.",
    )


# --- Introductions --------------------------------------------------------------------------------


@rule("introduction", 6, INTRODUCED, (("name",), ("be",)))
def is_called(person: tuple[Subject, Determiner], name: str, by: str) -> Sentence:
    """My name is Anna. / Ich heiße Anna."""
    pronoun, owner = person
    called, be = BE_CALLED.of(pronoun), BE.of(pronoun)
    if by == "name":
        english, german = f"{owner}/{pronoun} name/be is/be", f"{called:Präsens}"
    else:
        english, german = f"{pronoun} {be:present}", f"{be:Präsens}"
    return Sentence(f"{english} {name}.", f"{pronoun:Nominativ} {german} {name}.")


@rule("introduction", 8, product(GREETINGS, CALLED))
def greeting(greeting: Words, called: Words) -> Sentence:
    """Good morning, Mrs. Weber. / Guten Morgen, Frau Weber."""
    (english, german), (name, german_name) = greeting, called
    return Sentence(f"{english}, {name}.", f"{german}, {german_name}.")


@rule("introduction", 2, product(OWNERS, RELATIVES))
def this_is(owner: Determiner, noun: Noun) -> Sentence:
    """This is my brother. / Das ist mein Bruder."""
    relative = phrase(owner, noun)
    return Sentence(f"this is {relative}.", f"das/this ist/is {relative:Nominativ}.")


@rule("introduction", 2, product(OWNERS[1:], RELATIVES))
def how_is(owner: Determiner, noun: Noun) -> Sentence:
    """How is your mother? / Wie geht es Ihrer Mutter?"""
    relative = phrase(owner, noun)
    return Sentence(f"how is {relative}?", f"wie/how geht/is es/is {relative:Dativ}?")


@rule("introduction", 2, product(OWNERS[1:], RELATIVES))
def how_old(owner: Determiner, noun: Noun) -> Sentence:
    """How old is his daughter? / Wie alt ist seine Tochter?"""
    relative = phrase(owner, noun)
    return Sentence(f"how old is {relative}?", f"wie/how alt/old ist/is {relative:Nominativ}?")


# --- Finding the way and the time -----------------------------------------------------------------


@rule("direction", 1, ((the(place, which),) for place, which in product(DESTINATIONS, NEARBY)))
@rule("direction", 6, ((thing,) for thing in CLOTHES + LUGGAGE), product((THE, MY, YOUR)))
def where_is(thing: NounPhrase, determiner: Determiner | None = None) -> Sentence:
    """Where is the nearest pharmacy? / Wo ist die nächste Apotheke?"""
    thing = thing.determined(determiner)
    be = BE.of(thing)
    return Sentence(
        f"where {be:present} {thing}?",
        f"wo/where {be:Präsens} {thing:Nominativ}?",
    )


@rule(
    "direction",
    4,
    ((start, goal) for start, goal in product(DESTINATIONS, DESTINATIONS) if start is not goal),
)
def how_far(start: Noun, goal: Noun) -> Sentence:
    """How far is it from the hotel to the beach?

    Wie weit ist es vom Hotel zum Strand?
    """
    start = PrepositionalPhrase("from", "von", "Dativ", the(start))
    goal = PrepositionalPhrase("to", "zu", "Dativ", the(goal))
    return Sentence(
        f"how far is it {start} {goal}?",
        f"wie/how weit/far ist/is es/it {start:deutsch} {goal:deutsch}?",
    )


@rule("travel", 10, product(LINES, (ARRIVE, LEAVE), TOWNS), product(ASKING_THE_TIME))
def when_does(line: NounPhrase, verb: Verb, town: Words, asking: Words) -> Sentence:
    """When does the train to Munich arrive? / Wann kommt der Zug nach München an?"""
    (english, german), (english_town, german_town) = asking, town
    verb = verb.of(line)
    line = line.determined(THE)
    return Sentence(
        f"{glossed(english, 'when')} {verb:do} {line} to {english_town} {verb:base}?",
        f"{glossed(german, 'when')} {verb:Präsens} {line:Nominativ} nach/to"
        f" {german_town}/{english_town} {verb:Vorsilbe}?",
    )


@rule("travel", 4, EVENTS, product(ASKING_THE_TIME))
def when_is_it(subject: Subject, verb: Verb, asking: Words) -> Sentence:
    """When does the museum open? / Wann macht das Museum auf?"""
    english, german = asking
    verb = verb.of(subject)
    return Sentence(
        f"{glossed(english, 'when')} {verb:do} {subject} {verb:base}?",
        f"{glossed(german, 'when')} {verb:Präsens} {subject:Nominativ} {verb:Vorsilbe}?",
    )


@rule("travel", 11, product(LINES, (ARRIVE, LEAVE), TOWNS, CLOCK_TIMES))
def timetable(line: NounPhrase, verb: Verb, town: Words, time: tuple[str, str, str]) -> Sentence:
    """The train to Munich leaves at half past two.

    Der Zug nach München fährt um halb drei ab.
    """
    (english_town, german_town), (_, english, german) = town, time
    verb = verb.of(line)
    line = line.determined(THE)
    return Sentence(
        f"{line} to {english_town} {verb:present} at {english}.",
        f"{line:Nominativ} nach/to {german_town}/{english_town} {verb:Präsens} um/at {german}"
        f" {verb:Vorsilbe}.",
    )


@rule("time", 3, ((time,) for time in CLOCK_TIMES), (("is", "ist"), ("was", "war")))
def clock(time: tuple[str, str, str], english_be: str, german_be: str) -> Sentence:
    """It is half past two. / Es ist halb drei."""
    _, english, german = time
    return Sentence(f"it {english_be}/be {english}.", f"es/it {german_be}/be {german}.")
