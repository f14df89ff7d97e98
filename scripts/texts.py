#!/usr/bin/env python
"""Measures the translation of whole texts by a phrasebook run.

Usage: scripts/texts.py RUN [CAPTIONS]

Prints the BLEU of 300 held-out sentences as they are, in lower case, with capital initials and in
capitals, the references alike; joins them into lines of 1, 2, 3, 5 and 10 and prints the BLEU of
each, as one sentence a line and as texts; puts addresses, numbers, placeholders and emoji into
1,000 sentences and counts those that have all of them again; puts a tag around a word of 200
sentences and counts the tags that are there and on the right word; glues 1,000 paragraphs of three
prose texts, and of the lines of the file CAPTIONS, and counts what is dropped. The last line is
JSON.
"""

import functools
import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tfformer.cli.terminal import import_tensorflow

import_tensorflow()

import sacrebleu  # noqa: E402

from tfformer import Translator, phrasebook  # noqa: E402
from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.explain.alignment import nearest_targets  # noqa: E402
from tfformer.text import TextTranslator  # noqa: E402

SENTENCES = 300
MARKED = 200
MADE_UP = 1000
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
            f"{number}",
            f"{number} km",
            f"€{number}.50",
            f"{number} %",
            draw.choice(["😀", "👍🏽", "👩‍🚀", "🎉🎉", "☀️"]),
        ]
    )


def copies(texts: TextTranslator) -> Iterator[tuple[str, int]]:
    """Yield the number of lines with made-up words, and of those that have each of them once."""
    draw = random.Random(1)
    lines = []
    for pair in draw.sample(phrasebook.pairs("test"), MADE_UP):
        words = pair.source.split()
        new = [made_up(draw) for _ in range(draw.randint(1, 3))]
        for word in new:
            words.insert(draw.randrange(len(words)), word)
        lines.append((" ".join(words), new))
    found = texts.translate("\n".join(line for line, _ in lines)).split("\n")
    yield "lines with made-up words", MADE_UP
    right = [
        all(translation.count(word) == line.count(word) for word in new)
        for translation, (line, new) in zip(found, lines, strict=True)
    ]
    yield "of these with each as often", sum(right)


def bleu_of_lines(texts: TextTranslator) -> Iterator[tuple[str, float]]:
    """Yield the BLEU of lines of several sentences."""
    pairs = phrasebook.pairs("test")[:SENTENCES]
    for length, format in itertools.product((1, 2, 3, 5, 10), ("text", "lines")):
        lines = [pairs[n : n + length] for n in range(0, len(pairs), length)]
        sources = [" ".join(pair.source for pair in line) for line in lines]
        references = [" ".join(pair.target for pair in line) for line in lines]
        found = texts.translate("\n".join(sources), format).split("\n")
        score = sacrebleu.corpus_bleu(found, [references], force=True).score
        yield f"{length} a line, {format}", score


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
        exact += TextTranslator(capitals).translate(text) == text.upper()
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
