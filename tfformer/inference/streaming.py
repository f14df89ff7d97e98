"""Translation and scoring of texts larger than memory, one chunk at a time."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tfformer.data.batches import by_length
from tfformer.data.encoding import EncodedSentences, in_batches, truncation_report
from tfformer.data.sources import SentencePair
from tfformer.inference import Translation
from tfformer.inference.translator import ForcedScore, Translator
from tfformer.runtime.devices import has_gpu

CHUNK = 1_000  # sentences in memory
PORTION = 128  # sentences of similar length translated together; then `advance` is called
GPU_CHUNK = 8_000  # sentences in memory and in a portion, of which a GPU gets full batches

Advance = Callable[[int], None]  # called with the number of sentences done since the last call


class TranslatedChunk(NamedTuple):
    """Consecutive sentences of a text with their translations."""

    sources: EncodedSentences  # B sentences, encoded
    n_best: list[list[Translation]]  # up to `beam_size` translations of each sentence, best first


def translate_stream(
    translator: Translator,
    sentences: Iterable[str],
    beam_size: int | None = None,
    length_penalty: float | None = None,
    advance: Advance = lambda count: None,
) -> Iterator[TranslatedChunk]:
    """Translate a text of any length, one sentence at a time, and yield the chunks in order.

    `advance` is called after each portion of at most 128 sentences, on a GPU 8,000. One warning at
    the end counts the sentences that were truncated.
    """
    truncation = _Truncation()
    size, portion_size = (GPU_CHUNK, GPU_CHUNK) if has_gpu() else (CHUNK, PORTION)
    for chunk in in_batches(sentences, size):
        sources = translator.encode(chunk)
        truncation.count(sources)
        n_best: list[list[Translation]] = [[] for _ in chunk]
        order = by_length(sources.ids)
        for numbers in in_batches(order, portion_size):
            portion = translator.n_best(sources.take(numbers), beam_size, length_penalty)
            for number, best in zip(numbers, portion, strict=True):
                n_best[number] = best
            advance(len(numbers))
        yield TranslatedChunk(sources, n_best)
    truncation.warn()


def score_stream(
    translator: Translator,
    pairs: Iterable[SentencePair],
    advance: Advance = lambda count: None,
) -> Iterator[ForcedScore]:
    """Score existing translations of a text of any length, and yield the score of each pair.

    `advance` is called after each chunk. One warning at the end counts the sentences that were
    truncated.
    """
    truncation = _Truncation()
    for chunk in in_batches(pairs, CHUNK):
        sources = translator.encode([source for source, _ in chunk])
        targets = translator.encode_targets([target for _, target in chunk])
        truncation.count(sources)
        truncation.count(targets)
        scores = translator.score(sources, targets)
        advance(len(chunk))
        yield from scores
    truncation.warn()


class _Truncation:
    """Counts the sentences that were too long for the model."""

    def __init__(self) -> None:
        self.sentences = 0
        self.truncated = 0
        self.max_tokens = 0

    def count(self, encoded: EncodedSentences) -> None:
        self.sentences += len(encoded)
        self.truncated += encoded.truncated
        self.max_tokens = encoded.max_tokens

    def warn(self) -> None:
        if self.truncated:
            report = truncation_report(self.truncated, self.sentences, self.max_tokens)
            warnings.warn(report, stacklevel=2)
