"""Translate sentences and whole texts through the request queue and the cache."""

import asyncio
import math
import reprlib
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from cachetools import LRUCache
from pydantic import BaseModel, Field

from tfformer.engines import Engine
from tfformer.engines.engine import BEAM, GREEDY, NO_TRANSLATION, PREFIX, Arrays, as_text
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import Direction
from tfformer.serving.request_queue import RequestQueue
from tfformer.text import FORMATS, Glossary, Links, Segment, TextTranslator, XmlError, segments
from tfformer.text.text_translator import portions

CACHE_BYTES = 64 * 2**20
PORTION = 32  # maximum sentences of one text in the queue at a time
PORTIONS = 16  # portions in the queue at a time, which fill half of it; others wait
STREAMED = 8  # maximum sentences per chunk of a stream
MAX_PORTION = 64  # maximum pieces per chunk of a stream, for texts that contain few sentences
TEXT_THREADS = 64  # threads that split and reassemble texts
TEXTS_AT_ONCE = 32  # maximum texts of one request at a time, to leave threads for other requests

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Pair = tuple[str, str]  # a sentence and its translation


class TranslatedPiece(NamedTuple):
    """A span of a text with its translation; whitespace is copied."""

    source: str  # the span
    translation: str  # its translation
    is_sentence: bool  # whether it was translated
    others: list[str]  # alternative translations, best first


class TranslatedText(NamedTuple):
    """The translation of a text."""

    text: str
    pairs: list[Pair]  # its sentences with their translations


class AlignedWords(BaseModel):
    """The alignment of words, which are split at spaces, and how sure the model is of them."""

    links: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        [], description="Pairs of a source word and a target word, counted from 0."
    )
    confidence: float | None = Field(
        None, description="The mean probability of a token of the translation."
    )
    word_confidences: list[float] = Field(
        [], description="The probability of each word of the translation."
    )


