"""From rules to a parallel corpus with word alignments, in three splits.

`Tier/animal` in a German sentence says that "Tier" renders "animal": the word alignment comes from
these glosses. The corpus is the same on every machine and in every process.
"""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from phrasebook.inflection import YOUR, YOUR_FAMILIAR, NounPhrase
from phrasebook.lexicon import YOU, YOU_FAMILIAR
from phrasebook.rules import CHOSEN, RULES, Rule, Sentence, agreement, combination
from phrasebook.small_talk import FAMILIAR, small_talk
from tfformer.data.phrasebook import FOLDER, LANGUAGES, SEED, SPLITS, Pair

TRAIN_RATIO = 22  # training sentences for each one in valid and each one in test


@dataclass(frozen=True)
class DrawnPair(Pair):
    """A pair with its content words, which decide the split."""

    combination: str = ""


# --- From glossed sentences to pairs --------------------------------------------------------------

GLOSS = re.compile(r"/[^\s.,?!]+")
MARK = re.compile(r"\s+(?=[.,?!])")


def spell(sentence: str) -> str:
    """Return a glossed sentence as it is written.

    Example:
        >>> spell("das/the:animal Tier/animal ist/be müde/tired .")
        'Das Tier ist müde.'
    """
    words = " ".join(GLOSS.sub("", sentence).split())
    words = MARK.sub("", words)
    return words[0].upper() + words[1:]


def glosses(sentence: str) -> list[frozenset[str]]:
    """The glosses of each word; a word without one is its own gloss."""
    words = MARK.sub("", sentence).split()
    return [frozenset(word.rpartition("/")[2].strip(".,?!").split("+")) for word in words]


def align(english: str, german: str) -> tuple[tuple[int, int], ...]:
    """Return the positions that share a gloss.

    Args:
        english: A glossed English sentence.
        german: The glossed German sentence.

    Returns:
        Links of English word and German word, counted from 0, in order.

    Example:
        >>> english = "he closes/close the:door door"
        >>> align(english, "er/he macht/close die/the:door Tür/door zu/close")
        ((0, 0), (1, 1), (1, 4), (2, 2), (3, 3))
    """
    german_glosses = glosses(german)
    return tuple(
        (i, j)
        for i, source in enumerate(glosses(english))
        for j, target in enumerate(german_glosses)
        if source & target
    )


def noun_phrase(words: list[frozenset[str]], noun: str) -> tuple[int, ...]:
    """The positions of a noun and of its determiner and adjective.

    The latter two are glossed `the:animal`.
    """

    def is_of_noun(glosses: frozenset[str]) -> bool:
        return any(gloss.rpartition(":")[2] == noun for gloss in glosses)

    return tuple(position for position, glosses in enumerate(words) if is_of_noun(glosses))


def pair(family: str, combination: str, sentence: Sentence) -> DrawnPair:
    """Return the pair that a glossed sentence spells.

    The glosses give the alignment and the coreference of its words.
    """
    plain = DrawnPair(
        spell(sentence.english),
        spell(sentence.german),
        family,
        align(sentence.english, sentence.german),
        combination=combination,
    )
    if sentence.antecedent is None or sentence.distractor is None:
        return plain
    words = glosses(sentence.english)
    it = frozenset({"it"})
    return replace(
        plain,
        antecedent=noun_phrase(words, sentence.antecedent.english),
        distractor=noun_phrase(words, sentence.distractor.english),
        pronoun=(words.index(it), glosses(sentence.german).index(it)),
    )


# --- The splits -----------------------------------------------------------------------------------


