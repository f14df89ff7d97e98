"""A language model over strings: the probability of a text, and its continuation.

Shape letters: B texts, R prefixes, P tokens of the longest prefix.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.batches import like_length_batches
from tfformer.data.encoding import (
    EncodedSentences,
    Sentences,
    encode_truncated,
    in_batches,
    pad,
    warn_of_truncation,
)
from tfformer.data.sources import Row
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.graphs import continue_prefixes
from tfformer.inference.search import Hypotheses, check_sampling, greedy_search, sample
from tfformer.inference.text_model import SAMPLES, Measured, TextModel
from tfformer.model.language_model import LanguageModel
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.runtime.tracing import traced
from tfformer.special_ids import END_ID, START_ID


class Sampling(NamedTuple):
    """Settings of `search.sample`."""

    temperature: float
    top_k: int
    top_p: float


class Continuation(NamedTuple):
    """A prefix with its continuation."""

    text: str  # the prefix and its continuation
    score: float  # the log-probability of the continuation in nats, the end token included


class Generator(TextModel):
    """A trained language model that scores and continues lists of texts.

    Every method accepts texts, or the result of `encode`. Texts that are too long for the model are
    truncated, with one warning per call. If you call `encode` yourself, there is no warning; the
    number of truncated texts is in its result.

    Args:
        model: The model.
        tokenizer: The tokenizer.
        max_length: Maximum number of tokens per text, including the end token.

    Example:
        This model is untrained; `Generator.load("my_run")` returns a trained one.

        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
        >>> model = tfformer.LanguageModel(9, num_layers=1, d_model=8, num_heads=2, d_ff=8)
        >>> generator = tfformer.Generator(model, tokenizer, max_length=8)
        >>> [log_prob] = generator.log_prob(["a b"])
        >>> log_prob < 0
        True
        >>> [continuation] = generator.complete(["a b"])
        >>> continuation.text.startswith("a b")
        True
    """

    architecture = "decoder"
    model: LanguageModel

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, *, max_length: int = 128
    ) -> None:
        if tokenizer.vocab_size != model.vocab_size:
            raise ValueError(
                f"a tokenizer of {tokenizer.vocab_size} pieces does not fit a model for "
                f"{model.vocab_size}; pass the tokenizer that the model was trained with"
            )
        self.model = model
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self._graphs: dict[Sampling | None, tf.types.experimental.PolymorphicFunction] = {}
        ids = tf.TensorSpec((None, None), tf.int32)
        self._log_prob = traced(lambda rows: model.log_prob(rows), input_signature=[ids])

    @classmethod
    def load(cls, run: str | Path) -> "Generator":
        """Load the run directory of a language model, with its best weights.

        Args:
            run: The run directory of a language model.

        Raises:
            FileNotFoundError: The folder, or a file in it, is missing.
            ValueError: A file is damaged, or the run contains a translation model.
        """
        return cls.of(Run.open(run))

    @classmethod
    def for_recipe(cls, model: Model, tokenizers: Tokenizers, config: Config) -> Self:
        """Return a generator for a model, with the length limit of a recipe."""
        assert isinstance(model, LanguageModel)
        return cls(model, tokenizers.target, max_length=config.data.max_length)

    def with_model(self, model: Model) -> Self:
        """Return a copy with another model, which has the same vocabulary."""
        assert isinstance(model, LanguageModel)
        return type(self)(model, self.tokenizer, max_length=self.max_length)

    def measure(self, rows: Sequence[Row], config: Config) -> Measured:
        """Return bits per byte of the non-blank sentences, and samples from the model."""
        sentences = [sentence for (sentence,) in rows if sentence.strip()]
        drawn = self.sample([""] * SAMPLES, seed=1)
        figures = {"val_bits_per_byte": self.bits_per_byte(sentences)}
        return Measured(figures, [continuation.text for continuation in drawn])

    def encode(self, sentences: Sentences) -> EncodedSentences:
        """Encode texts, truncated to the model's length.

        Args:
            sentences: B texts; encoded sentences are returned unchanged.

        Returns:
            Ids without start and end, and which texts were truncated.

        Raises:
            ValueError: A sentence is not Unicode text.
        """
        return encode_truncated(self.tokenizer, sentences, self.max_length - 1)

    def log_prob(self, sentences: Sentences, batch_size: int = 64) -> list[float]:
        """Compute the log-probability of each sentence, including the end token.

        Only the tokenizer's segmentation counts; the probabilities of other segmentations are left
        out.

        Args:
            sentences: B texts, or the result of `encode`.
            batch_size: Number of sentences of similar length that are computed together.

        Returns:
            log p of each sentence in nats.

        Raises:
            ValueError: A sentence is not Unicode text.
        """
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        rows = [[*ids, END_ID] for ids in encoded.ids]
        log_probs = np.zeros(len(rows))
        for numbers, ids in like_length_batches(rows, batch_size):
            log_probs[numbers] = self._log_prob(ids)
        return log_probs.tolist()

    def bits_per_byte(self, sentences: Sequence[str]) -> float:
        """Compute the bits per byte of a text with one sentence per line.

        The result is -log2 p divided by the size of the text as a UTF-8 file with newlines. Models
        with different vocabularies can be compared by it, but a character without a piece costs a
        model no more than any unknown token. Sentences longer than the model's limit are left
        out, with a warning.

        Args:
            sentences: B texts.

        Returns:
            Bits per byte; lower is better.

        Raises:
            ValueError: Every sentence is too long, or a sentence is not Unicode text.
        """
        encoded = self.encode(sentences)
        kept = [n for n, is_truncated in enumerate(encoded.is_truncated) if not is_truncated]
        if encoded.truncated:
            too_long = (
                f"{encoded.truncated} of {len(sentences)} sentences had more than "
                f"{encoded.max_tokens} tokens, the model's limit"
            )
            if not kept:
                raise ValueError(f"{too_long}; use shorter lines")
            warnings.warn(f"{too_long}, and were left out", stacklevel=2)
        nats = -math.fsum(self.log_prob(encoded.take(kept)))
        size = sum(len(sentences[n].encode()) + 1 for n in kept)  # in bytes
        return nats / math.log(2) / size

    def complete(self, prefixes: Sentences, batch_size: int = 64) -> list[Continuation]:
        """Continue each prefix with the most likely token at each step.

        Args:
            prefixes: R texts, or the result of `encode`; an empty prefix begins a sentence.
            batch_size: Number of prefixes that are continued together.

        Returns:
            The prefixes with their continuations, and the log-probabilities of the continuations in
            nats.

        Raises:
            ValueError: A prefix is not Unicode text.
        """
        encoded = self.encode(prefixes)
        warn_of_truncation([prefixes], [encoded], stacklevel=2)
        return self._continue(encoded, batch_size)

    def sample(
        self,
        prefixes: Sentences,
        seed: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        batch_size: int = 64,
    ) -> list[Continuation]:
        """Continue each prefix at random; the same arguments return the same texts.

        Different batches, and calls with different seeds, draw independently.

        Args:
            prefixes: R texts, or the result of `encode`; an empty prefix begins a sentence.
            seed: From 0 to 2^31 - 1.
            temperature: Above 0; values near 0 approach `complete`.
            top_k: If above 0, only the k most likely tokens may be drawn.
            top_p: If below 1, only the smallest set of most likely tokens whose probabilities add
                up to at least p may be drawn.
            batch_size: Number of prefixes that are continued together.

        Returns:
            The whole texts and the log-probabilities of their continuations in nats, under the
            unmodified distribution.

        Raises:
            ValueError: A setting is invalid, or a prefix is not Unicode text.
        """
        check_sampling(seed, temperature, top_k, top_p)
        encoded = self.encode(prefixes)
        warn_of_truncation([prefixes], [encoded], stacklevel=2)
        return self._continue(encoded, batch_size, seed, Sampling(temperature, top_k, top_p))

    def _continue(
        self,
        prefixes: EncodedSentences,
        batch_size: int,
        seed: int = 0,
        sampling: Sampling | None = None,
    ) -> list[Continuation]:
        rows = [[START_ID, *ids] for ids in prefixes.ids]
        graph = self._graph(sampling)
        continuations: list[Continuation] = []
        for batch, batch_rows in enumerate(in_batches(rows, batch_size)):
            ids = pad(batch_rows)  # (R, P)
            lengths = np.array([len(row) for row in batch_rows], np.int32)
            hypotheses = graph(ids, lengths, seed, batch)
            texts = self.tokenizer.decode(hypotheses.ids[:, 0].numpy())
            scores = hypotheses.scores[:, 0].numpy().tolist()
            continuations += map(Continuation, texts, scores)
        return continuations

    def _graph(self, sampling: Sampling | None) -> tf.types.experimental.PolymorphicFunction:
        """Return the traced function: prefixes (R, P), lengths (R,), seed, batch -> sequences."""

        def continued(
            prefixes: tf.Tensor, lengths: tf.Tensor, seed: tf.Tensor, batch: tf.Tensor
        ) -> Hypotheses:
            search_fn: Callable[..., Hypotheses] = greedy_search
            if sampling is not None:
                search_fn = functools.partial(sample, seed=seed, batch=batch, **sampling._asdict())
            return continue_prefixes(self.model, prefixes, lengths, self.max_length, search_fn)

        if sampling not in self._graphs:
            shapes = ((None, None), (None,), (), ())
            signature = [tf.TensorSpec(shape, tf.int32) for shape in shapes]
            self._graphs[sampling] = traced(continued, input_signature=signature)
        return self._graphs[sampling]
