"""Sentences that LiteRT files are asked: common ones, none, too long a one, odd characters."""

import itertools

from tfformer.data.sources import read_pairs

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 40)]
SENTENCES += ["", "The dog", "The dog " * 60, "the Ж 😀 dog"]