def draw(rule: Rule, split: str) -> Iterator[DrawnPair]:
    """Draw the rule's share of a split without repetition.

    Chosen combinations come first. Then the verbs and the persons take turns, so that "I drink" is
    not as rare as "I" among the subjects, and the forms of each verb and person do.
    """
    contents = rule.contents_of[split]
    size = rule.share * (TRAIN_RATIO if split == "train" else 1)
    forms = len(rule.forms)
    agreements = [agreement(content) for content in contents]
    chosen = [i * forms for i, content in enumerate(contents) if combination(content) in CHOSEN]
    generator = random.Random(f"{SEED} {split} {rule.sentence.__name__}")
    drawn = generator.sample(range(len(contents) * forms), len(contents) * forms)
    drawn = in_turn(drawn, lambda number: (agreements[number // forms], number % forms))
    drawn = in_turn(drawn, lambda number: agreements[number // forms])
    for number in list(dict.fromkeys(chosen + drawn))[:size]:
        content, form = divmod(number, forms)
        words = contents[content]
        sentence = rule.sentence(*words, *rule.forms[form])
        drawn_pair = pair(rule.family, combination(words), sentence)
        german = spell(rule.sentence(*familiar(words), *familiar(rule.forms[form])).german)
        yield replace(drawn_pair, familiar=german if german != drawn_pair.target else "")


def familiar(word: Any) -> Any:
    """Return a content word or a form, or a tuple of them, that says "du" where it says "Sie"."""
    if word is YOU or word is YOUR:
        return YOU_FAMILIAR if word is YOU else YOUR_FAMILIAR
    if type(word) is tuple:
        words = tuple(map(familiar, word))
        return word if words == word else words  # rules compare tenses by identity
    if isinstance(word, NounPhrase) and word.determiner is YOUR:
        return replace(word, determiner=YOUR_FAMILIAR)
    return word


def in_turn(numbers: Sequence[int], kind: Callable[[int], Hashable]) -> list[int]:
    """Put the first number of each kind before the second of any, and so on.

    Example:
        >>> in_turn([1, 3, 5, 2, 4], kind=lambda number: number % 2)
        [1, 2, 3, 4, 5]
    """
    seen: Counter[Hashable] = Counter()

    def turn(number: int) -> int:
        key = kind(number)
        seen[key] += 1
        return seen[key]

    return sorted(numbers, key=turn)


def fixed() -> Iterator[DrawnPair]:
    """Every fixed phrase of small talk: all of them are trained, none is tested."""
    for sentence in small_talk():
        phrase = pair("small talk", spell(sentence.english), sentence)
        bare = phrase.target.rstrip(".?!")
        mark = phrase.target.removeprefix(bare)
        german = FAMILIAR.get(bare)
        yield replace(phrase, familiar=german + mark if german else "")


@cache
def drawn(split: str) -> tuple[DrawnPair, ...]:
    """Return the distinct pairs of a split, rule by rule; the fixed phrases follow in train.

    The combinations of content words in valid and test do not occur in train.
    """
    pairs = [pair for rule in RULES for pair in draw(rule, split)]
    return (*pairs, *(fixed() if split == "train" else ()))


# --- The files of the package ---------------------------------------------------------------------


def table(split: str) -> str:
    """Return a split as the package stores it: a line per pair, of the columns of `Pair`."""
    return "".join("\t".join(columns(pair)) + "\n" for pair in drawn(split))


def columns(pair: Pair) -> list[str]:
    """Return the columns of a pair; alignments in the Pharaoh format, "0-0 1-2"."""
    return [
        pair.source,
        pair.target,
        pair.family,
        pharaoh(pair.alignment),
        " ".join(map(str, pair.antecedent)),
        " ".join(map(str, pair.distractor)),
        pharaoh([pair.pronoun] if pair.pronoun else []),
        pair.familiar,
    ]


def pharaoh(links: Sequence[tuple[int, int]]) -> str:
    """Return links as "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in links)


def write_package_data(folder: Path = FOLDER) -> None:
    """Write the phrasebook into the package, the same bytes each time."""
    for split in SPLITS:
        compressed = gzip.compress(table(split).encode("utf-8"), 9, mtime=0)
        (folder / f"{split}.tsv.gz").write_bytes(compressed)


# --- The whole grammar ----------------------------------------------------------------------------


def every_sentence() -> Iterator[Sentence]:
    """Yield each sentence of each rule and each fixed phrase, glossed.

    All splits are in it.
    """
    for rule in RULES:
        for content, form in product(rule.contents, rule.forms):
            yield rule.sentence(*content, *form)
    yield from small_talk()


@cache
def languages() -> dict[str, frozenset[str]]:
    """Every sentence that the grammar writes in each language."""
    english, german = zip(
        *((spell(sentence.english), spell(sentence.german)) for sentence in every_sentence()),
        strict=True,
    )
    return {"en": frozenset(english), "de": frozenset(german)}


def is_grammatical(sentence: str, language: str) -> bool:
    """Return whether the grammar, in any combination of words, writes this sentence.

    The first call takes some seconds.

    Args:
        sentence: A sentence, spelled with its final mark.
        language: "en" or "de".

    Returns:
        True if a rule or a fixed phrase gives exactly this sentence.

    Raises:
        ValueError: The phrasebook has no such language.
    """
    if language not in LANGUAGES:
        raise ValueError(
            f"unknown language {language!r}; the phrasebook has {', '.join(LANGUAGES)}"
        )
    return sentence in languages()[language]
