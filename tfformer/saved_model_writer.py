"""Writes a translator as a TensorFlow SavedModel with signatures over text and over ids. Knows no run directory.

Every input and output has the batch first; batch and lengths are dynamic, so a server may put requests together.
Shape letters: B sentences, S source tokens, T target tokens, N beams.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tfformer import warmup_requests
from tfformer.checkpoints import first_line
from tfformer.special_ids import END_ID, PAD_ID
from tfformer.tokenizers import Tokenizer
from tfformer.translator import Translator, search, token_log_probs

FIRST_TEXT = b"This is the first request."
CHARACTERS_PER_TOKEN = 64  # read of a text, for each token the model takes; a piece has up to 16


def write(folder: Path, translator: Translator, with_text: bool) -> None:
    """Fill the empty `folder`; without text there is no operation that core TensorFlow lacks. OSError if it cannot."""
    holder = tf.Module()
    holder.weights = [weight.value for weight in translator.model.weights]  # Keras' own tracking: C++ cannot read it
    try:
        tf.saved_model.save(holder, str(folder), signatures=_signatures(translator, with_text))
        warmup_requests.write(folder, _first_requests(with_text))
    except tf.errors.OpError as error:
        raise OSError(f"{folder.parent} cannot be written to ({first_line(error)}); free some space") from None


def _first_requests(with_text: bool) -> dict[str, dict[str, np.ndarray]]:
    """A small request for each signature: the first is slow, as TensorFlow then prepares the graph."""
    text, ids = np.array([FIRST_TEXT], object), np.array([[END_ID + 1]], np.int32)
    over_ids = {"translate_ids": {"ids": ids, "lengths": np.array([1], np.int32)}}
    over_text = {
        "serving_default": {"text": text},
        "translate_beam": {"text": text},
        "score": {"source": text, "target": text},
    }
    return over_ids | over_text if with_text else over_ids


def signatures(folder: Path) -> dict[str, dict]:
    """What a written SavedModel answers to: signature -> inputs and outputs -> name -> dtype and shape."""
    graph = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    return {
        name: {"inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs)}
        for name, signature in sorted(graph.signature_def.items())
        if not name.startswith("__")  # the initialisation
    }


def _tensors(tensors) -> dict[str, dict]:
    return {
        name: {"dtype": tf.as_dtype(tensor.dtype).name, "shape": tf.TensorShape(tensor.tensor_shape).as_list()}
        for name, tensor in sorted(tensors.items())
    }


def _signatures(translator: Translator, with_text: bool) -> dict:
    calls = _Calls(translator)
    text, source, target = (tf.TensorSpec((None,), tf.string, name) for name in ("text", "source", "target"))
    ids, lengths = tf.TensorSpec((None, None), tf.int32, "ids"), tf.TensorSpec((None,), tf.int32, "lengths")
    over_ids = {"translate_ids": tf.function(calls.translate_ids, input_signature=[ids, lengths])}
    over_text = {
        "serving_default": tf.function(calls.translate, input_signature=[text]),
        "translate_beam": tf.function(calls.translate_beam, input_signature=[text]),
        "score": tf.function(calls.score, input_signature=[source, target]),
    }
    return over_ids | over_text if with_text else over_ids


class _Calls:
    """What the signatures compute."""

    def __init__(self, translator: Translator):
        self.model = translator.model
        self.tokenizers = translator.tokenizers
        self.decoding = translator.decoding
        self.max_length = translator.max_length

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> the greedy translation (B,) string and its log-probability (B,)."""
        found = self._search(self._source(text), beam_size=1)
        return {"translation": self.tokenizers.target.detokenize(found.ids[:, 0]), "score": found.scores[:, 0]}

    def translate_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B,) string -> the best translations (B, N) string and their scores (B, N), best first."""
        beam_size = self.decoding.beam_size
        found = self._search(self._source(text), beam_size)
        ids = tf.reshape(found.ids, (-1, tf.shape(found.ids)[2]))
        translations = tf.reshape(self.tokenizers.target.detokenize(ids), (-1, beam_size))
        return {"translations": translations, "scores": tf.reshape(found.scores, (-1, beam_size))}

    def translate_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Pieces (B, S), of which the first `lengths` (B,) count -> the greedy translation (B, T), its score (B,)."""
        found = self._search(self._as_source(ids, lengths), beam_size=1)
        longest = tf.reduce_max(found.lengths)
        return {"ids": found.ids[:, 0, :longest], "lengths": found.lengths[:, 0], "score": found.scores[:, 0]}

    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Two (B,) string -> log P(target | source) in nats (B,), and the number of target tokens (B,)."""
        source_ids, target_ids = self._source(source), self._with_end(*self._pieces(self.tokenizers.target, target))
        log_probs = token_log_probs(self.model, source_ids, target_ids)
        lengths = tf.math.count_nonzero(target_ids, axis=1, dtype=tf.int32)
        return {
            "log_prob": tf.reduce_sum(log_probs, axis=1),
            "num_tokens": tf.where(source_ids[:, 0] != PAD_ID, lengths, 0),
        }

    def _search(self, source_ids: tf.Tensor, beam_size: int):
        return search(self.model, source_ids, self.max_length, beam_size, self.decoding.length_penalty)

    def _source(self, text: tf.Tensor) -> tf.Tensor:
        return self._as_source(*self._pieces(self.tokenizers.source, text))

    def _pieces(self, tokenizer: Tokenizer, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """(B,) string -> pieces (B, S), cut to what the model takes, and how many there are (B,)."""
        pieces = tokenizer.tokenize(self._beginning(text))[:, : self.max_length - 1]
        return pieces.to_tensor(PAD_ID), tf.cast(pieces.row_lengths(), tf.int32)

    def _beginning(self, text: tf.Tensor) -> tf.Tensor:
        """As much of each text as can matter: TF Text takes minutes for a megabyte of unknown characters.

        Bytes first, as bytes that are no UTF-8 may count as no character; four of them hold any character.
        """
        characters = CHARACTERS_PER_TOKEN * self.max_length
        return tf.strings.substr(tf.strings.substr(text, 0, 4 * characters), 0, characters, unit="UTF8_CHAR")

    def _as_source(self, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Pieces -> what the encoder takes: nothing at all for a blank sentence, otherwise ending in the end token."""
        return tf.where((lengths > 0)[:, tf.newaxis], self._with_end(ids, lengths), PAD_ID)

    def _with_end(self, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Pieces (B, S) -> (B, the longest): cut to the model's length, the end token added, padded with 0."""
        lengths = tf.clip_by_value(lengths, 0, tf.minimum(tf.shape(ids)[1], self.max_length - 1))
        places = tf.range(tf.reduce_max(lengths) + 1)
        ids = tf.pad(ids, ((0, 0), (0, 1)))[:, : tf.size(places)]
        ids = tf.where(places < lengths[:, tf.newaxis], ids, PAD_ID)
        return tf.where(places == lengths[:, tf.newaxis], END_ID, ids)
