#!/usr/bin/env python
"""Compare a phrasebook language model with a 5-gram model.

Usage: scripts/phrasebook_lm.py RUN

Measures both on held-out sentences in bits per byte; both see the same pieces of the same training
text. Then draws 200 sentences from the run, in two ways, and counts those that the phrasebook's
grammar can generate. The last line is JSON. Needs: pip install -e '.[bench]'
"""

import functools
import json
from collections.abc import Sequence
from typing import Any

from command_line import run as run_script

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from nltk.lm import KneserNeyInterpolated, NgramCounter, Vocabulary  # noqa: E402
from nltk.util import everygrams, ngrams  # noqa: E402
from phrasebook import is_grammatical  # noqa: E402

from tfformer import Generator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402

ORDER = 5
HELD_OUT = 100
SAMPLES = 200
DISCOUNT = 0.75  # subtracted from each count; NLTK uses one for all lengths
START = "<s>"
END = "</s>"
# Ways of drawing: arguments of `Generator.sample`.
WAYS: dict[str, dict[str, Any]] = {"as_it_is": {}, "cautious": {"temperature": 0.7, "top_p": 0.9}}


class KneserNey(KneserNeyInterpolated):
    """NLTK's model with cached scores: NLTK counts again for each query, and texts repeat them."""

    unmasked_score = functools.cache(KneserNeyInterpolated.unmasked_score)


def rows_of(generator: Generator, sentences: Sequence[str]) -> list[list[str]]:
    """Return the pieces of each sentence, after a full context of start tokens, and its end."""
    tokenizer = generator.tokenizer
    context = [START] * (ORDER - 1)
    return [[*context, *tokenizer.pieces(ids), END] for ids in tokenizer.encode(sentences)]


def n_gram_bits(train: list[list[str]], held_out: list[list[str]]) -> float:
    """Return -log2 p of all held-out rows."""
    asked = [gram for row in held_out for gram in ngrams(row, ORDER)]
    contexts = {gram[start:-1] for gram in asked for start in range(ORDER)}

    def counts(gram: tuple[str, ...]) -> bool:
        """Return whether a score depends on it: a query has its context, or the end of that.

        The start token is never predicted; counting it would add a follower to the context of start
        tokens.
        """
        return gram[-1] != START and (gram[:-1] in contexts or gram[1:-1] in contexts)

    grams = (filter(counts, everygrams(row, max_len=ORDER)) for row in train)
    vocabulary = Vocabulary(piece for row in train for piece in row)
    model = KneserNey(ORDER, DISCOUNT, vocabulary=vocabulary, counter=NgramCounter(grams))
    return -sum(model.logscore(gram[-1], gram[:-1]) for gram in asked)


def main(run: str) -> None:
    """Print bits per byte of both models, and the share of drawn sentences in the grammar."""
    generator = Generator.load(run)
    train = [pair.source for pair in phrasebook.pairs("train")]
    held_out = [pair.source for pair in phrasebook.pairs("test")[:HELD_OUT]]
    size = sum(len(sentence.encode()) + 1 for sentence in held_out)
    n_gram = n_gram_bits(rows_of(generator, train), rows_of(generator, held_out)) / size
    bits = generator.bits_per_byte(held_out)
    figures = f"{bits:.4f}, {ORDER}-gram {n_gram:.4f}"
    print(f"bits per byte on {len(held_out)} held-out sentences: {figures}")

    shares = {}
    known = set(train)
    for way, settings in WAYS.items():
        continuations = generator.sample([""] * SAMPLES, seed=1, **settings)
        texts = [continuation.text for continuation in continuations]
        grammatical = [text for text in texts if is_grammatical(text, "en")]
        new = [text for text in grammatical if text not in known]
        ungrammatical = [text for text in texts if text not in grammatical]
        shares[way] = {"grammatical": len(grammatical) / SAMPLES, "new": len(new) / SAMPLES}
        count = f"{len(grammatical)} of {SAMPLES} are grammatical, and {len(new)} are also new"
        print(f"\n{way}: {count}:", *new[:5], sep="\n")
        print("ungrammatical:", *ungrammatical[:5], sep="\n")
    print(json.dumps({"bits_per_byte": bits, "n_gram_bits_per_byte": n_gram} | shares))


if __name__ == "__main__":
    run_script(main)
