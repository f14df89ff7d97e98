"""SentencePiece subword tokenizers, in Python and in a TensorFlow graph, and pairs of them.

Shape letters: B sentences, T tokens.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import sentencepiece
from google.protobuf.message import DecodeError

from tfformer.argument_checks import require, require_size
from tfformer.data.case_variants import with_case_variants
from tfformer.data.sentencepiece_proto import (
    NORMAL,
    UNIGRAM,
    USER_DEFINED,
    ModelProto,
    NormalizerSpec,
)
from tfformer.special_ids import END_ID, PAD_ID, PLACEHOLDER, START_ID, TAG, UNKNOWN_ID
from tfformer.storage import whole_files as files

if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text

PLAIN_NORMALIZATION = "nmt_nfkc_plain"  # nmt_nfkc with plain quotes; a model contains its rules
PLAIN = {**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "\u00ad": ""}
PLAIN_TABLE = str.maketrans(PLAIN)  # for `str.translate`
WORD_START = "▁"  # SentencePiece's mark for the space before a word
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
MAX_SENTENCES = 2_000_000  # sample size; SentencePiece needs about 1.4 KB of memory per sentence
TRAINING_THREADS = 4  # the model's bytes depend on this number, so it is the same on all machines


class Tokenizer:
    """Convert sentences to ids and back with SentencePiece (Kudo and Richardson 2018).

    Encoded ids contain no padding, start or end. Text is normalised before it is encoded, by
    default to NFKC and single spaces, and decoding returns the normalised text: "½" becomes "1⁄2".
    A TensorFlow graph produces the same ids as Python, except for ties, see `tokenize`.

    Args:
        model: A SentencePiece model with the ids of `tfformer.special_ids`.

    Attributes:
        model: The model's bytes.

    Raises:
        ValueError: `model` is not a complete SentencePiece model, or has other special ids.

    Example:
        >>> import tfformer
        >>> texts = ["the dog sees the cat", "the cat sleeps"] * 50
        >>> tokenizer = tfformer.Tokenizer.train(texts, vocab_size=20)
        >>> ids = tokenizer.encode(["the cat sees"])
        >>> tokenizer.decode(ids)
        ['the cat sees']
    """

    prefix_id: int | None = None  # an imported tokenizer's piece before every sentence
    language: str | None = None  # the language that this piece names
    languages: Sequence[str] = ()  # pieces of all languages to choose from
    tag: str | None = None  # the symbol that is put before every sentence

    def __init__(self, model: bytes) -> None:
        self.model = model
        processor = self._processor = parse_sentencepiece(model, "the tokenizer")
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD_ID, UNKNOWN_ID, START_ID, END_ID):
            raise ValueError(
                f"the padding, unknown, start and end ids of the SentencePiece model are {ids}, "
                f"but must be {(PAD_ID, UNKNOWN_ID, START_ID, END_ID)}; train a tokenizer with "
                "these ids"
            )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        model_type: str = "unigram",
        *,
        normalization: str = "nmt_nfkc",
        character_coverage: float = 1.0,
        symbols: Sequence[str] = (),
        byte_fallback: bool = False,
        case_variants: bool = False,
    ) -> Tokenizer:
        """Learn a vocabulary from sentences.

        The same sentences and arguments result in the same bytes.

        Args:
            texts: Sentences, read once. SentencePiece ignores sentences of more than 4,192 bytes
                and learns from a fixed sample of 2,000,000.
            vocab_size: Number of pieces, including the four special pieces.
            model_type: "unigram" (Kudo 2018) or "bpe" (Sennrich et al. 2016).
            normalization: How text is normalised first: "nmt_nfkc" (NFKC, and control characters
                become spaces), "nfkc", either of these with "_cf" for lower case, "nmt_nfkc_plain"
                (curly quotes become straight, and soft hyphens are removed), or "identity".
            character_coverage: Share of the characters, 0.98 to 1.0, that get a piece; other
                characters are unknown.
            symbols: Strings that are always one piece, regardless of context and normalization,
                such as the placeholder "⟦1⟧".
            byte_fallback: Whether a character without a piece is encoded as UTF-8 bytes, so that no
                text is unknown. The bytes take 256 pieces of the vocabulary.
            case_variants: Whether each piece of a unigram vocabulary exists in lower case, with an
                initial capital and in capitals, equally likely. `vocab_size` counts the lower-case
                pieces; the vocabulary becomes two to three times as large.

        Returns:
            The trained tokenizer.

        Raises:
            ValueError: The sentences cannot satisfy the settings, or a setting is invalid.

        Example:
            >>> import tfformer
            >>> texts = ["low lower lowest"] * 20
            >>> tokenizer = tfformer.Tokenizer.train(texts, vocab_size=14, model_type="bpe")
            >>> tokenizer.vocab_size
            14
        """
        _check_is_no_text(texts)
        _check_training_settings(vocab_size, model_type, normalization, character_coverage)
        _check_symbols(symbols)
        if case_variants and model_type != "unigram":
            raise ValueError(
                f"model_type is {model_type!r}, but case_variants need 'unigram'; set one or the "
                "other"
            )
        is_plain = normalization == PLAIN_NORMALIZATION

        def prepared(text: str) -> str:
            plain = text.translate(PLAIN_TABLE) if is_plain else text
            return plain.lower() if case_variants else plain

        model = io.BytesIO()
        failures: list[BaseException] = []
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_watched(texts, failures, prepared),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=model_type,
                character_coverage=character_coverage,
                user_defined_symbols=list(symbols),
                byte_fallback=byte_fallback,
                input_sentence_size=MAX_SENTENCES,
                shuffle_input_sentence=True,
                pad_id=PAD_ID,
                unk_id=UNKNOWN_ID,
                bos_id=START_ID,
                eos_id=END_ID,
                num_threads=TRAINING_THREADS,
                minloglevel=2,
                normalization_rule_name="nmt_nfkc" if is_plain else normalization,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from error
            raise ValueError(_explain_training_error(str(error), vocab_size)) from error
        trained = _with_plain_rules(model.getvalue()) if is_plain else model.getvalue()
        return cls(with_case_variants(trained) if case_variants else trained)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Load a model file that `save` or SentencePiece wrote.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is not a whole SentencePiece model.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: there is no tokenizer file here; train one or correct the path"
            )
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the model atomically, replacing an older file."""
        files.write_bytes(Path(path), self.model)

    @property
    def vocab_size(self) -> int:
        """Number of pieces, including the four special pieces."""
        return self._processor.vocab_size()

    @functools.cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that are always one piece, in the order of their ids."""
        pieces = ModelProto.FromString(self.model).pieces
        return tuple(piece.piece for piece in pieces if piece.type == USER_DEFINED)

    @functools.cached_property
    def is_cut_by_fast_operation(self) -> bool:
        """Whether TF Text's fast operation, which LiteRT uses, returns the same ids as `encode`.

        This holds for unigram vocabularies with an "nmt_" normalization, without byte fallback, and
        without symbols other than placeholders such as "⟦1⟧".
        """
        proto = ModelProto.FromString(self.model)
        trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
        return (
            trainer.model_type == UNIGRAM
            and not trainer.byte_fallback
            and _are_symbols_apart(proto)
            and not trainer.treat_whitespace_as_suffix
            and normalizer.add_dummy_prefix
            and normalizer.name in ("nmt_nfkc", "nmt_nfkc_cf", PLAIN_NORMALIZATION)
        )

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the model's bytes, in hexadecimal, as stored in a run's config.json."""
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Encode sentences with their most likely segmentation.

        Args:
            sentences: B texts.

        Returns:
            B lists of ids, without start and end; an empty list for a blank sentence.

        Raises:
            ValueError: A sentence is not Unicode text, or `sentences` is a single string.
        """
        rows = self._processor.encode(checked_texts(sentences))
        return [[*self.begin_ids, *row] if row else row for row in rows]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Decode rows of ids.

        Args:
            ids: B rows, lists or an array (B, T). A row ends at its first end id; padding and start
                have no text.

        Returns:
            B sentences.

        Raises:
            ValueError: An id is not in the vocabulary.
        """
        rows = [before_end(checked_ids(row, self.vocab_size)) for row in ids]
        return self._processor.decode(rows) if rows else []

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, including special ids; "▁" is the space before a word.

        Raises:
            ValueError: An id is not in the vocabulary.
        """
        return [self._processor.id_to_piece(i) for i in checked_ids(ids, self.vocab_size)]

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encode in the graph as `encode` does.

        If two segmentations have equal scores ("ppp" is `p pp` and `pp p`), the result equals
        `encode` for a unigram vocabulary of `Tokenizer.train` with an "nmt_" normalization: none of
        12,000 sentences with stretched words differed. Of 20,000 strings of random characters, 3
        differed, all in runs of periods or ellipses whose scores differ only by rounding. With
        other unigram vocabularies ("nfkc", "identity", symbols, byte fallback) the graph may choose
        another segmentation. BPE has no ties.

        Args:
            text: (B,) string.

        Returns:
            (B, None) int32, ragged; without start and end.
        """
        return self._graph_functions[0](text)

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Decode (B, T) int32 ids, dense or ragged, in the graph as `decode` does: (B,) strings."""
        import tensorflow as tf

        dense = ids.to_tensor(PAD_ID) if isinstance(ids, tf.RaggedTensor) else ids
        return self._graph_functions[1](dense)

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that may stand before a sentence, such as "<de>"; empty if `tag` is set."""
        return tuple(filter(TAG.fullmatch, self.symbols)) if self.tag is None else ()

    def with_tag(self, tag: str) -> Tokenizer:
        """Return a copy that encodes "A dog." as this tokenizer encodes "<de> A dog."."""
        if tag not in self.tags:
            raise ValueError(
                f"the run has no tag {tag[:40]!r}; choose one of {', '.join(self.tags) or 'none'}"
            )
        tagged = Tokenizer(self.model)
        tagged.tag = tag
        return tagged

    def with_language(self, language: str) -> Tokenizer:
        """Return the tokenizer of another language, if the model is multilingual."""
        raise ValueError(
            f"the run translates between two fixed languages, so {language[:40]!r} cannot be "
            "chosen; leave out --languages, or import a multilingual model"
        )

    @functools.cached_property
    def begin_ids(self) -> list[int]:
        """The ids that `encode` puts before every sentence: of `tag`, `prefix_id`, or none."""
        if self.prefix_id is not None:
            return [self.prefix_id]
        return self._processor.encode(self.tag) if self.tag else []

    @functools.cached_property
    def _graph_functions(
        self,
    ) -> tuple[Callable[[tf.Tensor], tf.RaggedTensor], Callable[[tf.Tensor], tf.Tensor]]:
        """Return the `tf.function`s (tokenize, detokenize), whose graphs contain the model.

        TF Text has two operations. `FastSentencepieceTokenizer` breaks ties as Python does, but
        supports only some models. `SentencepieceTokenizer` supports all models, but uses
        SentencePiece 0.1.96, which breaks ties differently. An operation that is created outside a
        graph is lost at the next `tf.random.set_seed`.
        """
        import tensorflow as tf
        import tensorflow_text

        from tfformer.runtime.tracing import traced

        operation = graph_tokenizer
        if self.is_cut_by_fast_operation:
            operation = tensorflow_text.FastSentencepieceTokenizer

        @traced(input_signature=[tf.TensorSpec([None], tf.string)])
        def tokenize(text: tf.Tensor) -> tf.RaggedTensor:
            ids = operation(self.model).tokenize(text).with_row_splits_dtype(tf.int64)
            return with_prefix(ids, self.begin_ids)

        @traced(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def detokenize(ids: tf.Tensor) -> tf.Tensor:
            is_text = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1) == 0  # (B, T)
            text_ids = tf.ragged.boolean_mask(ids, is_text)
            return graph_tokenizer(self.model).detokenize(text_ids)

        return tokenize, detokenize


