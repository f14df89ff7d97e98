"""A language model over strings: the probability of a text, and its continuation. Knows no file format of the exports.

Shape letters: R prefixes, P the longest of them, L tokens, V vocabulary.
"""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfformer.data.batches import like_length_batches
from tfformer.data.encoding import IdRows
from tfformer.inference.graphs import continue_prefixes
from tfformer.inference.search import Hypotheses, check_sampling, greedy_search, sample
from tfformer.inference.translator import encode_cut
from tfformer.model.language_model import LanguageModel
from tfformer.run_directory import Run, Tokenizers
from tfformer.special_ids import END_ID, START_ID


class Continuation(NamedTuple):
    """A text from its prefix on, and the log-probability in nats of what follows the prefix."""

    text: str
    score: float


class Generator:
    """A trained language model that scores and continues lists of texts."""

    def __init__(self, model: LanguageModel, tokenizers: Tokenizers, max_length: int):
        self.model = model
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.target
        self.max_length = max_length
        self._graphs: dict[tuple | None, tf.types.experimental.PolymorphicFunction] = {}
        self._log_prob = tf.function(
            model.log_prob, input_signature=[tf.TensorSpec((None, None), tf.int32)]
        )

    @classmethod
    def load(cls, run: str | Path) -> "Generator":
        """From the run directory of a language model, with the run's best weights."""
        return cls.of(Run.open(run))

    @classmethod
    def of(cls, run: Run) -> "Generator":
        """From an opened run."""
        run.check_architecture("decoder")
        return cls(run.load_model(), run.tokenizers, run.config.data.max_length)

    def log_prob(self, sentences: Sequence[str], batch_size: int = 64) -> list[float]:
        """log p of each sentence in nats, its end included, in the pieces that the tokenizer cuts it into.

        A sentence with more tokens than the model was trained for is cut, with a warning.
        """
        found = np.zeros(len(sentences))
        for numbers, ids in like_length_batches(
            [[*ids, END_ID] for ids in self._encode(sentences)], batch_size
        ):
            found[numbers] = self._log_prob(ids)
        return found.tolist()

    def bits_per_byte(self, sentences: Sequence[str]) -> float:
        """-log2 p of a text of one sentence a line, over its size as a UTF-8 file: a line's end is its newline.

        It compares models whatever their vocabularies; one without a piece for a character gets that character as
        cheaply as any other unknown one. Sentences longer than the model takes are left out, with a warning; ValueError
        if none is left.
        """
        lengths, most = map(len, self.tokenizer.encode(sentences)), self.max_length - 1
        kept = [
            sentence for sentence, length in zip(sentences, lengths, strict=True) if length <= most
        ]
        if left_out := len(sentences) - len(kept):
            what = f"{left_out} of {len(sentences)} sentences had more than {most} tokens, the model's most"
            if not kept:
                raise ValueError(f"{what}; give shorter lines")
            warnings.warn(f"{what}, and were left out", stacklevel=2)
        nats = -math.fsum(self.log_prob(kept))
        return nats / math.log(2) / sum(len(sentence.encode()) + 1 for sentence in kept)

    def complete(self, prefixes: Sequence[str], batch_size: int = 64) -> list[Continuation]:
        """Each prefix with the likeliest token at each step after it; an empty one begins a sentence."""
        return self._continue(prefixes, batch_size)

    def sample(
        self,
        prefixes: Sequence[str],
        seed: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        batch_size: int = 64,
    ) -> list[Continuation]:
        """Each prefix with a random continuation (see `decoding.sample`); the same arguments give the same ones."""
        check_sampling(temperature, top_k, top_p)
        return self._continue(prefixes, batch_size, seed, (temperature, top_k, top_p))

    def _continue(
        self, prefixes: Sequence[str], batch_size: int, seed: int = 0, sampling: tuple | None = None
    ) -> list[Continuation]:
        rows = [[START_ID, *ids] for ids in self._encode(prefixes)]
        found = []
        for first in range(0, len(rows), batch_size):
            batch = IdRows.of(rows[first : first + batch_size])
            ids, lengths = batch.padded(range(len(batch))), batch.lengths.astype(np.int32)
            sequences = self._graph(sampling)(ids, lengths, seed + first)
            texts = self.tokenizer.decode(sequences.ids[:, 0].numpy())
            found += map(Continuation, texts, sequences.scores[:, 0].numpy().tolist())
        return found

    def _graph(self, sampling: tuple | None) -> tf.types.experimental.PolymorphicFunction:
        """Prefixes (R, P), lengths (R,), seed -> the likeliest or, with settings, sampled sequences; traced once."""

        def continued(prefixes: tf.Tensor, lengths: tf.Tensor, seed: tf.Tensor) -> Hypotheses:
            search = (lambda *steps: sample(*steps, seed, *sampling)) if sampling else greedy_search
            return continue_prefixes(self.model, prefixes, lengths, self.max_length, search)

        if sampling not in self._graphs:
            signature = [tf.TensorSpec(shape, tf.int32) for shape in ((None, None), (None,), ())]
            self._graphs[sampling] = tf.function(continued, input_signature=signature)
        return self._graphs[sampling]

    def _encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Ids without start and end token, cut to what the model takes with its end token."""
        return encode_cut(self.tokenizer, sentences, self.max_length - 1, stacklevel=4)
