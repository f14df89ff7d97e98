"""From rules to a parallel corpus, in three splits.

Its sentence pairs have word alignments.

`Tier/animal` in a German sentence says that "Tier" renders "animal": the word alignment comes from
these glosses. The corpus is the same on every machine and in every process.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

from tfformer.files import write_text
from tfformer.phrasebook.rules import (
    CHOSEN,
    RULES,
    SPLITS,
    Rule,
    Sentence,
    agreement,
    combination,
)
from tfformer.phrasebook.small_talk import small_talk

LANGUAGES = ("en", "de")
SEED = 20170612
TRAIN_RATIO = 22  # training sentences for each one in valid and each one in test
REPETITIONS = 16  # of each fixed phrase in the training text: there is no other way to learn it


@dataclass(frozen=True)
class Pair:
    """One sentence in both languages.

    A position counts the words of `str.split()` from 0.

    Attributes:
        source: The English sentence.
        target: The German sentence.
        family: The kind of sentence, such as "question" or "coreference".
        combination: The content words, which decide the split.
        alignment: Links of source word and target word, in order.
        antecedent: The source words of the noun phrase that "it" stands for; coreference only.
        distractor: The source words of the other noun phrase; coreference only.
        pronoun: The source word "it" and its target word; coreference only.

    Example:
        >>> from tfformer import phrasebook
        >>> one = next(p for p in phrasebook.pairs("test") if "animal" in p.source and p.pronoun)
        >>> one.source.split()[one.pronoun[0]]
        'it'
    """

    source: str
    target: str
    family: str
    combination: str
    alignment: tuple[tuple[int, int], ...]
    antecedent: tuple[int, ...] = ()
    distractor: tuple[int, ...] = ()
    pronoun: tuple[int, int] | None = None

    def in_target(self, source_words: tuple[int, ...]) -> tuple[int, ...]:
        """The target words that are aligned to these source words, in order."""
        return tuple(sorted({j for i, j in self.alignment if i in source_words}))


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


def pair(family: str, combination: str, sentence: Sentence) -> Pair:
    """Return the pair that a glossed sentence spells.

    The glosses give the alignment and the coreference of its words.
    """
    plain = Pair(
        spell(sentence.english),
        spell(sentence.german),
        family,
        combination,
        align(sentence.english, sentence.german),
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


def draw(rule: Rule, split: str) -> Iterator[Pair]:
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
        yield pair(rule.family, combination(words), sentence)


def in_turn(numbers: Sequence[int], kind: Callable[[int], Hashable]) -> list[int]:
    """Put the first number of each kind before the second of any, and so on.

    Example:
        >>> in_turn([1, 3, 5, 2, 4], kind=lambda number: number % 2)
        [1, 2, 3, 4, 5]
    """
    seen: Counter[Hashable] = Counter()

    def turn(number: int) -> int:
        own = kind(number)
        seen[own] += 1
        return seen[own]

    return sorted(numbers, key=turn)


def fixed() -> Iterator[Pair]:
    """Every fixed phrase of small talk: all of them are trained, none is tested."""
    for sentence in small_talk():
        yield pair("small talk", spell(sentence.english), sentence)


def pairs(split: str) -> list[Pair]:
    """Return all pairs of one split, shuffled, always the same.

    The combinations of content words in valid and test do not occur in train. Train alone has the
    fixed phrases of small talk ("How are you?"), each of them several times.

    Args:
        split: "train", "valid" or "test".

    Returns:
        The pairs of the split.

    Raises:
        ValueError: The phrasebook has no such split.

    Example:
        >>> from tfformer import phrasebook
        >>> sources = {pair.source: pair.target for pair in phrasebook.pairs("train")}
        >>> sources["Good morning."]
        'Guten Morgen.'
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; the phrasebook has {', '.join(SPLITS)}")
    return list(shuffled(split))


@cache
def shuffled(split: str) -> tuple[Pair, ...]:
    """The pairs of a split, drawn once in a process."""
    drawn = [pair for rule in RULES for pair in draw(rule, split)]
    if split == "train":
        drawn += [*fixed()] * REPETITIONS
    return tuple(random.Random(f"{SEED} {split}").sample(drawn, len(drawn)))


def write(output: str | Path, overwrite: bool = False) -> list[Path]:
    """Write {train,valid,test}.{en,de} into a folder, one sentence a line.

    The files of a writing that was killed are these very files: they are kept, and the missing ones
    are written.

    Args:
        output: The folder, made if it is missing.
        overwrite: Whether files of such names are replaced, whatever they hold.

    Returns:
        The paths of all six files.

    Raises:
        FileExistsError: A file of such a name holds another text, or all six are there already.

    Example:
        >>> import tempfile
        >>> from tfformer import phrasebook
        >>> [path.name for path in phrasebook.write(tempfile.mkdtemp())][:2]
        ['train.en', 'train.de']
    """
    output = Path(output)
    missing = {}
    for path, text in files(output).items():
        if overwrite or not path.exists():
            missing[path] = text
        elif not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            raise FileExistsError(
                f"{path} exists already and is left as it is; choose another folder, or --overwrite"
            )
    if not missing:
        raise FileExistsError(
            f"{output} has the whole phrasebook already; choose another folder, or --overwrite"
        )
    if found := len(files(output)) - len(missing):
        warnings.warn(f"{output} had {found} files of an unfinished phrasebook", stacklevel=2)
    output.mkdir(parents=True, exist_ok=True)
    for path, text in missing.items():
        write_text(path, text)
    return list(files(output))


def files(output: Path) -> dict[Path, str]:
    """The text of each file of the phrasebook."""
    sides = list(zip(LANGUAGES, ("source", "target"), strict=True))

    def text_of(split: str, side: str) -> str:
        return "".join(f"{getattr(pair, side)}\n" for pair in pairs(split))

    return {
        output / f"{split}.{language}": text_of(split, side)
        for split in SPLITS
        for language, side in sides
    }


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