class QueuedTranslator:
    """Translates for many requests at once, with a cache."""

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue
        self._cache = TranslationCache()
        self._portions = asyncio.Semaphore(PORTIONS)
        self._threads = ThreadPoolExecutor(TEXT_THREADS, "text")
        self._aligner = ThreadPoolExecutor(1, "align")

    async def n_best(
        self, version: Engine, sentences: Sequence[str], signature: str
    ) -> list[list[str]]:
        """Return the translations of each sentence, best first.

        `signature` is `BEAM`, or `GREEDY` for a single translation each. A full queue, or sentences
        that the model refuses, raise RequestError.
        """
        cached = {
            text: self._cache.find(version, signature, text) for text in dict.fromkeys(sentences)
        }
        missing = [text for text, best in cached.items() if best is None]
        for start in range(0, len(missing), PORTION):
            portion = missing[start : start + PORTION]
            inputs = {"text": np.array([text.encode() for text in portion], object)}
            async with self._portions:
                outputs = await self._queue.submit(version, signature, inputs)
            for sentence, best in zip(portion, _lists(outputs), strict=True):
                self._cache.keep(version, signature, sentence, best)
                cached[sentence] = best
        return [cached[text] or [""] for text in sentences]

    async def text(
        self,
        direction: Direction,
        text: str,
        format: str = "text",
        signature: str = BEAM,
        rank: int = 0,
        glossary: Glossary | None = None,
    ) -> TranslatedText:
        """Translate a text.

        With `rank` 0 it consists of the best translation of each sentence, with 1 of the second
        best, and so on; a sentence with fewer translations contributes its last. `signature` is
        `BEAM`, or `GREEDY`, which finds a single translation of each sentence.

        Raises:
            RequestError: The format is unknown, the text is not well-formed XML, the model has no
                text signature, refuses the sentences or reads fewer tokens than a line of the
                format "lines" has, or the queue is full.
        """
        if format not in FORMATS:
            raise RequestError(f"the format {format} is not supported")
        version = _translating(direction)
        loop = asyncio.get_running_loop()
        calls: list[Future[Any]] = []
        pairs: list[Pair] = []
        caller_gone = threading.Event()

        def translate(sentences: list[str]) -> list[str]:
            if caller_gone.is_set():
                raise CancelledError
            if format == "lines":  # the other formats divide long sentences
                _check_lengths(version, sentences)
            call = asyncio.run_coroutine_threadsafe(
                self.n_best(version, sentences, signature), loop
            )
            calls.append(call)
            translations = [best[min(rank, len(best) - 1)] for best in call.result()]
            pairs.extend(zip(sentences, translations, strict=True))
            return translations

        def align(sources: list[str], targets: list[str]) -> Sequence[Links]:
            if caller_gone.is_set():
                raise CancelledError
            call = self._aligner.submit(version.nearest_targets, sources, targets)
            calls.append(call)
            return call.result()

        translator = TextTranslator(
            translate,
            align if version.can_align else None,
            count_tokens=version.count_tokens if version.tokenizers else None,
            max_tokens=version.max_tokens,
            language=direction.source,
            placeholders=version.placeholders,
            target_language=direction.target,
            tags=version.tags,
            glossary=glossary,
        )
        if direction.tag:
            translator = translator.with_tag(direction.tag)
        try:
            translation = await loop.run_in_executor(
                self._threads, translator.translate, text, format
            )
        except (XmlError, ValueError) as error:
            raise RequestError(str(error)) from None
        finally:
            caller_gone.set()
            for call in calls:
                call.cancel()
        return TranslatedText(translation, pairs)

    async def aligned(self, direction: Direction, source: str, translation: str) -> AlignedWords:
        """Return the alignment and the probabilities of words.

        They are empty if the model has no alignments, or if either text exceeds the model's limit.
        """
        version = direction.model.newest
        if not version.can_align:
            return AlignedWords()
        tagged = direction.tagged(source)

        def is_too_long() -> bool:
            assert version.tokenizers is not None
            (written,) = version.tokenizers.target.encode([translation])
            return max(len(written), *version.count_tokens([tagged])) > version.max_tokens

        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._threads, is_too_long):
            return AlignedWords()
        (pair,) = await loop.run_in_executor(
            self._aligner, version.aligned, [tagged], [translation]
        )
        tags = 1 if direction.tag else 0  # words before the sentence
        return AlignedWords(
            links=[[word - tags, to] for word, to in pair.nearest_targets() if word >= tags],
            confidence=pair.confidence,
            word_confidences=pair.word_confidences().tolist(),
        )

    async def confidence(self, direction: Direction, pairs: Sequence[Pair]) -> float:
        """Return the geometric mean of the probabilities of all tokens of translations.

        RequestError: The model has no alignments.
        """
        version = direction.model.newest
        sources, translations = ([pair[side] for pair in pairs] for side in (0, 1))
        loop = asyncio.get_running_loop()
        try:
            aligned = await loop.run_in_executor(
                self._aligner, version.aligned, sources, translations
            )
        except ValueError as error:
            raise RequestError(str(error)) from None
        log_probs = [float(log_prob) for pair in aligned for log_prob in pair.log_probs]
        return math.exp(sum(log_probs) / len(log_probs)) if log_probs else 1.0

    async def continuations(
        self, direction: Direction, sentence: str, prefix: str
    ) -> list[tuple[str, float]]:
        """Return translations of a sentence that begin with a prefix, and their probabilities.

        See `Engine.continuations`; the probability is that of the piece after the prefix.

        Raises:
            RequestError: The model cannot continue prefixes, refuses this one, or reads fewer
                tokens than the sentence has, or the queue is full.
        """
        version = direction.model.newest
        sentence = direction.tagged(sentence)

        def check() -> None:
            version.check_prefixes([prefix])
            _check_lengths(version, [sentence])

        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, check)
        except ValueError as error:
            raise RequestError(str(error)) from None
        texts = {"text": sentence, "prefix": prefix}
        inputs = {name: np.array([text.encode()], object) for name, text in texts.items()}
        outputs = await self._queue.submit(version, PREFIX, inputs)
        pairs = zip(outputs["translations"][0], outputs["probabilities"][0].tolist(), strict=True)
        return [(as_text(text), probability) for text, probability in pairs if probability > 0]

    async def pieces(self, direction: Direction, text: str) -> AsyncIterator[TranslatedPiece]:
        """Yield the pieces of a text as they are translated; their joined sources are the text."""
        _translating(direction)
        stretches = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: list(segments(text, direction.source))
        )
        for portion in portions(stretches, lambda s: s.is_sentence, MAX_PORTION, STREAMED):
            distinct = list(dict.fromkeys(portion))
            translated = await in_order(lambda part: self._piece(direction, part), distinct)
            pieces = dict(zip(distinct, translated, strict=True))
            for segment in portion:
                yield pieces[segment]

    async def _piece(self, direction: Direction, segment: Segment) -> TranslatedPiece:
        """Translate a segment; if it is translated undivided, also return the alternatives."""
        if not segment.is_sentence:
            return TranslatedPiece(segment.text, segment.text, False, [])
        translation = (await self.text(direction, segment.text)).text
        sentence = direction.tagged(segment.text)
        n_best = self._cache.find(direction.model.newest, BEAM, sentence) or []
        alternatives = n_best[1:] if n_best[:1] == [translation] else []
        return TranslatedPiece(segment.text, translation, True, alternatives)

    def close(self) -> None:
        """Shut down the thread pools."""
        for threads in (self._threads, self._aligner):
            threads.shutdown(wait=False, cancel_futures=True)


