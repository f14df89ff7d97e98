"""Writes a translator or a generator as a TensorFlow SavedModel, over text and over ids. Knows no run directory.

Every input and output has the batch first; batch and lengths are dynamic, so a server may put requests together.
Shape letters: B sentences, S source tokens, T target tokens, N beams.
"""

import functools
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tfformer.data.tokenizers import Tokenizer
from tfformer.export import warmup_requests
from tfformer.inference.generator import Generator
from tfformer.inference.graphs import (
    continue_prefixes,
    search,
    source_ids,
    token_log_probs,
    with_end,
)
from tfformer.inference.search import Hypotheses, greedy_search
from tfformer.inference.translator import Translator
from tfformer.model.token_model import ToLogits
from tfformer.run_directory import first_line
from tfformer.special_ids import END_ID, PAD_ID, START_ID

FIRST_TEXT = b"This is the first request."
CHARACTERS_PER_TOKEN = 64  # read of a text, for each token the model takes; a piece has up to 16


def write(folder: Path, written: Translator | Generator, with_text: bool) -> None:
    """Fill the empty `folder`; without text there is no operation that core TensorFlow lacks. OSError if it cannot."""
    holder = tf.Module()
    holder.weights = [
        weight.value for weight in written.model.weights
    ]  # Keras' own tracking: C++ cannot read it
    embeddings = written.model.output_embedding.embeddings  # (V, D)
    # A second copy, as (D, V): every step multiplies with it, and reads it faster in that order.
    holder.output_kernel = tf.Variable(tf.transpose(embeddings), trainable=False)
    to_logits = functools.partial(written.model.logits, kernel=holder.output_kernel)
    try:
        signatures_of_graphs = _signatures(written, to_logits, with_text)
        tf.saved_model.save(holder, str(folder), signatures=signatures_of_graphs)
        warmup_requests.write(folder, _first_requests(signatures(folder)))
    except tf.errors.OpError as error:
        raise OSError(
            f"{folder.parent} cannot be written to ({first_line(error)}); free some space"
        ) from None


def _first_requests(signatures: dict[str, dict]) -> dict[str, dict[str, np.ndarray]]:
    """A small request for each signature: the first is slow, as TensorFlow then prepares the graph."""
    text, ids = np.array([FIRST_TEXT], object), np.array([[END_ID + 1]], np.int32)
    values = {"ids": ids, "lengths": np.array([1], np.int32)} | dict.fromkeys(
        ("text", "source", "target"), text
    )
    return {
        name: {given: values[given] for given in described["inputs"]}
        for name, described in signatures.items()
    }


