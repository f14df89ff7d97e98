"""The tokenizers of imported models.

Most take their ids from a separate list of pieces. SentencePiece segments the text, and a table
maps the pieces to ids, as in Marian's vocabularies. A piece is looked up as a string, not by
SentencePiece's id, because a character that is unknown to SentencePiece may still be in the list,
for example as a piece of the other language. A piece that is not in the list becomes the unknown
token. A model of keras-hub may have a byte-pair vocabulary.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from tfformer.data.tokenizers import (
    Tokenizer,
    before_end,
    checked_ids,
    checked_texts,
    graph_tokenizer,
    parse_sentencepiece,
    with_prefix,
)
from tfformer.special_ids import END_ID, UNKNOWN_ID
from tfformer.storage import whole_files as files

if TYPE_CHECKING:
    import tensorflow as tf

CODE = re.compile(r"(>>.*?<<)(.*)", re.DOTALL)  # >>fra<<, before a text to translate into French
BLANK = "\u2581"  # a space within a piece
MAX_KNOWN = 20  # maximum codes or languages listed in a message
BUCKETS = 2**63 - 1


class PieceTable(pydantic.BaseModel):
    """The content of the JSON file beside a SentencePiece model; see `PieceTokenizer`."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    prefix: str | None
    rewrites: list[tuple[str, str]]
    pieces: list[str]
    languages: list[str] = []


