#!/usr/bin/env python
"""A phrasebook language model beside a 5-gram model: scripts/phrasebook_lm.py RUN

Measures both on the held-out text in bits per byte; both see the same pieces of the same training text. Then draws 200
sentences from the run, in two ways, and counts those that the phrasebook's grammar writes. The last line is JSON.
"""

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tfformer.cli import import_tensorflow

import_tensorflow()

from tfformer import Generator, phrasebook  # noqa: E402
from tfformer.special_ids import END_ID, START_ID  # noqa: E402

ORDER, SAMPLES = 5, 200
WAYS = {"as_it_is": {}, "cautious": {"temperature": 0.7, "top_p": 0.9}}  # of drawing, for `Generator.sample`


class KneserNey:
    """An n-gram model over ids, smoothed by interpolated Kneser-Ney (Chen and Goodman 1999, sections 2.7 and 4.1.6).

    The longest contexts count how often a token follows, shorter ones in how many contexts that are longer by one; each
    length has one discount, n1 / (n1 + 2 n2).
    """

    def __init__(self, rows: Iterable[Sequence[int]], order: int, vocab_size: int):
        self.order = order
        self.vocab_size = vocab_size
        self.followers = [defaultdict(Counter) for _ in range(order)]  # by the length of the context
        for row in rows:
            for context, token in self._positions(row):
                self.followers[-1][context][token] += 1
        for longer, shorter in zip(self.followers[:0:-1], self.followers[-2::-1], strict=True):
            for context, tokens in longer.items():
                for token in tokens:
                    shorter[context[1:]][token] += 1
        self.discounts = [self._discount(followers) for followers in self.followers]

    def log_prob(self, row: Sequence[int]) -> float:
        """log p of ids that end in the end token, in nats."""
        return sum(math.log(self.probability(context, token)) for context, token in self._positions(row))

    def probability(self, context: tuple[int, ...], token: int) -> float:
        """p(token | context), where the context has up to order - 1 ids."""
        shorter = self.probability(context[1:], token) if context else 1 / self.vocab_size
        tokens = self.followers[len(context)].get(context)
        if not tokens:
            return shorter
        discount, total = self.discounts[len(context)], tokens.total()
        return (max(tokens[token] - discount, 0) + discount * len(tokens) * shorter) / total

    def _positions(self, row: Sequence[int]) -> Iterable[tuple[tuple[int, ...], int]]:
        padded = (START_ID,) * (self.order - 1) + tuple(row)
        for place, token in enumerate(row):
            yield padded[place : place + self.order - 1], token

    @staticmethod
    def _discount(followers: dict[tuple, Counter]) -> float:
        of_count = Counter(count for tokens in followers.values() for count in tokens.values())
        return of_count[1] / (of_count[1] + 2 * of_count[2]) if of_count[1] else 0.5


def main(run: str) -> None:
    generator = Generator.load(run)
    train, held_out = ([pair.source for pair in phrasebook.pairs(split)] for split in ("train", "test"))

    def ids(sentences: Sequence[str]) -> list[list[int]]:
        return [[*row, END_ID] for row in generator.tokenizer.encode(sentences)]

    kneser_ney = KneserNey(ids(train), ORDER, generator.tokenizer.vocab_size)
    size = sum(len(sentence.encode()) + 1 for sentence in held_out)
    n_gram = -sum(map(kneser_ney.log_prob, ids(held_out))) / math.log(2) / size
    own = generator.bits_per_byte(held_out)
    print(f"bits per byte on {len(held_out)} held-out sentences: {own:.4f}, {ORDER}-gram {n_gram:.4f}")

    shares, known = {}, set(train)
    for way, settings in WAYS.items():
        drawn = [continuation.text for continuation in generator.sample([""] * SAMPLES, seed=1, **settings)]
        grammatical = [text for text in drawn if phrasebook.is_grammatical(text, "en")]
        new = [text for text in grammatical if text not in known]
        shares[way] = {"grammatical": len(grammatical) / SAMPLES, "new": len(new) / SAMPLES}
        print(f"\n{way}: {len(grammatical)} of {SAMPLES} are grammatical, {len(new)} of them new:", *new[:5], sep="\n")
        print("not:", *[text for text in drawn if text not in grammatical][:5], sep="\n")
    print(json.dumps({"bits_per_byte": own, "n_gram_bits_per_byte": n_gram} | shares))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
