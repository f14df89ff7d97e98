"""Strings in, strings out: tokenizers, model and search put together. Knows no exported format."""

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfformer.config import DecodingConfig
from tfformer.data.batches import like_length_batches
from tfformer.data.encoding import IdRows
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.graphs import draw_sample, search, token_log_probs
from tfformer.inference.search import LOWEST, Hypotheses, check_sampling
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run, Tokenizers
from tfformer.special_ids import END_ID

DAMAGED = "the model gives a sentence no finite score: its weights are damaged; train again"


class Translation(NamedTuple):
    """A sentence and its score: log-probability in nats over the length penalty."""

    text: str
    score: float


class ForcedScore(NamedTuple):
    """What the model thinks of a given translation: log P(token | source, tokens before it) of each of its tokens.

    The last token is the end token; there are none at all where the source is blank, as nothing is predicted there.
    """

    tokens: tuple[str, ...]  # pieces of words
    log_probs: np.ndarray  # (T,) float32, nats

    @property
    def log_prob(self) -> float:
        """log P(target | source) in nats."""
        return float(self.log_probs.sum(dtype=np.float64))

    @property
    def perplexity(self) -> float:
        """e to the mean negative log-probability of a token; nan where there are no tokens."""
        return math.exp(-self.log_prob / len(self.tokens)) if self.tokens else math.nan


class CutSentences(UserWarning):
    """Some sentences had more tokens than the model takes."""

    def __init__(self, cut: int, sentences: int, most: int):
        super().__init__(
            f"{cut} of {sentences} sentences had more than {most} tokens, the model's most, and were cut"
        )
        self.cut = cut
        self.most = most


def encode_cut(
    tokenizer: Tokenizer, sentences: Sequence[str], most: int, stacklevel: int
) -> list[list[int]]:
    """Ids of the sentences, each cut to `most` tokens, with a warning that says how many were."""
    ids = tokenizer.encode(sentences)
    if too_long := sum(len(sentence) > most for sentence in ids):
        warnings.warn(CutSentences(too_long, len(ids), most), stacklevel=stacklevel)
    return [sentence[:most] for sentence in ids]


