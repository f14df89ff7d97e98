"""Subword tokenizers: trains, stores and applies SentencePiece, in Python and in a TensorFlow graph. Knows no model."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import sentencepiece
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from tfformer import files
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

MODEL_TYPES = ("unigram", "bpe")
MAX_MODEL_BYTES = (
    64 * 1024 * 1024
)  # thirteen times the largest published vocabularies (250,000 pieces, about 5 MB)
SAMPLING = threading.Lock()  # SentencePiece has one seed for the whole process
TRAINING_THREADS = 4  # the model's bytes depend on this number, so it never follows the machine


def train(
    sentences: Iterable[str],
    vocab_size: int,
    model_type: str = "unigram",
    *,
    character_coverage: float = 1.0,
    max_sentences: int = 2_000_000,
) -> bytes:
    """Returns a SentencePiece model of exactly `vocab_size` pieces; same sentences and arguments, same bytes.

    Of more than `max_sentences` sentences it learns from a sample of that size, always the same; SentencePiece leaves
    out lines of more than 4,192 bytes. Raises ValueError for settings the sentences cannot satisfy.
    """
    _check_training_settings(vocab_size, model_type, character_coverage, max_sentences)
    model, failures = io.BytesIO(), []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_watched(sentences, failures),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            character_coverage=character_coverage,
            input_sentence_size=max_sentences,
            shuffle_input_sentence=True,
            pad_id=PAD_ID,
            unk_id=UNKNOWN_ID,
            bos_id=START_ID,
            eos_id=END_ID,
            num_threads=TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise (
            failures[0] if failures else ValueError(_explain_training_error(str(error), vocab_size))
        ) from error
    return model.getvalue()


class Tokenizer:
    """Sentences to ids and back; the ids of the graph and of Python are the same.

    Encoded ids hold no padding, start or end. A row to decode stops at its end; padding and start, which are control
    pieces, have no text. Raises ValueError where `model` is not a whole model with the ids of `special_ids.py`.
    """

    def __init__(self, model: bytes):
        self.model = model
        self._processor = _checked_processor(model)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Reads a model file; raises FileNotFoundError or ValueError before TensorFlow sees a byte of a bad one."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: there is no tokenizer file here; train one or correct the path"
            )
        if path.stat().st_size > MAX_MODEL_BYTES:
            raise ValueError(
                f"{path}: {path.stat().st_size:,} bytes, but a SentencePiece model has at most {MAX_MODEL_BYTES:,}; "
                "give the tokenizer's file, not another one"
            )
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Writes the model in one atomic step: a kill leaves the old file or the new one, never a part."""
        files.write_bytes(Path(path), self.model)

    @property
    def vocab_size(self) -> int:
        return self._processor.vocab_size()

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the model's bytes, in hexadecimal: what a run's configuration remembers of its tokenizer."""
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """B sentences -> B lists of ids; raises ValueError where a sentence is not Unicode text."""
        return self._processor.encode(_all_utf8(sentences))

    def sample(self, sentences: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """As `encode`, but each sentence cut in a random way; in one process the same seed gives the same ids.

        Of a unigram model in proportion to probability ** alpha (Kudo 2018, section 3.3): the smaller, the more random.
        Of BPE with each merge left out with probability alpha (BPE-dropout, Provilkov et al. 2020).
        `seed` is below 2^32 - 1. SentencePiece 0.2.3 mixes in something of the process: in another one the ids differ.
        """
        settings = {"enable_sampling": True, "alpha": alpha, "nbest_size": -1, "num_threads": 1}
        with SAMPLING:
            sentencepiece.set_random_generator_seed(
                seed
            )  # for threads that begin: the one begun here takes it
            return self._processor.encode(_all_utf8(sentences), **settings)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """B rows of ids -> B sentences; a row ends at its first end id. Raises ValueError for an id out of range."""
        rows = [list(itertools.takewhile(lambda i: i != END_ID, self._checked(row))) for row in ids]
        return self._processor.decode(rows) if rows else []

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each piece, special ones too; raises ValueError for an id out of range."""
        return [self._processor.id_to_piece(i) for i in self._checked(ids)]

    def tokenize(self, text):
        """In the graph: (B,) string -> (B, None) int32 ragged, the ids of `encode`."""
        return self._graph_functions[0](text)

    def detokenize(self, ids):
        """In the graph: (B, T) int32, dense or ragged -> (B,) string, the sentences of `decode`."""
        import tensorflow as tf

        return self._graph_functions[1](
            ids.to_tensor(PAD_ID) if isinstance(ids, tf.RaggedTensor) else ids
        )

    @functools.cached_property
    def _graph_functions(self):
        """The pair (tokenize, detokenize), each a `tf.function` that carries the model within its graph.

        TF Text's FastSentencepieceTokenizer gives other ids than SentencePiece for BPE. Its SentencepieceTokenizer is
        exact, but made outside a graph it is gone after the next `tf.random.set_seed`; made inside, it stays.
        """
        import tensorflow as tf
        import tensorflow_text

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def tokenize(text):
            return tensorflow_text.SentencepieceTokenizer(self.model).tokenize(text)

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def detokenize(ids):
            is_text = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1) == 0
            return tensorflow_text.SentencepieceTokenizer(self.model).detokenize(
                tf.ragged.boolean_mask(ids, is_text)
            )

        return tokenize, detokenize

    def _checked(self, ids: Sequence[int]) -> list[int]:
        ids = [int(i) for i in ids]
        if outside := [i for i in ids if not 0 <= i < self.vocab_size]:
            raise ValueError(
                f"id {outside[0]} is not in this vocabulary of {self.vocab_size} pieces (0 to {self.vocab_size - 1}); "
                "decode with the tokenizer that made the ids"
            )
        return ids


