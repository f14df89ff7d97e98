"""Choose among the translations of a sentence by their similarity to each other.

Shape letters: N translations of a sentence, G character n-grams of one order.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tfformer.inference import Translation

ORDERS = 6  # sacreBLEU's defaults: n-grams of 1 to 6 characters, and recall counts twice
BETA = 2


def by_mean_chrf(translations: Sequence[Translation]) -> list[Translation]:
    """Sort translations of a sentence by their mean chrF against all of them, highest first.

    The first has the minimum Bayes risk (Kumar and Byrne 2004) if each translation is equally
    likely to be correct. Their scores do not weight the mean: scores are divided by a length, so
    they are no probabilities. Equal translations remain in their order.

    Example:
        >>> texts = ["ein Hund rennt", "das Haus ist rot", "ein Hund lief", "ein Hund rennt."]
        >>> [best, *_] = by_mean_chrf([Translation(text, 0.0) for text in texts])
        >>> best.text
        'ein Hund rennt'
    """
    means = sentence_chrf([translation.text for translation in translations]).mean(axis=1)
    order = np.argsort(-means.round(9), kind="stable")  # sums of other orders differ in the end
    return [translations[number] for number in order]


def sentence_chrf(texts: Sequence[str]) -> np.ndarray:
    """Compute chrF2 of each text against each text: (N, N), the second axis being the references.

    The values equal those of sacreBLEU's `sentence_score`, which would count the n-grams of each
    text N times: for 16 texts that takes 20 times as long.
    """
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    precision, recall, orders = np.zeros((3, len(texts), len(texts)))
    for ngrams in zip(*[extract_all_char_ngrams(text, ORDERS) for text in texts], strict=True):
        counts = _table(ngrams)
        sizes = counts.sum(axis=1)
        matches = np.minimum(counts[:, np.newaxis], counts).sum(axis=-1)  # (N, N)
        precision += matches / np.maximum(sizes, 1)[:, np.newaxis]
        recall += matches / np.maximum(sizes, 1)
        orders += np.minimum.outer(sizes, sizes) > 0  # an order counts if both texts contain it
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    weighted = np.maximum(BETA**2 * precision + recall, 1e-16)  # 0 only without any match
    return 100 * (1 + BETA**2) * precision * recall / weighted


def _table(ngrams: Sequence[Counter[str]]) -> np.ndarray:
    """Return how often each text contains each n-gram: (N, G)."""
    columns = {ngram: number for number, ngram in enumerate(set().union(*ngrams))}
    counts = np.zeros((len(ngrams), len(columns)), np.int64)
    for row, of_text in enumerate(ngrams):
        counts[row, [columns[ngram] for ngram in of_text]] = list(of_text.values())
    return counts
