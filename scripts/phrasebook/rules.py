"""A rule of the phrasebook: one kind of sentence, in both languages at once.

A rule takes content words ("we", "close", "the door") and forms (a tense, an article) and writes
a `Sentence`. The content words decide whether it is for training, validation or test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

from phrasebook.inflection import (
    Action,
    Complement,
    Determiner,
    Nominal,
    Noun,
    NounPhrase,
    Predicate,
    Pronoun,
    Verb,
)
from tfformer.data.phrasebook import SPLITS

HELD_OUT_RATIO = 12  # one combination in twelve is for valid, one for test

# Combinations that have their split by choice, and are drawn first.
CHOSEN = {
    "animal cross street tired animal": "test",  # the two sentences of the "it" pictures
    "animal cross street wide street": "test",
    "train arrive Munich": "test",  # the other examples of scripts/quickstart.sh
    "glass water we": "test",
    "we wait_for bus": "test",
    "brother work today": "test",
    "you help I": "train",
    "you English": "train",  # a visitor's first words
    "I English": "train",
    "I German": "train",
    "I Berlin": "train",
    "I Anna": "train",
    "I tired": "train",
    "I hungry": "train",
    "I like coffee": "train",
    "station": "train",
}

Subject = Nominal
Tense = tuple[str, str]  # the names of the English and of the German form
Words = tuple[str, str]  # in English and in German
Arguments = tuple[Any, ...]  # of the function that writes a rule's sentences


class Sentence(NamedTuple):
    """Two glossed sentences and, for coreference, the two nouns in question."""

    english: str
    german: str
    antecedent: Noun | None = None  # the noun that "it" stands for
    distractor: Noun | None = None  # the other noun


@dataclass(frozen=True, eq=False)
class Rule:
    """One kind of sentence, with all content words and all forms that it takes."""

    family: str  # such as "question"
    share: int  # sentences in valid and in test; train has `corpus.TRAIN_RATIO` times as many
    contents: tuple[Arguments, ...]  # the content words: they decide the split
    forms: tuple[Arguments, ...]  # tense, articles and the like: free in every split
    sentence: Callable[..., Sentence]

    @cached_property
    def contents_of(self) -> dict[str, list[Arguments]]:
        """The contents of each split."""
        divided: dict[str, list[Arguments]] = {split: [] for split in SPLITS}
        for content in self.contents:
            divided[split_of(combination(content))].append(content)
        return divided


RULES: list[Rule] = []


def rule(
    family: str, share: int, contents: Iterable[Arguments], forms: Iterable[Arguments] = ((),)
) -> Callable[[Callable[..., Sentence]], Callable[..., Sentence]]:
    """Register a function that writes the sentences of one rule.

    It is called with one of `contents` and one of `forms`.

    Args:
        family: The kind of sentence, such as "question".
        share: The number of sentences in valid and in test.
        contents: Tuples of content words, the function's first arguments.
        forms: Tuples of tense, article and the like, its other arguments.

    Returns:
        A decorator, which returns the function unchanged.
    """

    def register(sentence: Callable[..., Sentence]) -> Callable[..., Sentence]:
        RULES.append(Rule(family, share, tuple(contents), tuple(forms), sentence))
        return sentence

    return register


def clause(
    subject: Subject, action: Action, thing: Subject, determiner: Determiner | None
) -> tuple[Predicate, Complement]:
    """The verb as it agrees with its subject, and its object with a determiner."""
    return action.verb.of(subject), action.on(thing.determined(determiner))


def agreement(content: Arguments) -> tuple[int, str] | None:
    """The person of the subject and its verb, if the content words begin with these."""
    match content:
        case ((NounPhrase() | Pronoun()) as subject, (Verb() | Action()) as verb, *_):
            return subject.person, str(verb)
    return None


def combination(content: Arguments) -> str:
    """The content words as one text: "animal cross street tired animal"."""
    names = (name(word) for word in content if word is not None)
    return " ".join(filter(None, names))


def name(word: Any) -> str:
    """A content word in a combination; of several words for one thing, the first."""
    return name(word[0]) if isinstance(word, tuple) else str(word)


def split_of(combination: str) -> str:
    """The split of a combination: the same in every rule, by its checksum."""
    held_out = {0: "test", 1: "valid"}
    by_checksum = held_out.get(crc32(combination.encode()) % HELD_OUT_RATIO, "train")
    return CHOSEN.get(combination, by_checksum)
