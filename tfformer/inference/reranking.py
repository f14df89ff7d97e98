"""Choose among the translations of a sentence by their similarity to each other.

Shape letters: N translations of a sentence, G character n-grams of one order.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tfformer.inference import Translation

ORDERS, BETA = 6, 2  # sacreBLEU's defaults: n-grams of 1 to 6 characters, and recall's weight


def by_expected_chrf(translations: Sequence[Translation]) -> list[Translation]:
    """Sort translations of a sentence by their expected chrF, highest first.

    This is minimum Bayes risk decoding (Kumar and Byrne 2004): each translation, with a weight
    proportional to exp(score), may be the correct one. On validation, these weights gave the same
    chrF as equal weights and a higher BLEU. Translations of equal chrF remain in their order.

    Example:
        >>> texts = ["das Haus ist rot", "ein Hund rennt", "ein Hund lief"]
        >>> [best, *_] = by_expected_chrf([Translation(text, 0.0) for text in texts])
        >>> best.text
        'ein Hund rennt'
    """
    scores = np.array([translation.score for translation in translations], np.float64)
    weights = np.exp(scores - scores.max())
    similarity = sentence_chrf([translation.text for translation in translations])
    expected = similarity @ (weights / weights.sum())
    order = np.argsort(-expected.round(9), kind="stable")  # equal sums may differ by rounding
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
