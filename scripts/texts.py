#!/usr/bin/env python
"""Measures the translation of whole texts by a phrasebook run.

Usage: scripts/texts.py RUN [CAPTIONS]

Prints the BLEU of 300 held-out sentences as they are, in lower case, with capital initials and in
capitals, the references alike; joins them into lines of 1, 2, 3, 5 and 10 and prints the BLEU of
each, as one sentence a line and as texts; puts one to five addresses, file names, placeholders and
emoji into each of 1,000 sentences, and some in the place of nouns of 1,000, and counts those that
have all of them again, glued to nothing, and the sentences whose placeholders the model itself has
kept; puts a tag around a word of 200
sentences and counts the tags that are there and on the right word; glues 1,000 paragraphs of three
prose texts, and of the lines of the file CAPTIONS, and counts what is dropped. The last line is
JSON.
"""

import dataclasses
import functools
import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import sacrebleu  # noqa: E402

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.explain.alignment import nearest_targets  # noqa: E402
from tfformer.text import TextTranslator  # noqa: E402

SENTENCES = 300
MARKED = 200
MADE_UP = 1000
MOST_MADE_UP = 5  # words in a sentence
BEFORE = r"(?<!\S)[(\[\"'„“«»]*"  # the punctuation around a word that stands by itself
BEHIND = r"[)\].,;:!?\"'”“»«…]*(?!\S)"
PARAGRAPHS = 1000
PROSE = Path(__file__).parents[1] / "tests" / "support" / "prose"
GAPS = [" ", "  ", "\n", "\r\n", "\n\n    ", "\t", " \n\n\n"]


def with_capital_initials(text: str) -> str:
    """Give each word a capital initial."""
    return re.sub(r"(?<!\S)\w", lambda initial: initial[0].upper(), text)


CASES = {
    "as it is": str,
    "in lower case": str.lower,
    "with capital initials": with_capital_initials,
    "in capitals": str.upper,
}


def bleu_of_cases(texts: TextTranslator) -> Iterator[tuple[str, float]]:
    """Yield the BLEU of sentences in other cases, of references in the same case."""
    pairs = phrasebook.pairs("test")[:SENTENCES]
    for name, change in CASES.items():
        found = texts.translate_sentences([change(pair.source) for pair in pairs])
        references = [change(pair.target) for pair in pairs]
        yield name, sacrebleu.corpus_bleu(found, [references], force=True).score


def made_up(draw: random.Random) -> str:
    """Make up a word that no translation changes."""
    name = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))
    number = draw.randint(2, 99_999)
    return draw.choice(
        [
            f"https://{name}.org/{number}?q={name}",
            f"www.{name}.com/{name}",
            f"{name}.{number}@{name}.example.org",
            f"{{{name}}}",
            f"%({name})s",
            f"{name}_{number}.pdf",
            draw.choice(["😀", "👍🏽", "👩‍🚀", "🎉🎉", "☀️"]),
        ]
    )


Line = tuple[str, list[str]]  # a text, and its words that no translation changes


def with_words_between(draw: random.Random) -> Iterator[Line]:
    """Yield held-out sentences with one to five made-up words, each between any two words."""
    for pair in draw.sample(phrasebook.pairs("test"), MADE_UP):
        words = pair.source.split()
        new = [made_up(draw) for _ in range(draw.randint(1, MOST_MADE_UP))]
        for word in new:
            words.insert(draw.randrange(len(words)), word)
        yield " ".join(words), new


def with_words_for_nouns(draw: random.Random) -> Iterator[Line]:
    """Yield held-out sentences with made-up words in the place of one or more nouns."""
    pairs = [(pair, nouns) for pair in phrasebook.pairs("test") if (nouns := nouns_of(pair))]
    for pair, nouns in draw.sample(pairs, MADE_UP):
        words = pair.source.split()
        new = []
        for number in draw.sample(nouns, draw.randint(1, len(nouns))):
            before, _, after = re.fullmatch(r"(\W*)(.*?)(\W*)", words[number]).groups()
            new.append(made_up(draw))
            words[number] = before + new[-1] + after
        yield " ".join(words), new


def nouns_of(pair: phrasebook.Pair) -> list[int]:
    """Return the nouns and names of the source: within the German they have a capital initial."""
    words, german = pair.source.split(), pair.target.split()
    return [
        source
        for source, target in pair.alignment
        if target and german[target][0].isupper() and words[source].lower() not in ("you", "your")
    ]


def count_alone(text: str, word: str) -> int:
    """Count a word where it stands by itself, glued to nothing but punctuation."""
    return len(re.findall(f"{BEFORE}{re.escape(word)}{BEHIND}", text))


def has_each_as_often(translation: str, line: Line) -> bool:
    """Return whether the words of a line stand as often in its translation, by themselves."""
    text, words = line
    return all(count_alone(translation, word) == count_alone(text, word) for word in words)


def has_any(text: str, symbols: Sequence[str]) -> bool:
    """Return whether a text holds one of the symbols."""
    return any(symbol in text for symbol in symbols)


def keeps_each(source: str, translation: str, symbols: Sequence[str]) -> bool:
    """Return whether each symbol is as often in the translation as in the source."""
    return all(source.count(symbol) == translation.count(symbol) for symbol in symbols)