class PieceTokenizer(Tokenizer):
    """A SentencePiece model with ids from a list.

    The first four pieces are padding, unknown, start and end (`special_ids.py`). A sentence may
    begin with a code such as `>>fra<<`, which names the target language, if the list has such
    codes. An unknown code is an error in Python; in the graph, which cannot reject a single
    sentence, it becomes the unknown id.

    If two segmentations by a unigram model have equal scores (`p pp` and `pp p` for "ppp"), the
    graph and `encode` may choose different ones. The graph needs the pieces as text, which only TF
    Text's older operation returns, and its SentencePiece 0.1.96 breaks ties differently. The
    results differed for 505 of 3,050 sentences with stretched words.

    Args:
        model: The bytes of a SentencePiece model; its special ids do not matter.
        pieces: The piece of each id.
        prefix: The piece that every sentence begins with, such as a language token; it has no text.
        rewrites: Pairs of a regular expression and its replacement, applied to a sentence first.
            They must mean the same in Python, RE2 and JavaScript.
        languages: The language pieces that `prefix` may be set to.

    Raises:
        ValueError: `model` is not a SentencePiece model, `pieces` repeats a piece or lacks `prefix`
            or a language, or a rewrite is not a regular expression.
    """

    is_cut_by_fast_operation = False
    symbols = ()  # imported vocabularies have none

    def __init__(
        self,
        model: bytes,
        pieces: Sequence[str],
        prefix: str | None = None,
        *,
        rewrites: Sequence[tuple[str, str]] = (),
        languages: Sequence[str] = (),
    ) -> None:
        self.model = model
        self._processor = parse_sentencepiece(model, "the tokenizer")
        self._pieces = list(pieces)
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        if len(self._ids) < len(self._pieces) or len(self._pieces) < END_ID + 1:
            raise ValueError(
                "a vocabulary must begin with four special pieces and must not repeat a piece"
            )
        for piece in (*languages, prefix):
            if piece is not None and piece not in self._ids:
                raise ValueError(
                    f"the vocabulary lacks the piece {piece[:40]!r}, which sentences begin with"
                )
        self._prefix = prefix
        self.prefix_id = None if prefix is None else self._ids[prefix]
        self.language = None if prefix is None else prefix.strip("_")
        self.rewrites = [(pattern, text) for pattern, text in rewrites]
        self.languages = list(languages)
        try:
            self._compiled = [(re.compile(pattern), text) for pattern, text in rewrites]
        except re.error as error:
            raise ValueError(f"{error.pattern!r} is not a regular expression ({error})") from None

    @classmethod
    def load(cls, path: str | Path) -> PieceTokenizer:
        """Load the tokenizer that `save` wrote, from the path of its SentencePiece model."""
        path = Path(path)
        table = pieces_file(path)
        for file in (path, table):
            if not file.is_file():
                raise FileNotFoundError(
                    f"{file}: the tokenizer file is missing; import the model again"
                )
        try:
            values = PieceTable.model_validate_json(table.read_bytes())
        except pydantic.ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise ValueError(
                f"{table} is not a list of pieces ({reason}); import the model again"
            ) from None
        try:
            return cls(path.read_bytes(), **dict(values))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the SentencePiece model, and pieces, prefix, rewrites and languages as JSON."""
        path = Path(path)
        files.write_bytes(path, self.model)
        files.write_text(pieces_file(path), self._table)

    def with_language(self, language: str) -> Tokenizer:
        """Return a copy whose prefix is the token of another language, such as "fr"."""
        if not self.languages:
            return super().with_language(language)
        prefix = language_piece(language, self.languages)
        return PieceTokenizer(
            self.model, self._pieces, prefix, rewrites=self.rewrites, languages=self.languages
        )

    @property
    def vocab_size(self) -> int:
        """The number of pieces."""
        return len(self._pieces)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the model and its pieces, in hexadecimal."""
        return hashlib.sha256(self.model + b"\0" + self._table.encode()).hexdigest()

    @property
    def _table(self) -> str:
        values: dict[str, object] = {
            "prefix": self._prefix,
            "rewrites": self.rewrites,
            "pieces": self._pieces,
        }
        if self.languages:
            values["languages"] = self.languages
        return json.dumps(values, ensure_ascii=False, indent=0) + "\n"

    @functools.cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of target languages in the list, such as `>>fra<<`."""
        return tuple(piece for piece in self._pieces if re.fullmatch(r">>.+<<", piece))

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of B sentences, without start and end; ValueError for an unknown code."""
        checked_texts(sentences)
        parted = []
        for sentence in sentences:
            for pattern, replacement in self._compiled:
                sentence = pattern.sub(replacement, sentence)
            parted.append(self._code(sentence))
        texts = [body.encode() for _, body in parted]
        rows = self._processor.encode(texts, out_type=str) if texts else []
        begin = [] if self._prefix is None else [self._prefix]
        ids = []
        for (code, _), pieces in zip(parted, rows, strict=True):
            row = [*code, *pieces]
            row = [*begin, *row] if row else row
            ids.append([self._ids.get(piece, UNKNOWN_ID) for piece in row])
        return ids

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of B rows of ids, up to each row's end token, without special ids."""
        return [self._text(row) for row in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, including special ids."""
        return [self._pieces[number] for number in checked_ids(ids, self.vocab_size)]

    @functools.cached_property
    def _graph_functions(
        self,
    ) -> tuple[Callable[[tf.Tensor], tf.RaggedTensor], Callable[[tf.Tensor], tf.Tensor]]:
        """Return the `tf.function`s (tokenize, detokenize), whose graphs contain all their data.

        A piece is looked up by searching sorted hashes and comparing the string. Unlike a
        TensorFlow table this needs no initialisation or tracking, so every loader can run it. With
        60,000 pieces, two share a hash in one of five billion vocabularies.
        """
        import tensorflow as tf

        from tfformer.runtime.tracing import traced

        pieces = self._pieces
        with tf.init_scope():
            hashes = tf.strings.to_hash_bucket_fast(pieces, BUCKETS).numpy()
        order = hashes.argsort(kind="stable").astype("int32")
        hashes = hashes[order]
        has_codes = bool(self.codes)

        def look_up(piece: tf.Tensor) -> tf.Tensor:
            """(N,) string -> (N,) int32."""
            bucket = tf.strings.to_hash_bucket_fast(piece, BUCKETS)
            index = tf.minimum(tf.searchsorted(tf.constant(hashes), bucket), len(pieces) - 1)
            number = tf.gather(tf.constant(order), index)
            is_it = tf.gather(tf.constant(pieces), number) == piece
            return tf.where(is_it, number, UNKNOWN_ID)

        @traced(input_signature=[tf.TensorSpec([None], tf.string)])
        def tokenize(text: tf.Tensor) -> tf.RaggedTensor:
            cutter = graph_tokenizer(self.model, tf.string)
            for pattern, replacement in self.rewrites:
                text = tf.strings.regex_replace(text, pattern, replacement)
            if not has_codes:
                ids = cutter.tokenize(text)
                return with_prefix(ids.with_flat_values(look_up(ids.flat_values)), self.begin_ids)
            has_code = tf.strings.regex_full_match(text, r"(?s)>>.*?<<.*")
            code = tf.strings.regex_replace(text, r"(?s)^(>>.*?<<).*$", r"\1")
            after_code = tf.strings.regex_replace(text, r"(?s)^>>.*?<<", "", replace_global=False)
            body = cutter.tokenize(tf.where(has_code, after_code, text))
            codes = tf.ragged.boolean_mask(code[:, tf.newaxis], has_code[:, tf.newaxis])
            ids = tf.concat([codes, body], axis=1)
            return with_prefix(ids.with_flat_values(look_up(ids.flat_values)), self.begin_ids)

        @traced(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def detokenize(ids: tf.Tensor) -> tf.Tensor:
            cutter = graph_tokenizer(self.model)
            is_before_end = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1) == 0
            is_text = is_before_end & (ids > END_ID)
            if self.prefix_id is not None:
                is_text &= ids != self.prefix_id
            kept = tf.ragged.boolean_mask(ids, is_text)
            row_pieces = tf.ragged.map_flat_values(
                lambda flat: tf.gather(tf.constant(pieces), flat), kept
            )
            text = tf.strings.regex_replace(cutter.detokenize(row_pieces), BLANK, " ")
            return tf.strings.regex_replace(text, r"^ +| +$", "")

        return tokenize, detokenize

    def _code(self, sentence: str) -> tuple[list[str], str]:
        """Split a sentence into its language code, if it begins with one, and the text."""
        match = CODE.fullmatch(sentence) if self.codes else None
        if match is None:
            return [], sentence
        if match[1] not in self._ids:
            more = "" if len(self.codes) <= MAX_KNOWN else ", ..."
            raise ValueError(
                f"the model has no target language {match[1][:40]}; the known codes are "
                f"{', '.join(self.codes[:MAX_KNOWN])}{more}"
            )
        return [match[1]], match[2]

    def _text(self, row: Sequence[int]) -> str:
        ids = before_end(checked_ids(row, self.vocab_size))
        silent = (*range(END_ID + 1), self.prefix_id)
        pieces = [self._pieces[number] for number in ids if number not in silent]
        return self._processor.decode(pieces).replace(BLANK, " ").strip(" ") if pieces else ""


class BytePairTokenizer(Tokenizer):
    """A tokenizer of the library `tokenizers`, such as an imported BART's.

    It splits text only in Python, because TensorFlow has no operation for its rules.

    Args:
        model: The bytes of a tokenizer.json whose ids 0 to 3 are padding, unknown, start and end. A
            post-processor may begin every text with one token.

    Attributes:
        prefix_id: The id of that token; None if there is no such token.
    """

    is_cut_by_fast_operation = False
    symbols = ()

    def __init__(self, model: bytes) -> None:
        import tokenizers

        self.model = model
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(model.decode())
        except Exception as error:  # the library raises no class of its own
            raise ValueError(
                f"not a vocabulary of the library `tokenizers` ({error}); copy the original again"
            ) from None
        self._tokenizer.encode_special_tokens = True  # "</s>" in a text is text
        begin = self._tokenizer.encode("").ids
        self.prefix_id = begin[0] if begin else None

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""
        return self._tokenizer.get_vocab_size()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of B sentences, as `Tokenizer.encode` does."""
        texts = [text.decode() for text in checked_texts(sentences)]
        rows = self._tokenizer.encode_batch(texts)
        return [row.ids if text.strip() else [] for row, text in zip(rows, texts, strict=True)]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of B rows of ids, as `Tokenizer.decode` does."""
        silent = (*range(END_ID + 1), self.prefix_id)
        rows = [before_end(checked_ids(row, self.vocab_size)) for row in ids]
        kept = [[number for number in row if number not in silent] for row in rows]
        return self._tokenizer.decode_batch(kept, skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, including special ids."""
        return [str(self._tokenizer.id_to_token(i)) for i in checked_ids(ids, self.vocab_size)]

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Raise ValueError: TensorFlow has no operation for the vocabulary's rules."""
        raise ValueError(
            "a byte-pair vocabulary cannot split text in a TensorFlow graph; leave out the text "
            "signatures (with_text=False) and tokenize outside the model"
        )


def language_piece(language: str, known: Sequence[str]) -> str:
    """Return the piece of a language; `language` is the piece or its name without underscores.

    Example:
        >>> language_piece("fr", ["__en__", "__fr__"]), language_piece("fra_Latn", ["fra_Latn"])
        ('__fr__', 'fra_Latn')
    """
    for piece in (language, f"__{language}__"):
        if piece in known:
            return piece
    raise ValueError(
        f"the language {language[:40]!r} is not known; the model has {names_of(known)}"
    )


def names_of(languages: Sequence[str]) -> str:
    """Return the names of language pieces for a message; after `MAX_KNOWN` names, "..."."""
    names = [piece.strip("_") for piece in languages]
    more = [] if len(names) <= MAX_KNOWN else ["..."]
    return ", ".join([*names[:MAX_KNOWN], *more])


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load a vocabulary; a list of pieces beside a SentencePiece model gives the ids."""
    path = Path(path)
    if pieces_file(path).is_file():
        return PieceTokenizer.load(path)
    is_json = path.is_file() and path.read_bytes()[:1] == b"{"
    return BytePairTokenizer.load(path) if is_json else Tokenizer.load(path)


def pieces_file(path: Path) -> Path:
    """Return the path of a model's list of pieces, such as `source.pieces.json`."""
    return path.with_suffix(".pieces.json")