@dataclass(frozen=True)
class Tokenizers:
    """Source and target tokenizer; the same object if the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        """Whether both languages have one vocabulary."""
        return self.source is self.target

    @property
    def languages(self) -> list[str] | None:
        """The names of the two languages of a multilingual model; None for other models."""
        names = [tokenizer.language for tokenizer in (self.source, self.target)]
        languages = [name for name in names if name is not None]
        return languages if len(languages) == len(names) else None

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The symbols of both vocabularies that stand for words, such as "⟦1⟧"."""
        shared = [symbol for symbol in self.source.symbols if symbol in self.target.symbols]
        return tuple(filter(PLACEHOLDER.fullmatch, shared))

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each side's model."""
        return {"source": self.source.digest, "target": self.target.digest}

    def with_languages(self, source: str | None, target: str | None) -> Tokenizers:
        """Return the tokenizers for other languages of a multilingual model; None keeps one.

        If the model has tags, the source tokenizer puts the tag of the target before each sentence.
        """
        if self.source.tags and target is not None:
            tag = f"<{target}>"
            if tag not in self.source.tags:
                raise ValueError(
                    f"the run has no tag {tag[:40]!r} for this language, only "
                    f"{', '.join(self.source.tags)}; leave out --languages"
                )
            return Tokenizers(self.source.with_tag(tag), self.target)
        tokenizers = [self.source, self.target]
        for side, language in enumerate((source, target)):
            if language is not None:
                tokenizers[side] = tokenizers[side].with_language(language)
        return Tokenizers(*tokenizers)