async def in_order(
    answer: Callable[[Item], Awaitable[Answer]], items: Sequence[Item]
) -> list[Answer]:
    """Answer the items of one request concurrently, and return the answers in order.

    The first error is raised, and cancels the work for the other items.
    """
    slots = asyncio.Semaphore(TEXTS_AT_ONCE)

    async def in_turn(item: Item) -> Answer:
        async with slots:
            return await answer(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _translating(direction: Direction) -> Engine:
    """Return the newest version of the model; raise RequestError if it accepts no text."""
    version = direction.model.newest
    if missing := [name for name in (GREEDY, BEAM) if name not in version.signatures]:
        raise RequestError(
            f"{direction.model.name} has no signature {' and no '.join(missing)}, which texts "
            "need; serve a translation model, exported without --no-text"
        )
    return version


def _check_lengths(version: Engine, sentences: Sequence[str]) -> None:
    """Raise ValueError if the model would truncate one of the sentences."""
    counts = version.count_tokens(sentences) if version.tokenizers else [0] * len(sentences)
    for sentence, tokens in zip(sentences, counts, strict=True):
        if tokens > version.max_tokens:
            raise ValueError(
                f"the sentence {reprlib.repr(sentence)} has {tokens} tokens, and the model reads "
                f"at most {version.max_tokens}; send a shorter sentence"
            )


def _lists(outputs: Arrays) -> list[list[str]]:
    """Return the translations of each row.

    Empty slots of the beam are left out, and so is a translation that differs from a better one
    only in case.
    """
    if "translation" in outputs:
        return [[as_text(translation)] for translation in outputs["translation"]]
    lists = []
    for beam, scores in zip(outputs["translations"], outputs["scores"], strict=True):
        distinct: dict[str, str] = {}
        for text in map(as_text, beam[scores > NO_TRANSLATION / 2]):
            distinct.setdefault(text.lower(), text)  # casefold would equate Maßen and Massen
        lists.append(list(distinct.values()))
    return lists


class TranslationCache:
    """A cache of recently requested sentences and their translations, with a memory limit.

    The least recently used sentences are dropped.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._kept: LRUCache[tuple[object, str, str], tuple[str, list[str]]]
        self._kept = LRUCache(max_bytes, getsizeof=_bytes)
        self._owners: WeakKeyDictionary[object, object] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, version: object, signature: str, sentence: str) -> list[str] | None:
        """Return the translations of a sentence, best first, or None."""
        kept = self._kept.get((self._owner(version), signature, sentence))
        return None if kept is None else kept[1]

    def keep(self, version: object, signature: str, sentence: str, best: list[str]) -> None:
        """Store the translations of a sentence, unless they exceed the whole limit.

        Versions never share a translation.
        """
        item = (sentence, best)
        if _bytes(item) <= self._kept.maxsize:
            self._kept[self._owner(version), signature, sentence] = item

    def _owner(self, version: object) -> object:
        """Return the version's representative in the keys, which does not keep a model alive."""
        return self._owners.setdefault(version, object())


def _bytes(item: tuple[str, list[str]]) -> int:
    """Estimate the memory of one cache entry in bytes."""
    sentence, best = item
    return 400 + sys.getsizeof(sentence) + sum(map(sys.getsizeof, best))
