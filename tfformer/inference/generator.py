"""A language model over strings: the probability of a text, and its continuation.

Shape letters: B texts, R prefixes, P tokens of the longest prefix.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.config import Config
from tfformer.data.batches import like_length_batches
from tfformer.data.encoding import EncodedSentences, Sentences, in_batches, pad, warn_of_truncation
from tfformer.data.sources import Row
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.graphs import continue_prefixes
from tfformer.inference.search import Hypotheses, check_sampling, greedy_search, sample
from tfformer.inference.text_model import SAMPLES, Measured, TextModel, check_finite, check_size
from tfformer.model.language_model import LanguageModel
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.special_ids import END_ID, START_ID

LENGTHS, NUMBER = tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int32)


class Continuation(NamedTuple):
    """A prefix with its continuation."""

    text: str  # the prefix and its continuation
    score: float  # the log-probability of the continuation in nats, the end token included


class Generator(TextModel):
    """A trained language model that scores and continues lists of texts.

    `log_prob`, `complete` and `sample` accept texts, or the result of `encode`. Texts that are too
    long for the model are truncated, with one warning per call. If you call `encode` yourself, its
    result contains their number, and there is no warning.

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
        check_size(tokenizer, model.vocab_size)
        self.model = model
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.tokenizer = tokenizer
        self.max_length = require_size("max_length", max_length, least=2)
        self._graphs = {}

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
            ValueError: A sentence is not Unicode text, or the weights are damaged.
        """
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        rows = [[*ids, END_ID] for ids in encoded.ids]
        graph = self._graph(type(self.model).log_prob)
        log_probs = np.zeros(len(rows))
        for numbers, ids in like_length_batches(rows, batch_size):
            log_probs[numbers] = graph(ids)
        check_finite(log_probs)
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
            ValueError: No sentence is short enough, a sentence is not Unicode text, or the weights
                are damaged.
        """
        encoded = self.encode(sentences)
        kept = [n for n, is_truncated in enumerate(encoded.is_truncated) if not is_truncated]
        too_long = (
            f"{encoded.truncated} of {len(sentences)} sentences had more than {encoded.max_tokens} "
            "tokens, the model's limit"
        )
        if not kept:
            raise ValueError(f"no sentence can be measured: {too_long}; use more or shorter lines")
        if encoded.truncated:
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
            ValueError: A prefix is not Unicode text, or the weights are damaged.
        """
        encoded = self.encode(prefixes)
        warn_of_truncation([prefixes], [encoded], stacklevel=2)
        settings = {"max_length": self.max_length, "search_fn": greedy_search}
        graph = self._graph(continue_prefixes, LENGTHS, **settings)
        return self._continue(encoded, batch_size, lambda ids, lengths, batch: graph(ids, lengths))

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
            ValueError: A setting is invalid, a prefix is not Unicode text, or the weights are
                damaged.
        """
        check_sampling(seed, temperature, top_k, top_p)
        encoded = self.encode(prefixes)
        warn_of_truncation([prefixes], [encoded], stacklevel=2)
        graph = self._graph(
            _sampled,
            LENGTHS,
            NUMBER,
            NUMBER,
            max_length=self.max_length,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        return self._continue(
            encoded, batch_size, lambda ids, lengths, batch: graph(ids, lengths, seed, batch)
        )

    def _continue(
        self,
        prefixes: EncodedSentences,
        batch_size: int,
        search: Callable[[np.ndarray, np.ndarray, int], Hypotheses],
    ) -> list[Continuation]:
        """Continue prefixes with `search(ids, lengths, batch_number)`."""
        rows = [[START_ID, *ids] for ids in prefixes.ids]
        continuations: list[Continuation] = []
        for batch, batch_rows in enumerate(in_batches(rows, batch_size)):
            ids = pad(batch_rows)  # (R, P)
            lengths = np.array([len(row) for row in batch_rows], np.int32)
            hypotheses = search(ids, lengths, batch)
            texts = self.tokenizer.decode(hypotheses.ids[:, 0].numpy())
            scores = hypotheses.scores[:, 0].numpy()
            check_finite(scores)
            continuations += map(Continuation, texts, scores.tolist())
        return continuations


def _sampled(
    model: LanguageModel,
    prefixes: tf.Tensor,
    lengths: tf.Tensor,
    seed: tf.Tensor,
    batch: tf.Tensor,
    max_length: int,
    **settings: Any,
) -> Hypotheses:
    """Continue prefixes (R, P) at random; `settings` are those of `sample`."""
    draw = functools.partial(sample, seed=seed, batch=batch, **settings)
    return continue_prefixes(model, prefixes, lengths, max_length, draw)