class Translator:
    """A trained model that translates lists of sentences."""

    def __init__(
        self, model: Transformer, tokenizers: Tokenizers, decoding: DecodingConfig, max_length: int
    ):
        self.model = model
        self.tokenizers = tokenizers
        self.decoding = decoding
        self.max_length = max_length
        self._graphs: dict[tuple, tf.types.experimental.PolymorphicFunction] = {}

    @classmethod
    def load(cls, run: str | Path) -> "Translator":
        """From a run directory, with the run's best weights and its own decoding settings."""
        return cls.of(Run.open(run))

    @classmethod
    def of(cls, run: Run) -> "Translator":
        """From an opened run."""
        run.check_architecture("encoder-decoder")
        config = run.config
        return cls(run.load_model(), run.tokenizers, config.decoding, config.data.max_length)

    def translate(
        self,
        sentences: Sequence[str],
        beam_size: int | None = None,
        length_penalty: float | None = None,
    ) -> list[str]:
        """The best translation of each sentence; a blank sentence gives an empty one."""
        return [
            translations[0].text
            for translations in self.n_best(sentences, beam_size, length_penalty)
        ]

    def n_best(
        self,
        sentences: Sequence[str],
        beam_size: int | None = None,
        length_penalty: float | None = None,
        batch_size: int = 64,
    ) -> list[list[Translation]]:
        """Up to `beam_size` translations of each sentence, best first.

        Sentences of like length are decoded together, `batch_size` at a time. One that has more tokens than the model
        was trained for is cut, with a warning that says how many were.
        """
        beam_size = self.decoding.beam_size if beam_size is None else beam_size
        length_penalty = self.decoding.length_penalty if length_penalty is None else length_penalty
        if beam_size < 1:
            raise ValueError(f"beam_size={beam_size} must be at least 1")
        if not 0 <= length_penalty < math.inf:
            raise ValueError(f"length_penalty={length_penalty} must be a number from 0 on")
        form = self.decoding.length_normalization
        graph = self._graph(search, (beam_size, length_penalty, None, form))
        return self._in_batches(self._sources(sentences), batch_size, lambda ids, first: graph(ids))

    def sample(
        self,
        sentences: Sequence[str],
        seed: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        batch_size: int = 64,
    ) -> list[str]:
        """A random translation of each sentence (see `decoding.sample`); the same arguments give the same ones.

        The draws of a sentence depend on its place in its batch, and so on the other sentences.
        """
        check_sampling(temperature, top_k, top_p)
        graph = self._graph(draw_sample, (temperature, top_k, top_p), tf.TensorSpec((), tf.int32))
        found = self._in_batches(
            self._sources(sentences), batch_size, lambda ids, first: graph(ids, seed + first)
        )
        return [translations[0].text for translations in found]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 2048
    ) -> list[ForcedScore]:
        """How likely the model thinks each target is as the translation of its source, token by token.

        Pairs of like length are computed together, up to `batch_tokens` target tokens at a time. A sentence that has
        more tokens than the model was trained for is cut, with a warning; a blank source gives no tokens, a blank
        target the end token alone. ValueError where there are not as many targets as sources.
        """
        if len(sources) != len(targets):
            raise ValueError(
                f"{len(sources)} sources and {len(targets)} targets do not make pairs; give one for each"
            )
        source_ids = self._sources(sources)
        most = self.max_length - 1
        target_ids = [
            [*ids, END_ID]
            for ids in encode_cut(self.tokenizers.target, targets, most, stacklevel=3)
        ]
        found = [ForcedScore((), np.zeros(0, np.float32)) for _ in sources]
        order = [
            n for n in sorted(range(len(found)), key=lambda n: len(target_ids[n])) if source_ids[n]
        ]
        for batch in _batches(order, [len(ids) for ids in target_ids], batch_tokens):
            rows = [
                IdRows.of([ids[n] for n in batch]).padded(range(len(batch)))
                for ids in (source_ids, target_ids)
            ]
            for n, log_probs in zip(batch, self._token_log_probs(*rows).numpy(), strict=True):
                tokens = self.tokenizers.target.pieces(target_ids[n])
                found[n] = ForcedScore(tuple(tokens), _checked_finite(log_probs[: len(tokens)]))
        return found

    def _in_batches(
        self,
        sources: list[list[int]],
        batch_size: int,
        find: Callable[[np.ndarray, int], Hypotheses],
    ) -> list[list[Translation]]:
        """`find(ids, number of the first)` over sentences of like length, back in their order."""
        found = [[Translation("", 0.0)] for _ in sources]
        for batch, (numbers, ids) in enumerate(like_length_batches(sources, batch_size)):
            hypotheses = find(ids, batch * batch_size)
            for number, translations in zip(numbers, self._decode(hypotheses), strict=True):
                found[number] = translations
        return found

    def _sources(self, sentences: Sequence[str]) -> list[list[int]]:
        """Ids with the end token, cut to the model's length; no ids for a blank sentence."""
        encoded = encode_cut(self.tokenizers.source, sentences, self.max_length - 1, stacklevel=4)
        return [[*ids, END_ID] if ids else [] for ids in encoded]

    def _decode(self, hypotheses: Hypotheses) -> list[list[Translation]]:
        ids, _, scores = (tensor.numpy() for tensor in hypotheses)
        texts = iter(self.tokenizers.target.decode(ids.reshape(-1, ids.shape[-1])))
        rows = [[Translation(next(texts), float(score)) for score in row] for row in scores]
        found = [
            [translation for translation in row if translation.score > LOWEST / 2] for row in rows
        ]
        if not all(found):
            raise ValueError(DAMAGED)
        return found

    @functools.cached_property
    def _token_log_probs(self) -> tf.types.experimental.PolymorphicFunction:
        ids = tf.TensorSpec((None, None), tf.int32)
        return tf.function(
            functools.partial(token_log_probs, self.model), input_signature=[ids, ids]
        )

    def _graph(
        self, find: Callable[..., Hypotheses], settings: tuple, *more: tf.TensorSpec
    ) -> tf.types.experimental.PolymorphicFunction:
        """`find(model, source, max_length, *more, *settings)` as one graph for any batch, traced once."""
        if (find, settings) not in self._graphs:
            self._graphs[find, settings] = tf.function(
                lambda source, *inputs: find(
                    self.model, source, self.max_length, *inputs, *settings
                ),
                input_signature=[tf.TensorSpec((None, None), tf.int32), *more],
            )
        return self._graphs[find, settings]


def _batches(
    order: Sequence[int], lengths: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """The numbers in `order`, shortest first, in groups of up to `batch_tokens` tokens with the padding."""
    batch = []
    for n in order:
        if batch and (len(batch) + 1) * lengths[n] > batch_tokens:
            yield batch
            batch = []
        batch.append(n)
    if batch:
        yield batch


def _checked_finite(log_probs: np.ndarray) -> np.ndarray:
    if not np.isfinite(log_probs).all():
        raise ValueError(DAMAGED)
    return log_probs
