#!/usr/bin/env python
"""Measures how runs of the phrasebook follow their tags.

Usage: scripts/phrasebook_tags.py RUN ...

A run with <du> and <Sie> translates 500 sentences that address somebody, with each tag. No training
or validation sentence has their combinations of words. Counts the translations with the pronouns of
the correct one, and those with the words in which the two forms differ. Other runs translate the
test sentences in each of their directions: BLEU, and the translations with a word of the target
language and no word of the source language, as far as one of them alone has it. For each run, the
last line is JSON.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from command_line import run as run_script
from phrasebook import RULES, corpus, drawn, spell

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402

SENTENCES = 500
OF_A_RULE = 40  # at most
WORD = re.compile(r"\w+")
PRONOUN = re.compile(r"sie|ihnen|ihre?[nmrs]?|du|dich|dir|dein(e[nmrs]?)?", re.IGNORECASE)


def addressed() -> list[tuple[str, str, str]]:
    """Draw sentences with their translations for "Sie" and "du"."""
    seen = {pair.source for split in ("train", "valid") for pair in drawn(split)}
    rows: set[tuple[str, str, str]] = set()
    for rule in RULES:
        of_rule = set()
        for content in rule.contents_of["test"]:
            for form in rule.forms:
                polite = rule.sentence(*content, *form)
                german = rule.sentence(*corpus.familiar(content), *corpus.familiar(form)).german
                row = spell(polite.english), spell(polite.german), spell(german)
                if row[1] != row[2] and row[0] not in seen:
                    of_rule.add(row)
        rows |= set(random.Random(1).sample(sorted(of_rule), min(OF_A_RULE, len(of_rule))))
    return random.Random(1).sample(sorted(rows), SENTENCES)


def formality(translator: Translator) -> dict[str, dict[str, int]]:
    """Count the right translations with each tag."""
    counts = {}
    polite = addressed()
    familiar = [(source, du, sie) for source, sie, du in polite]
    for tag, rows in {"<Sie>": polite, "<du>": familiar}.items():
        translations = translator.translate([f"{tag} {source}" for source, *_ in rows])
        both = list(zip(translations, rows, strict=True))
        counts[tag] = {
            "pronouns": sum(pronouns(text) == pronouns(right) for text, (_, right, _) in both),
            "form of address": sum(has_form(text, *row[1:]) for text, row in both),
            "sentences": sum(text == right for text, (_, right, _) in both),
        }
        for text, (source, *answers) in both:
            if not has_form(text, *answers):
                print(tag, source, text, answers[0], sep="\n  ")
    return counts


def pronouns(text: str) -> list[str]:
    """Return the pronouns of address and of the third person in a text, sorted."""
    return sorted(filter(PRONOUN.fullmatch, WORD.findall(text)))


def has_form(text: str, right: str, wrong: str) -> bool:
    """Whether a text has the words in which the right form differs from the wrong one."""
    said, wanted, unwanted = (Counter(WORD.findall(each)) for each in (text, right, wrong))
    surplus = {word: count for word, count in said.items() if count > wanted[word]}
    return not (wanted - unwanted) - said and not (unwanted - wanted).keys() & surplus.keys()


def languages(run: str, directions: Iterable[Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Score a run in each direction."""
    sides = {"en": "source", "de": "target"}
    words = {language: set[str]() for language in sides}
    for split in phrasebook.SPLITS:
        for pair in phrasebook.pairs(split):
            for language, side in sides.items():
                words[language].update(WORD.findall(getattr(pair, side)))
    result = {}
    for source, target in directions:
        pairs = phrasebook.pairs("test")
        texts, references = (
            [getattr(pair, sides[language]) for pair in pairs] for language in (source, target)
        )
        translations = Translator.load(run, source, target).translate(texts)
        said = [set(WORD.findall(text)) for text in translations]
        right = [
            bool(each & words[target] - words[source]) and not each & words[source] - words[target]
            for each in said
        ]
        bleu = scores(translations, references)["bleu"]
        result[f"{source} to {target}"] = {"bleu": bleu, "language": sum(right), "of": len(right)}
    return result


def main(first: str, *others: str) -> None:
    """Print the result of each run."""
    for run in (first, *others):
        opened = Run.open(run)
        if {"<Sie>", "<du>"} <= set(opened.config.data.tags):
            print(json.dumps({run: formality(Translator.load(run))}))
        else:
            stated = opened.directions or [tuple(opened.config.data.languages or ("en", "de"))]
            print(json.dumps({run: languages(run, stated)}))


if __name__ == "__main__":
    run_script(main)