def graph_tokenizer(
    model: bytes, out_type: tf.DType | None = None
) -> tensorflow_text.SentencepieceTokenizer:
    """Return TF Text's operation on a SentencePiece model, named after the model.

    `tf.saved_model.load` keeps a single kernel for all stateful operations with the same name. With
    TF Text's default name, a second tokenizer of the same SavedModel would use the first one's
    model. The operation returns ids (`tf.int32`, the default) or pieces (`tf.string`).
    """
    import tensorflow as tf
    import tensorflow_text

    name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:16]}"
    return tensorflow_text.SentencepieceTokenizer(model, out_type=out_type or tf.int32, name=name)


def with_prefix(ids: tf.RaggedTensor, prefix: Sequence[int]) -> tf.RaggedTensor:
    """Put a prefix before each row of ids (B, None) that is not empty."""
    import tensorflow as tf

    if not prefix:
        return ids
    lengths = tf.cast(ids.row_lengths() > 0, tf.int64) * len(prefix)  # (B,)
    begin = tf.RaggedTensor.from_row_lengths(
        tf.tile(prefix, [tf.reduce_sum(lengths) // len(prefix)]), lengths
    )
    return tf.concat([begin, ids], axis=1)


# --- SentencePiece, for any tokenizer -----------------------------------------------------------


def parse_sentencepiece(model: bytes, origin: str) -> sentencepiece.SentencePieceProcessor:
    """Parse a SentencePiece model with any special ids; `origin` names its source in messages."""
    try:
        # The normalizer comes last: a model without it was truncated between two pieces.
        if ModelProto.FromString(model).HasField("normalizer_spec"):
            return sentencepiece.SentencePieceProcessor(model_proto=model)
    except (DecodeError, RuntimeError):
        pass
    raise ValueError(
        f"{origin} is not a complete SentencePiece model ({len(model):,} bytes); copy the file "
        "again"
    )


def checked_texts(sentences: Sequence[str]) -> list[bytes]:
    """Return B sentences in UTF-8; raise ValueError for a value that is not Unicode text."""
    _check_is_no_text(sentences)
    return [_utf8(number, sentence) for number, sentence in enumerate(sentences, start=1)]


def checked_ids(ids: Sequence[int], vocab_size: int) -> list[int]:
    """Return ids as plain integers; raise ValueError for one outside the vocabulary."""
    numbers = [int(number) for number in ids]
    if outside := [number for number in numbers if not 0 <= number < vocab_size]:
        raise ValueError(
            f"id {outside[0]} is not in this vocabulary of {vocab_size} pieces (0 to "
            f"{vocab_size - 1}); decode with the tokenizer that made the ids"
        )
    return numbers


def before_end(ids: Sequence[int]) -> list[int]:
    """Return the ids before the first end id."""
    return list(itertools.takewhile(lambda number: number != END_ID, ids))


# --- Training -----------------------------------------------------------------------------------


def _check_training_settings(
    vocab_size: int, model_type: str, normalization: str, character_coverage: float
) -> None:
    from tfformer.config import ModelType, Normalization  # slow to import; translating needs none

    require("model_type", model_type, get_args(ModelType))
    require("normalization", normalization, get_args(Normalization))
    if require_size("vocab_size", vocab_size) <= END_ID + 1:
        raise ValueError(
            f"vocab_size is {vocab_size}, but padding, unknown, start and end alone take "
            f"{END_ID + 1}; use a larger one, such as 8000"
        )
    if not 0.98 <= character_coverage <= 1.0:
        raise ValueError(
            f"character_coverage is {character_coverage}, but must be between 0.98 and 1.0; 1.0 "
            "covers all characters"
        )


def _check_symbols(symbols: Sequence[str]) -> None:
    for number, symbol in enumerate(symbols):
        if not symbol or re.search(r"\s", symbol) or symbol in SPECIAL_PIECES:
            raise ValueError(
                f"the symbol {symbol!r} must be a string without spaces other than "
                f"{', '.join(SPECIAL_PIECES)}; choose another symbol, such as '⟦1⟧'"
            )
        if symbol in symbols[:number]:
            raise ValueError(f"the symbol {symbol!r} is given twice; list each symbol once")


def _are_symbols_apart(proto: Any) -> bool:
    """Return whether each symbol is a placeholder in brackets that no other piece contains.

    The fast operation treats a symbol as a piece with the best score, and normalises it too.
    """
    symbols = [p.piece for p in proto.pieces if p.type == USER_DEFINED]
    pieces = [p.piece for p in proto.pieces if p.type == NORMAL]
    return not symbols or (
        all(map(PLACEHOLDER.fullmatch, symbols))
        and not any(re.search(".[⟦⟧]|[⟦⟧].", p) for p in pieces)
    )


def _watched(
    sentences: Iterable[str], failures: list[BaseException], prepared: Callable[[str], str]
) -> Iterator[bytes]:
    """Yield the prepared sentences in UTF-8 and record an exception.

    SentencePiece drops the exceptions of an iterator.
    """
    try:
        for number, sentence in enumerate(sentences, start=1):
            yield prepared(_utf8(number, sentence).decode()).encode()
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _check_is_no_text(sentences: Iterable[str]) -> None:
    if isinstance(sentences, str):
        raise ValueError(
            f"sentences must be a list, not the string {sentences[:40]!r}; pass [text]"
        )


def _utf8(number: int, sentence: str) -> bytes:
    if not isinstance(sentence, str):
        raise ValueError(
            f"sentence {number} is {sentence!r}, but must be a str; decode or convert it first"
        )
    try:
        return sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"sentence {number} contains {sentence[error.start]!a}, which is not a Unicode "
            "character; read the text as UTF-8"
        ) from error


def _explain_training_error(message: str, vocab_size: int) -> str:
    """Express SentencePiece's error, which names its own flags, in the caller's terms."""
    if too_high := re.search(r"Vocabulary size too high .* <= (\d+)", message):
        return (
            f"vocab_size {vocab_size} is too large for these sentences, which support at most "
            f"{too_high[1]}; set it to {too_high[1]} or less, or use more text"
        )
    if too_low := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"vocab_size {vocab_size} is too small for the characters of these sentences, which "
            f"need at least {too_low[1]}; set it to {too_low[1]} or more, or lower "
            "character_coverage"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return "there is no text to train a tokenizer on; use sentences that are not all empty"
    return f"SentencePiece cannot train on these sentences; correct what it reports: {message}"


def _with_plain_rules(model: bytes) -> bytes:
    """Replace the nmt_nfkc rules of a SentencePiece model by nmt_nfkc_plain."""
    usual = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").decompile()
    rules = sorted((dict(usual) | PLAIN).items())
    plain = sentencepiece.SentencePieceNormalizer(norm_map=rules).serialized_normalizer_spec()
    spec = NormalizerSpec.FromString(plain)
    proto = ModelProto.FromString(model)
    proto.normalizer_spec.precompiled_charsmap = spec.precompiled_charsmap
    proto.normalizer_spec.name = PLAIN_NORMALIZATION
    return bytes(proto.SerializeToString())
