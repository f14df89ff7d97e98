"""The interface of engines: opened artifacts that translate.

Shape letters: B sentences, N translations of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from tfformer.argument_checks import require_size
from tfformer.data.encoding import check_pairs, encode_prefixes, in_batches, warn_if_truncated
from tfformer.data.tokenizers import Tokenizers
from tfformer.inference import Translation
from tfformer.inference.alignment import Aligned, Alignment, align_pairs

GREEDY, BEAM = "serving_default", "translate_beam"  # the signatures over text
PREFIX = "translate_prefix"  # the signature over texts and the beginnings of their translations
CONTINUATIONS = 5  # translations of a sentence with a given beginning
ALIGN = "align_ids"  # the signature over the ids of sources and targets
CHARACTERS_PER_TOKEN = 64  # maximum characters read per token of the limit; a piece has up to 16
CHUNK = 1_000  # sentences in memory at a time
PORTION = 128  # sentences of similar length that are translated at a time
NO_LIMIT = 2**31  # tokens, if an artifact states no limit
NO_TRANSLATION = -1e9  # the score of an empty slot in the beam

Advance = Callable[[int], None]  # called with the number of sentences done since the last call
Arrays = dict[str, np.ndarray]  # name of an input or output -> array; the first axis is the batch


class TensorSpec(NamedTuple):
    """An input or output of a signature."""

    dtype: str  # TensorFlow's name for the type, such as `string`, `int32` or `float32`
    shape: tuple[int | None, ...]  # one size per axis, None if it is dynamic


class Signature(NamedTuple):
    """The named inputs and outputs of one of an artifact's functions."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


TEXTS = Signature(
    inputs={"text": TensorSpec("string", (None,))},
    outputs={
        "translation": TensorSpec("string", (None,)),
        "score": TensorSpec("float32", (None,)),
    },
)
BEAMS = Signature(
    inputs={"text": TensorSpec("string", (None,))},
    outputs={
        "translations": TensorSpec("string", (None, None)),
        "scores": TensorSpec("float32", (None, None)),
    },
)
PREFIXES = Signature(
    inputs={"text": TensorSpec("string", (None,)), "prefix": TensorSpec("string", (None,))},
    outputs={
        "translations": TensorSpec("string", (None, CONTINUATIONS)),
        "probabilities": TensorSpec("float32", (None, CONTINUATIONS)),
    },
)


