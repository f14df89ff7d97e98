#!/usr/bin/env python
"""Measures how a run of the phrasebook translates with a glossary.

Usage: scripts/phrasebook_terms.py RUN

In 1,500 test sentences, a glossary gives a noun or an adjective another word of the phrasebook as
its translation, in its dictionary form: "old" in "The old dog sleeps." becomes "teuer". The grammar
knows the correct sentence, "Der teure Hund schläft.". In 500 more, a noun becomes a made-up word.
The processor time is that of the sentences with exactly one term of a glossary. The last line is
JSON.
"""

import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from command_line import run as run_script
from phrasebook import corpus, lexicon
from phrasebook.inflection import Adjective, Noun

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from tfformer.data import phrasebook  # noqa: E402
from tfformer.engines.keras import KerasEngine  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402
from tfformer.text import Glossary, Term  # noqa: E402

REAL, MADE_UP = 1_500, 500
INFLECTED = 400  # of the first, with another correct form than the given
ROUNDS = 5
SYLLABLES = ("bal", "dre", "fim", "gor", "klu", "mun", "pro", "sil", "tra", "wen")
WORD = re.compile(r"\w+")


class Word(NamedTuple):
    """A noun in one number, or an adjective."""

    kind: tuple[str, bool]  # words of a kind replace each other
    gloss: str
    english: str
    german: str  # the form of the dictionary


class Case(NamedTuple):
    """A sentence with a term."""

    source: str
    term: Term
    form: str = ""  # the correct form; empty for a made-up word
    sentence: str = ""  # the correct translation


def words() -> Iterator[Word]:
    """Yield the nouns, their plurals and the adjectives."""
    for entry in vars(lexicon).values():
        if isinstance(entry, Noun):
            for plural in (False, True) if entry.german_plural else (False,):
                english, german = entry.in_english(plural), entry.in_german("Nominativ", plural)
                yield Word(("noun", plural), str(entry), english, german)
        elif isinstance(entry, Adjective):
            yield Word(("adjective", False), str(entry), str(entry), entry.german)


def key(english: str) -> str:
    """Return a sentence with "a" for "an", which depends on the next word."""
    return re.sub(r"\b([Aa])n\b", r"\1", english)


def replacements(pairs: Sequence[phrasebook.Pair]) -> Iterator[tuple[str, Word, Word]]:
    """Yield each sentence with each of its words and each other word of its kind."""
    known = {word.english: word for word in words()}
    for pair in pairs:
        found = WORD.findall(pair.source)
        for entry in (known[word] for word in found if word in known and found.count(word) == 1):
            for other in known.values():
                if other.kind == entry.kind and other.german != entry.german:
                    yield pair.source, entry, other


def real_cases(pairs: Sequence[phrasebook.Pair]) -> Iterator[Case]:
    """Yield each sentence with each term for which the grammar has a single translation."""
    changed = defaultdict(list)  # sentence with another word -> sentence, word, other word
    for source, entry, other in replacements(pairs):
        english = re.sub(rf"\b{entry.english}\b", other.english, source)
        changed[key(english)].append((source, entry, other))
    # Sentence -> its translations, with glosses
    translations: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for sentence in corpus.every_sentence():
        english = key(corpus.spell(sentence.english))
        if english in changed:
            translations[english][corpus.spell(sentence.german)] = sentence.german
    for english, answers in sorted(translations.items()):
        spelled, german = next(iter(answers.items()))
        for source, entry, other in changed[english] if len(answers) == 1 else ():
            forms = list(forms_of(other.gloss, spelled, german))
            if len(forms) == 1:
                yield Case(source, Term(entry.english, other.german), forms[0], spelled)


def forms_of(gloss: str, spelled: str, german: str) -> Iterator[str]:
    """Yield the words of a German sentence that translate an English word."""
    for word, glosses in zip(spelled.split(), corpus.glosses(german), strict=True):
        if any(each.split(":")[0] == gloss for each in glosses):
            yield word.strip(".,?!")


def made_up_cases(pairs: Sequence[phrasebook.Pair], draw: random.Random) -> Iterator[Case]:
    """Yield each sentence with a made-up translation of each noun."""
    nouns = {word.english for word in words() if word.kind[0] == "noun"}
    for pair in pairs:
        for noun in sorted(nouns.intersection(WORD.findall(pair.source))):
            made_up = "".join(draw.sample(SYLLABLES, draw.choice([2, 3]))).capitalize()
            yield Case(pair.source, Term(noun, made_up))


def translated(engine: KerasEngine, text: str, glossary: Glossary | None) -> list[str]:
    """Translate lines as `translate --glossary` does."""
    texts = engine.translator.text_translator(align=engine.nearest_targets, glossary=glossary)
    return texts.translate(text, "lines").splitlines()


def ratios(engine: KerasEngine, measured: Sequence[Case]) -> Iterator[float]:
    """Yield the processor time with one glossary, divided by that without, for each round."""
    terms = {case.term.source: case.term for case in measured}
    glossary = Glossary([*terms.values()][::3])  # with all, most lines would have several terms
    lines = [case.source for case in measured if len(list(glossary.matches(case.source))) == 1]
    text = "\n".join(lines)
    translated(engine, text, glossary)  # compiles the graphs
    for _ in range(ROUNDS):
        seconds = []
        for chosen in (glossary, None):
            start = time.process_time()
            translated(engine, text, chosen)
            seconds.append(time.process_time() - start)
        yield seconds[0] / seconds[1]


def main(run: str) -> None:
    """Translate the sentences, and print the shares."""
    draw, pairs = random.Random(1), phrasebook.pairs("test")
    every = list(real_cases(pairs))
    other = [case for case in every if case.form != case.term.target]
    given = [case for case in every if case.form == case.term.target]
    real = [*draw.sample(other, INFLECTED), *draw.sample(given, REAL - INFLECTED)]
    measured = [*real, *draw.sample(list(made_up_cases(pairs, draw)), MADE_UP)]
    engine = KerasEngine(Run.open(run))
    answers = [translated(engine, case.source, Glossary([case.term]))[0] for case in measured]
    said = [set(WORD.findall(answer)) for answer in answers]
    used = [case.term.target in words for case, words in zip(measured, said, strict=True)]
    formed = [case.form in words for case, words in zip(real, said, strict=False)]
    right = [case.sentence == answer for case, answer in zip(real, answers, strict=False)]
    known = {pair.source: pair.target for pair in pairs}
    plain = translated(engine, "\n".join(case.source for case in real), None)
    times = list(ratios(engine, measured))
    result = {
        "used": sum(used),
        "made-up words used": sum(used[REAL:]),
        "right form": sum(formed),
        "right form is the given": f"{len(given)} of {len(every)}",
        "right sentence": sum(right),
        "right sentence, given form": sum(right[INFLECTED:]),
        "bleu": scores(answers[:REAL], [case.sentence for case in real])["bleu"],
        "bleu without terms": scores(plain, [known[case.source] for case in real])["bleu"],
        "time": [round(times, 3) for times in (min(times), max(times))],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    run_script(main)