def copies(texts: TextTranslator) -> Iterator[tuple[str, int]]:
    """Yield how often made-up words come out as they went in, and how often by the model itself."""
    places = {"between words": with_words_between, "for nouns": with_words_for_nouns}
    for name, lines_with in places.items():
        lines = list(lines_with(random.Random(1)))
        heard: dict[str, str] = {}

        def translate(sentences: list[str], heard: dict[str, str] = heard) -> list[str]:
            translations = texts.translate_sentences(sentences)
            heard.update(zip(sentences, translations, strict=True))
            return translations

        listening = dataclasses.replace(texts, translate_sentences=translate)
        found = listening.translate("\n".join(line for line, _ in lines)).split("\n")
        yield f"{name}: lines with made-up words", len(lines)
        yield (
            f"{name}: lines with each as often",
            sum(itertools.starmap(has_each_as_often, zip(found, lines, strict=True))),
        )
        with_symbols = {
            source: translation
            for source, translation in heard.items()
            if has_any(source, texts.placeholders)
        }
        yield f"{name}: sentences with placeholders", len(with_symbols)
        yield (
            f"{name}: sentences with each kept by the model",
            sum(
                keeps_each(source, translation, texts.placeholders)
                for source, translation in with_symbols.items()
            ),
        )


def bleu_of_lines(texts: TextTranslator) -> Iterator[tuple[str, float]]:
    """Yield the BLEU of lines of several sentences."""
    pairs = phrasebook.pairs("test")[:SENTENCES]
    for length, format in itertools.product((1, 2, 3, 5, 10), ("text", "lines")):
        sources = joined([pair.source for pair in pairs], length)
        references = joined([pair.target for pair in pairs], length)
        found = texts.translate("\n".join(sources), format).split("\n")
        score = sacrebleu.corpus_bleu(found, [references], force=True).score
        yield f"{length} a line, {format}", score


def joined(sentences: list[str], length: int) -> list[str]:
    """Join sentences into lines of `length` each; the last may have fewer."""
    return [
        " ".join(sentences[start : start + length]) for start in range(0, len(sentences), length)
    ]


def tags(texts: TextTranslator) -> Iterator[tuple[str, int]]:
    """Yield the number of tags, of balanced ones, and of those whose right place is known."""
    balanced = right = known = 0
    draw = random.Random(1)
    pairs = [pair for pair in phrasebook.pairs("test") if pair.alignment]
    for pair in pairs[:MARKED]:
        words = pair.source.split()
        number = draw.choice(pair.alignment)[0]
        before, inner, after = re.fullmatch(r"(\W*)(.*?)(\W*)", words[number]).groups()
        words[number] = f"{before}<b>{inner}</b>{after}"
        found = texts.translate(" ".join(words), "html")
        balanced += re.findall(r"</?b>", found) == ["<b>", "</b>"]
        if re.sub(r"</?b>", "", found) == pair.target:
            known += 1
            start = len(found.split("<b>")[0].split(" ")) - 1
            marked = re.search(r"<b>(.*)</b>", found)[1].split()
            gold = {target for source, target in pair.alignment if source == number}
            whole = set(range(min(gold), max(gold) + 1))
            found_words = set(range(start, start + len(marked)))
            right += bool(found_words) and (found_words <= gold or found_words == whole)
    yield "marked sentences", MARKED
    yield "balanced", balanced
    yield "translated as the reference", known
    yield "of these on the right word", right


def paragraphs(name: str, sentences: list[str]) -> Iterator[tuple[str, int]]:
    """Glue paragraphs of sentences, by all kinds of whitespace.

    Args:
        name: That of the sentences in the figures.
        sentences: The sentences.

    Yields:
        The counts of paragraphs, of those that come back to the character, of the sentences in
        them, and of these that were found as they are.
    """
    draw = random.Random(1)
    heard = Counter()
    glued = Counter()
    exact = 0

    def capitals(batch: list[str]) -> list[str]:
        heard.update(batch)
        return [sentence.upper() for sentence in batch]

    for _ in range(PARAGRAPHS):
        chosen = draw.sample(sentences, draw.randint(2, 8))
        text = "".join(sentence + draw.choice(GAPS) for sentence in chosen)
        exact += TextTranslator(capitals).translate(text).upper() == text.upper()  # units stay
        glued.update(chosen)
    yield f"{name}: paragraphs", PARAGRAPHS
    yield f"{name}: paragraphs exact", exact
    yield f"{name}: sentences glued", glued.total()
    yield f"{name}: sentences found", (glued & heard).total()


def prose() -> list[str]:
    """Return the sentences of three texts, a line each."""
    lines = (line for file in sorted(PROSE.glob("*.txt")) for line in read_lines(file))
    return [line for line in lines if line]


def captions_of(file: str) -> list[str]:
    """Return the captions of a file that end as a sentence does."""
    return [line.strip() for line in read_lines(file) if line.strip()[-1:] in (".", "!")]


def main(run: str, captions: str | None = None) -> None:
    """Print the figures of a run."""
    translator = Translator.load(run)
    cache: dict[str, str] = {}  # a translation is the same beside any other sentence

    def translate(sentences: list[str]) -> list[str]:
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in cache]
        cache.update(zip(new, translator.translate(new), strict=True))
        return [cache[sentence] for sentence in sentences]

    align = functools.partial(nearest_targets, translator)
    placeholders = translator.tokenizers.placeholders
    texts = TextTranslator(translate, align, placeholders=placeholders)
    measured: dict[str, float] = {}
    for name, value in itertools.chain(
        paragraphs("prose", prose()),
        paragraphs("captions", captions_of(captions)) if captions else (),
        bleu_of_cases(texts),
        copies(texts),
        tags(texts),
        bleu_of_lines(texts),
    ):
        measured[name] = round(value, 2)
        print(f"{name}: {measured[name]}", flush=True)
    print(json.dumps({"run": Path(run).name, **measured}))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