class Engine(ABC):
    """An opened artifact that translates sentences.

    An engine may be called from several threads. `with` closes it.

    Args:
        manifest: The artifact's manifest; empty for a SavedModel from another program.
        tokenizers: The tokenizers of both languages; None for a SavedModel from another program.

    Attributes:
        signatures: The functions that `run` can call. Every artifact with text signatures has
            `GREEDY` and `BEAM`; one that can continue a given beginning has `PREFIX` too.
        beam_size: Number of beams in the artifact's default search; 1 is greedy search.
        max_tokens: Maximum number of tokens, without the end token, that are translated; a longer
            sentence is truncated.
        chunk: Number of sentences that `stream` holds in memory.
        portion: Number of them that it translates at a time.
        searches_with_any_beam_size: Whether any number of beams can be chosen. If False, the
            artifact contains a greedy search and a search with `beam_size` beams.
    """

    searches_with_any_beam_size = True

    def __init__(self, manifest: Mapping[str, Any], tokenizers: Tokenizers | None) -> None:
        self.manifest = manifest
        self.tokenizers = tokenizers
        self.signatures: Mapping[str, Signature] = {GREEDY: TEXTS, BEAM: BEAMS}
        decoding = manifest.get("decoding") or {}
        self.beam_size: int = decoding.get("beam_size", 1)
        self.max_tokens: int = decoding.get("max_length", NO_LIMIT) - 1
        self.chunk, self.portion = CHUNK, PORTION

    @property
    def languages(self) -> Sequence[str]:
        """The codes of the source language and the target language; empty if unknown."""
        return self.manifest.get("languages") or []

    @property
    def placeholders(self) -> Sequence[str]:
        """Symbols such as `⟦1⟧` that the model has learned to copy."""
        return self.tokenizers.placeholders if self.tokenizers else ()

    @property
    def tags(self) -> Sequence[str]:
        """Symbols such as `<de>` that may stand before a sentence."""
        return self.tokenizers.source.tags if self.tokenizers else ()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the source tokens of each text, including a language token; 0 for a blank text."""
        return list(map(len, self._tokenizers.source.encode(list(texts))))

    def translate(self, sentences: Sequence[str], beam_size: int | None = None) -> list[str]:
        """Translate sentences, truncated to `max_tokens`; blank sentences become empty.

        By default the artifact's own search is used. It raises ValueError if the artifact has no
        search with this number of beams or rejects a sentence, and RuntimeError if the runtime
        fails.
        """
        beam_size = beam_size or self.beam_size
        self.check_beam_size(beam_size)
        return [best.text for best, *_ in self._search(sentences, beam_size, 1)]

    def n_best(
        self, sentences: Sequence[str], beam_size: int | None = None
    ) -> list[list[Translation]]:
        """Return up to `beam_size` translations of each sentence with their scores, best first.

        A blank sentence gets a single empty translation. Arguments and errors are those of
        `translate`.
        """
        beam_size = beam_size or self.beam_size
        self.check_beam_size(beam_size)
        return self._search(sentences, beam_size, beam_size)

    def check_beam_size(self, beam_size: int) -> None:
        """Raise ValueError if the artifact has no search with this number of beams."""
        if not self.searches_with_any_beam_size and beam_size not in (1, self.beam_size):
            raise ValueError(
                f"the export has no search with {beam_size} beams; export the run again with "
                f"--beam-size {beam_size}"
            )

    def continuations(
        self, sentences: Sequence[str], prefixes: Sequence[str], count: int = CONTINUATIONS
    ) -> list[list[Translation]]:
        """Translate sentences with given beginnings, in several ways.

        Args:
            sentences: B texts, truncated to `max_tokens`.
            prefixes: B texts, the beginnings of the translations; one may be empty.
            count: Maximum number of translations of each sentence; an export finds at most
                `CONTINUATIONS`.

        Returns:
            For each sentence the translations that begin with its prefix and continue with the most
            likely pieces, best first; see `Translator.continuations`. The score is the
            log-probability in nats of the piece after the prefix.

        Raises:
            ValueError: `check_prefixes` refuses a prefix, or the numbers of sentences and prefixes
                differ.
        """
        self.check_prefixes(prefixes)
        check_pairs(sentences, prefixes)
        require_size("count", count)
        return [row[:count] for row in self._continued(sentences, prefixes, count)]

    def check_prefixes(self, prefixes: Sequence[str]) -> None:
        """Raise ValueError if the artifact cannot continue these beginnings of translations.

        It may lack the signature `PREFIX`; a prefix may be too long, or have a character that the
        vocabulary lacks.
        """
        if PREFIX not in self.signatures:
            raise ValueError(
                "this artifact cannot continue the beginning of a translation; use its run, or "
                "export it again as saved_model, or as litert with --beam-size"
            )
        if self.tokenizers:
            encode_prefixes(self.tokenizers.target, prefixes, self.max_tokens + 1)

    @property
    def can_align(self) -> bool:
        """Whether the artifact can align words."""
        return ALIGN in self.manifest.get("signatures", {})

    def aligned(self, sentences: Sequence[str], translations: Sequence[str]) -> list[Aligned]:
        """Return the attention and the probability of each token of given translations.

        The probabilities of a calibrated run are scaled by its temperature. Sentences and
        translations are truncated to `max_tokens`. It raises ValueError if the artifact cannot
        align words, or the numbers of sentences and translations differ.
        """
        if not self.can_align:
            raise ValueError(
                "the export has no word alignments; export the run again as saved_model or litert, "
                "or use the run directory"
            )
        check_pairs(sentences, translations)
        target = self._tokenizers.target
        targets = [row[: self.max_tokens] for row in target.encode(list(translations))]
        return align_pairs(self._tokenizers, self._encoded(sentences), targets, self._align_ids)

    def nearest_targets(
        self, sentences: Sequence[str], translations: Sequence[str]
    ) -> list[Alignment]:
        """Link the words of each pair, see `Aligned.nearest_targets`."""
        return [pair.nearest_targets() for pair in self.aligned(sentences, translations)]

    def stream(
        self,
        sentences: Iterable[str],
        beam_size: int,
        advance: Advance = lambda count: None,
    ) -> Iterator[list[list[Translation]]]:
        """Yield `n_best` of a text of any length, `chunk` sentences at a time.

        `advance` is called after each portion of sentences of similar length. One warning at the
        end counts the sentences that were truncated.
        """
        total = truncated = 0
        for chunk in in_batches(sentences, self.chunk):
            lengths = self.count_tokens(chunk) if self.tokenizers else [0] * len(chunk)
            truncated += sum(length > self.max_tokens for length in lengths)
            total += len(chunk)
            translations: list[list[Translation]] = [[] for _ in chunk]
            order = sorted(range(len(chunk)), key=lengths.__getitem__)
            for numbers in in_batches(order, self.portion):
                n_best = self.n_best([chunk[number] for number in numbers], beam_size)
                for number, best in zip(numbers, n_best, strict=True):
                    translations[number] = best
                advance(len(numbers))
            yield translations
        warn_if_truncated(truncated, total, self.max_tokens, stacklevel=1)

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> Arrays:
        """Run one of `signatures`, with the semantics of TensorFlow Serving's API.

        Inputs and outputs are arrays with the batch first; text is an object array of bytes.
        """
        texts = [text.decode("utf-8", "replace") for text in inputs["text"]]
        if signature == GREEDY:
            best = [hypotheses[0] for hypotheses in self.n_best(texts, beam_size=1)]
            return {
                "translation": np.array([hypothesis.text.encode() for hypothesis in best], object),
                "score": np.array([hypothesis.score for hypothesis in best], np.float32),
            }
        if signature == PREFIX:
            prefixes = [prefix.decode("utf-8", "replace") for prefix in inputs["prefix"]]
            continued = self.continuations(texts, prefixes)
            translations, log_probs = _in_slots(continued, CONTINUATIONS)
            return {"translations": translations, "probabilities": np.exp(log_probs)}
        translations, scores = _in_slots(self.n_best(texts), self.beam_size)
        return {"translations": translations, "scores": scores}

    def close(self) -> None:  # noqa: B027  most engines have nothing to free
        """Free the threads of the engine; it cannot be called afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        """Find at least `count` translations of each sentence, or all that are in the beam."""

    def _continued(
        self, sentences: Sequence[str], prefixes: Sequence[str], count: int
    ) -> list[list[Translation]]:
        """Find `count` translations with each prefix; for artifacts with the signature `PREFIX`."""
        raise NotImplementedError

    def _align_ids(self, sources: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities (B, T) and attention (B, T, S) of ids padded with 0."""
        inputs = {"ids": sources, "target_ids": targets}
        for name, ids in (("lengths", sources), ("target_lengths", targets)):
            inputs[name] = np.count_nonzero(ids, axis=1).astype(np.int32) - 1  # without end tokens
        outputs = self.run(ALIGN, inputs)
        return outputs["log_probs"], outputs["attention"]

    @property
    def _tokenizers(self) -> Tokenizers:
        if self.tokenizers is None:
            raise ValueError("the artifact contains no tokenizer; export the run again")
        return self.tokenizers

    def _encoded(self, sentences: Sequence[str]) -> list[list[int]]:
        """The source ids of sentences, at most `max_tokens` each."""
        characters = CHARACTERS_PER_TOKEN * (self.max_tokens + 1)
        rows = self._tokenizers.source.encode([sentence[:characters] for sentence in sentences])
        return [row[: self.max_tokens] for row in rows]


def as_text(value: Any) -> Any:
    """Return a value of nested lists with its bytes decoded to text."""
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _in_slots(rows: Sequence[Sequence[Translation]], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts and scores of B rows as arrays (B, `count`)."""
    shape = len(rows), count
    texts, scores = np.full(shape, b"", object), np.full(shape, NO_TRANSLATION, np.float32)
    for row, translations in enumerate(rows):
        for rank, translation in enumerate(translations):
            texts[row, rank] = translation.text.encode()
            scores[row, rank] = translation.score
    return texts, scores
