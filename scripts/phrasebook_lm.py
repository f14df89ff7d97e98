#!/usr/bin/env python
"""A phrasebook language model beside a 5-gram model: scripts/phrasebook_lm.py RUN

Measures both on held-out sentences in bits per byte; both see the same pieces of the same training text. Then draws 200
sentences from the run, in two ways, and counts those that the phrasebook's grammar writes. The last line is JSON.
Needs: pip install -e '.[bench]'
"""

import functools
import json
import sys
from collections.abc import Sequence

from tfformer.cli.verbs import import_tensorflow

import_tensorflow()

from nltk.lm import KneserNeyInterpolated  # noqa: E402
from nltk.util import everygrams, ngrams  # noqa: E402

from tfformer import Generator, phrasebook  # noqa: E402

ORDER, HELD_OUT, SAMPLES = 5, 300, 200
DISCOUNT = 0.75  # taken off each count; NLTK has one for all lengths
START, END = "<s>", "</s>"
WAYS = {
    "as_it_is": {},
    "cautious": {"temperature": 0.7, "top_p": 0.9},
}  # of drawing, for `Generator.sample`


class KneserNey(KneserNeyInterpolated):
    """NLTK's, which counts anew at each question; a text asks the same ones often."""

    unmasked_score = functools.cache(KneserNeyInterpolated.unmasked_score)


def rows_of(generator: Generator, sentences: Sequence[str]) -> list[list[str]]:
    """The pieces of each sentence, with a whole context before the first one, and the end token."""
    tokenizer = generator.tokenizer
    return [
        [START] * (ORDER - 1) + [*tokenizer.pieces(row), END] for row in tokenizer.encode(sentences)
    ]


def n_gram_bits(train: list[list[str]], held_out: list[list[str]]) -> float:
    """-log2 p of all held-out rows together; a sentence takes about a tenth of a second."""
    model = KneserNey(ORDER, discount=DISCOUNT)
    # The start token is never predicted: a context of it alone would have a follower too many.
    grams = (
        [gram for gram in everygrams(row, max_len=ORDER) if gram[-1] != START] for row in train
    )
    model.fit(grams, {piece for row in train for piece in row})
    bits = 0.0
    for number, row in enumerate(held_out, start=1):
        bits -= sum(model.logscore(gram[-1], gram[:-1]) for gram in ngrams(row, ORDER))
        if sys.stderr.isatty():
            print(f"\r{ORDER}-gram: {number} of {len(held_out)} sentences", end="", file=sys.stderr)
    return bits


def main(run: str) -> None:
    generator = Generator.load(run)
    train, test = ([pair.source for pair in phrasebook.pairs(split)] for split in ("train", "test"))
    held_out = test[:HELD_OUT]
    size = sum(len(sentence.encode()) + 1 for sentence in held_out)
    n_gram = n_gram_bits(rows_of(generator, train), rows_of(generator, held_out)) / size
    own = generator.bits_per_byte(held_out)
    print(
        f"bits per byte on {len(held_out)} held-out sentences: {own:.4f}, {ORDER}-gram {n_gram:.4f}"
    )

    shares, known = {}, set(train)
    for way, settings in WAYS.items():
        drawn = [
            continuation.text
            for continuation in generator.sample([""] * SAMPLES, seed=1, **settings)
        ]
        grammatical = [text for text in drawn if phrasebook.is_grammatical(text, "en")]
        new = [text for text in grammatical if text not in known]
        shares[way] = {"grammatical": len(grammatical) / SAMPLES, "new": len(new) / SAMPLES}
        print(
            f"\n{way}: {len(grammatical)} of {SAMPLES} are grammatical, {len(new)} of them new:",
            *new[:5],
            sep="\n",
        )
        print("not:", *[text for text in drawn if text not in grammatical][:5], sep="\n")
    print(json.dumps({"bits_per_byte": own, "n_gram_bits_per_byte": n_gram} | shares))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