def _check_training_settings(
    vocab_size: int, model_type: str, character_coverage: float, max_sentences: int
) -> None:
    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"model_type is {model_type!r}, but must be one of {', '.join(MODEL_TYPES)}"
        )
    if vocab_size <= END_ID + 1:
        raise ValueError(
            f"vocab_size is {vocab_size}, but padding, unknown, start and end alone take {END_ID + 1}; "
            "give a larger one, such as 8000"
        )
    if not 0.98 <= character_coverage <= 1.0:
        raise ValueError(
            f"character_coverage is {character_coverage}, but must lie within 0.98 and 1.0; 1.0 keeps all"
        )
    if max_sentences <= 100:
        raise ValueError(
            f"max_sentences is {max_sentences}, but a sample must have more than 100; raise it"
        )


def _watched(sentences: Iterable[str], failures: list) -> Iterator[bytes]:
    """The sentences in UTF-8; keeps the exception they stop with, as SentencePiece passes only its text on."""
    try:
        for number, sentence in enumerate(sentences, start=1):
            yield _utf8(number, sentence)
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _all_utf8(sentences: Sequence[str]) -> list[bytes]:
    if isinstance(sentences, str):
        raise ValueError(
            f"sentences come in a list, but this is the text {sentences[:40]!r}; write [text]"
        )
    return [_utf8(number, sentence) for number, sentence in enumerate(sentences, start=1)]


def _utf8(number: int, sentence: str) -> bytes:
    if not isinstance(sentence, str):
        raise ValueError(
            f"sentence {number} is {sentence!r}, but must be a str; decode or convert it first"
        )
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"sentence {number} holds {sentence[error.start]!a}, which is no Unicode character; read the text as UTF-8"
        ) from error


def _explain_training_error(message: str, vocab_size: int) -> str:
    """SentencePiece names its own source lines and flags; this says the same in the caller's words."""
    if too_high := re.search(r"Vocabulary size too high .* <= (\d+)", message):
        return (
            f"vocab_size {vocab_size} is larger than these sentences support, at most {too_high[1]}; "
            f"set it to {too_high[1]} or less, or give more text"
        )
    if too_low := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"vocab_size {vocab_size} does not hold every character of these sentences, at least {too_low[1]}; "
            f"set it to {too_low[1]} or more, or lower character_coverage"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return "there is no text to train a tokenizer on; give sentences that are not all empty"
    return f"SentencePiece cannot train on these sentences; correct what it names: {message}"


def _checked_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = _parse(model)
    if processor is None:
        raise ValueError(
            f"not a SentencePiece model, or only a part of one ({len(model):,} bytes); "
            "copy the file again, or train a tokenizer"
        )
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != (PAD_ID, UNKNOWN_ID, START_ID, END_ID):
        raise ValueError(
            f"a SentencePiece model whose padding, unknown, start and end ids are {ids}, but must be "
            f"{(PAD_ID, UNKNOWN_ID, START_ID, END_ID)}; train a tokenizer with these"
        )
    return processor


def _parse(model: bytes) -> sentencepiece.SentencePieceProcessor | None:
    """None where the pip package, whose checks TF Text's older SentencePiece lacks, finds no whole model."""
    try:
        # A file has the pieces first and the normalizer last: without a normalizer it was cut between two pieces.
        is_whole = sentencepiece_model_pb2.ModelProto.FromString(model).HasField("normalizer_spec")
        return sentencepiece.SentencePieceProcessor(model_proto=model) if is_whole else None
    except (DecodeError, RuntimeError):
        return None
