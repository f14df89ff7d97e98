"""Link each target token to the source token that it translates, to train attention on.

Both directions of IBM Model 1 (`translation_table`) must agree. Near pairs are preferred as in
fast_align (Dyer et al. 2013, "A Simple, Fast, and Effective Reparameterization of IBM Model 2").
"""

import numpy as np

from tfformer.data.encoding import EncodedText, IdRows
from tfformer.data.translation_table import (
    CHUNK,
    sampled_sides,
    token_pairs,
    translation_probabilities,
)
from tfformer.special_ids import END_ID

TENSION = 2.0  # the weight of a pair is exp(-TENSION * difference of the relative positions)
UNKNOWN = 1e-12  # the probability of a pair that the sample lacks


def learn_links(text: EncodedText, source_size: int, target_size: int) -> IdRows:
    """Return the position, from 1 on, of the source token that each target token translates.

    A pair of tokens is linked if each is the other's best. The probability of a pair is the product
    of both directions, P(one side's token translates the other) among the tokens of the sentence.

    Args:
        text: Sentence pairs; the end token stands for the empty word.
        source_size: Size of the source vocabulary.
        target_size: Size of the target vocabulary.

    Returns:
        Rows like those of the target, with 0 for tokens without a link.
    """
    source, target = sampled_sides(text)
    sources, targets, forward = translation_probabilities(source, target, target_size)
    b_targets, b_sources, backward = translation_probabilities(target, source, source_size)
    keys = sources * target_size + targets
    backward = backward[np.lexsort((b_targets, b_sources))]  # in the order of the keys
    links = np.zeros(len(text.target.ids), np.int32)
    for first in range(0, text.kept, CHUNK):
        rows = np.arange(first, min(first + CHUNK, text.kept))
        positions, starts = token_pairs(text.source, text.target, rows)
        of_target = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(positions)))
        source_ids, from_source = _tokens(text.source, rows)
        target_ids, from_target = _tokens(text.target, rows)
        begin = int(text.source.offsets[first])
        of_source = positions - begin
        pairs = source_ids[of_source].astype(np.int64) * target_size + target_ids[of_target]
        index = np.minimum(np.searchsorted(keys, pairs), len(keys) - 1)
        near = np.exp(-TENSION * np.abs(from_source[of_source] - from_target[of_target]))
        weights = np.ones(len(pairs))
        for probabilities, group in ((forward, of_target), (backward, of_source)):
            of_pair = near * np.where(keys[index] == pairs, probabilities[index], UNKNOWN)
            weights *= of_pair / np.bincount(group, of_pair)[group]
        best = [np.zeros(len(source_ids)), np.zeros(len(target_ids))]
        for most, group in zip(best, (of_source, of_target), strict=True):
            np.maximum.at(most, group, weights)
        is_link = (weights == best[0][of_source]) & (weights == best[1][of_target])
        is_link &= (source_ids[of_source] != END_ID) & (target_ids[of_target] != END_ID)
        begins = np.repeat(text.source.offsets[rows], text.target.lengths_of(rows))
        found = of_target[is_link]
        links[int(text.target.offsets[first]) + found] = positions[is_link] - begins[found] + 1
    return IdRows(links, text.target.offsets)


def _tokens(side: IdRows, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of successive rows, and their relative positions from 0 to 1."""
    lengths = side.lengths_of(rows)
    begins = np.repeat(side.offsets[rows], lengths)
    indices = np.arange(side.offsets[rows[0]], side.offsets[rows[-1] + 1])
    return side.take(indices), (indices - begins) / np.repeat(lengths, lengths)