def signatures(folder: Path) -> dict[str, dict]:
    """What a written SavedModel answers to: signature -> inputs and outputs -> name -> dtype and shape."""
    graph = saved_model_pb2.SavedModel.FromString(
        (folder / "saved_model.pb").read_bytes()
    ).meta_graphs[0]
    return {
        name: {"inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs)}
        for name, signature in sorted(graph.signature_def.items())
        if not name.startswith("__")  # the initialisation
    }


def _tensors(tensors) -> dict[str, dict]:
    return {
        name: {
            "dtype": tf.as_dtype(tensor.dtype).name,
            "shape": tf.TensorShape(tensor.tensor_shape).as_list(),
        }
        for name, tensor in sorted(tensors.items())
    }


def _signatures(written: Translator | Generator, to_logits: ToLogits, with_text: bool) -> dict:
    functions = _continuing if isinstance(written, Generator) else _translating
    over_ids, over_text = functions(written, to_logits)
    return over_ids | over_text if with_text else over_ids


def _translating(translator: Translator, to_logits: ToLogits) -> tuple[dict, dict]:
    """The signatures of a translator over ids, and those over text."""
    calls = _Translating(translator, to_logits)
    text, source, target = (
        tf.TensorSpec((None,), tf.string, name) for name in ("text", "source", "target")
    )
    ids, lengths = (
        tf.TensorSpec((None, None), tf.int32, "ids"),
        tf.TensorSpec((None,), tf.int32, "lengths"),
    )
    return {"translate_ids": tf.function(calls.translate_ids, input_signature=[ids, lengths])}, {
        "serving_default": tf.function(calls.translate, input_signature=[text]),
        "translate_beam": tf.function(calls.translate_beam, input_signature=[text]),
        "score": tf.function(calls.score, input_signature=[source, target]),
    }


def _continuing(generator: Generator, to_logits: ToLogits) -> tuple[dict, dict]:
    """The signatures of a language model over ids, and those over text."""
    calls = _Continuing(generator, to_logits)
    text = tf.TensorSpec((None,), tf.string, "text")
    ids, lengths = (
        tf.TensorSpec((None, None), tf.int32, "ids"),
        tf.TensorSpec((None,), tf.int32, "lengths"),
    )
    return {"continue_ids": tf.function(calls.continue_ids, input_signature=[ids, lengths])}, {
        "serving_default": tf.function(calls.complete, input_signature=[text]),
        "score": tf.function(calls.score, input_signature=[text]),
    }


def beginning(text: tf.Tensor, max_length: int) -> tf.Tensor:
    """As much of each text as can matter: TF Text takes minutes for a megabyte of unknown characters.

    Bytes first, as bytes that are no UTF-8 may count as no character; four of them hold any character.
    """
    characters = CHARACTERS_PER_TOKEN * max_length
    return tf.strings.substr(
        tf.strings.substr(text, 0, 4 * characters), 0, characters, unit="UTF8_CHAR"
    )


class _Translating:
    """What the signatures of a translator compute."""

    def __init__(self, translator: Translator, to_logits: ToLogits):
        self.to_logits = to_logits
        self.model = translator.model
        self.tokenizers = translator.tokenizers
        self.decoding = translator.decoding
        self.max_length = translator.max_length

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> the greedy translation (B,) string and its log-probability (B,)."""
        found = self._search(self._source(text), beam_size=1)
        return {
            "translation": self.tokenizers.target.detokenize(found.ids[:, 0]),
            "score": found.scores[:, 0],
        }

    def translate_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> the best translations (B, N) string and their scores (B, N), best first."""
        beam_size = self.decoding.beam_size
        found = self._search(self._source(text), beam_size)
        ids = tf.reshape(found.ids, (-1, tf.shape(found.ids)[2]))
        translations = tf.reshape(self.tokenizers.target.detokenize(ids), (-1, beam_size))
        return {"translations": translations, "scores": tf.reshape(found.scores, (-1, beam_size))}

    def translate_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Pieces (B, S), of which the first `lengths` (B,) count -> the greedy translation (B, T), its score (B,)."""
        found = self._search(source_ids(ids, lengths, self.max_length), beam_size=1)
        longest = tf.reduce_max(found.lengths)
        return {
            "ids": found.ids[:, 0, :longest],
            "lengths": found.lengths[:, 0],
            "score": found.scores[:, 0],
        }

    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Two (B,) string -> log P(target | source) in nats (B,), and the number of target tokens (B,)."""
        source_rows = self._source(source)
        target_ids = with_end(*self._pieces(self.tokenizers.target, target), self.max_length)
        log_probs = token_log_probs(self.model, source_rows, target_ids, self.to_logits)
        lengths = tf.math.count_nonzero(target_ids, axis=1, dtype=tf.int32)
        return {
            "log_prob": tf.reduce_sum(log_probs, axis=1),
            "num_tokens": tf.where(source_rows[:, 0] != PAD_ID, lengths, 0),
        }

    def _search(self, source: tf.Tensor, beam_size: int):
        alpha = self.decoding.length_penalty
        form = self.decoding.length_normalization
        return search(self.model, source, self.max_length, beam_size, alpha, self.to_logits, form)

    def _source(self, text: tf.Tensor) -> tf.Tensor:
        return source_ids(*self._pieces(self.tokenizers.source, text), self.max_length)

    def _pieces(self, tokenizer: Tokenizer, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """(B,) string -> pieces (B, S), cut to what the model takes, and how many there are (B,)."""
        pieces = tokenizer.tokenize(beginning(text, self.max_length))[:, : self.max_length - 1]
        return pieces.to_tensor(PAD_ID), tf.cast(pieces.row_lengths(), tf.int32)


class _Continuing:
    """What the signatures of a language model compute."""

    def __init__(self, generator: Generator, to_logits: ToLogits):
        self.to_logits = to_logits
        self.model = generator.model
        self.tokenizer = generator.tokenizer
        self.max_length = generator.max_length

    def complete(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> the text with its greedy continuation (B,) string, the latter's log-probability (B,)."""
        found = self._continue(self._pieces(text))
        return {
            "generated_text": self.tokenizer.detokenize(found.ids[:, 0]),
            "score": found.scores[:, 0],
        }

    def continue_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Pieces (B, S), of which the first `lengths` (B,) count -> these and their greedy continuation (B, T)."""
        lengths = tf.clip_by_value(lengths, 0, tf.minimum(tf.shape(ids)[1], self.max_length - 1))
        found = self._continue(tf.RaggedTensor.from_tensor(ids, lengths))
        longest = tf.reduce_max(found.lengths)
        return {
            "ids": found.ids[:, 0, :longest],
            "lengths": found.lengths[:, 0],
            "score": found.scores[:, 0],
        }

    def score(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> its log-probability in nats (B,), and the number of its tokens (B,), with the end token."""
        pieces = self._pieces(text)
        rows = tf.concat([pieces, tf.fill((pieces.nrows(), 1), END_ID)], axis=1)
        num_tokens = tf.cast(rows.row_lengths(), tf.int32)
        log_prob = self.model.log_prob(rows.to_tensor(PAD_ID), self.to_logits)
        return {"log_prob": log_prob, "num_tokens": num_tokens}

    def _pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """(B,) string -> pieces (B, None), cut to what the model takes."""
        return self.tokenizer.tokenize(beginning(text, self.max_length))[:, : self.max_length - 1]

    def _continue(self, pieces: tf.RaggedTensor) -> Hypotheses:
        prefixes = tf.concat([tf.fill((pieces.nrows(), 1), START_ID), pieces], axis=1)
        lengths = tf.cast(prefixes.row_lengths(), tf.int32)
        return continue_prefixes(
            self.model,
            prefixes.to_tensor(PAD_ID),
            lengths,
            self.max_length,
            greedy_search,
            self.to_logits,
        )
