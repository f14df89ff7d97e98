"""The signatures of a SavedModel, for text and for ids, for each kind of model.

The first axis of every input and output is the batch; batch size and lengths are dynamic, so a
server can batch requests. The questions that check them are at the end.

Shape letters: B sentences, S source tokens, T target tokens, N beams.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tfformer.data.encoding import EncodedSentences, pad
from tfformer.data.tokenizers import Tokenizer
from tfformer.engines.engine import ALIGN, CHARACTERS_PER_TOKEN, CONTINUATIONS, PREFIX
from tfformer.export.parity import Inputs, Outputs, Question, Scored, beam, continued, greedy
from tfformer.inference.generator import Generator
from tfformer.inference.graphs import (
    AlignedIds,
    aligned_ids,
    continue_prefixes,
    continue_translations,
    source_ids,
    token_log_probs,
    translate_ids,
    with_end,
)
from tfformer.inference.search import Hypotheses, greedy_search
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.model.token_model import ToLogits
from tfformer.runtime.tracing import traced
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

TEXT, BEGINNING, SOURCE, TARGET = (  # (B,)
    tf.TensorSpec((None,), tf.string, name) for name in ("text", "prefix", "source", "target")
)
IDS = [  # (B, S) and their lengths (B,)
    tf.TensorSpec((None, None), tf.int32, "ids"),
    tf.TensorSpec((None,), tf.int32, "lengths"),
]
TARGET_IDS = [
    tf.TensorSpec((None, None), tf.int32, "target_ids"),
    tf.TensorSpec((None,), tf.int32, "target_lengths"),
]

ALIGNED = "translate_aligned"

Functions = dict[str, tf.types.experimental.PolymorphicFunction]  # signature name -> function


class Signatures(NamedTuple):
    """Signatures over ids and over text."""

    over_ids: Functions  # use core TensorFlow's operations only
    over_text: Functions  # use TensorFlow Text's operations too


def signatures_of(model: TextModel, to_logits: ToLogits) -> Signatures:
    """Return the signatures of a translator or of a language model.

    `to_logits` computes logits (..., V) from the decoder's output (..., D).
    """
    if isinstance(model, Translator):
        return _Translating(model, to_logits).signatures()
    assert isinstance(model, Generator)
    return _Continuing(model, to_logits).signatures()


def beginning(text: tf.Tensor, max_length: int) -> tf.Tensor:
    """Return the beginning of each text (B,) that can affect the first `max_length` tokens.

    TF Text takes minutes for a megabyte of unknown characters. The bytes are limited first, because
    invalid UTF-8 may not count as characters; no character needs more than four bytes.
    """
    characters = CHARACTERS_PER_TOKEN * max_length
    some_bytes = tf.strings.substr(text, 0, 4 * characters)
    return tf.strings.substr(some_bytes, 0, characters, unit="UTF8_CHAR")


def _rows(tokenizer: Tokenizer, text: tf.Tensor, max_length: int) -> tf.RaggedTensor:
    """Text (B,) -> ids (B, None), truncated to a model's length."""
    return tokenizer.tokenize(beginning(text, max_length))[:, : max_length - 1]


def _pieces(tokenizer: Tokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Return the piece of each id (B, T), and "" for padding."""
    pieces = tf.constant(["", *tokenizer.pieces(range(PAD_ID + 1, tokenizer.vocab_size))])
    return tf.gather(pieces, ids)


def _best_ids(result: Hypotheses) -> dict[str, tf.Tensor]:
    """Return the ids (B, T), the length (B,) and the score (B,) of the best hypotheses."""
    longest = tf.reduce_max(result.lengths)
    return {
        "ids": result.ids[:, 0, :longest],
        "lengths": result.lengths[:, 0],
        "score": result.scores[:, 0],
    }


@dataclass(frozen=True)
class _Translating:
    """The computations of a translator's signatures."""

    translator: Translator
    to_logits: ToLogits

    def signatures(self) -> Signatures:
        over_text = {
            "serving_default": traced(self.translate, input_signature=[TEXT]),
            "translate_beam": traced(self.translate_beam, input_signature=[TEXT]),
            PREFIX: traced(self.translate_prefix, input_signature=[TEXT, BEGINNING]),
            "score": traced(self.score, input_signature=[SOURCE, TARGET]),
        }
        over_ids = {"translate_ids": traced(self.translate_ids, input_signature=IDS)}
        if self.translator.model.can_align:
            over_text[ALIGNED] = traced(self.translate_aligned, input_signature=[TEXT])
            over_ids[ALIGN] = traced(self.align_ids, input_signature=[*IDS, *TARGET_IDS])
        return Signatures(over_ids, over_text)

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) -> its greedy translation (B,) and the translation's log-probability (B,)."""
        result = self._search(self._source(text), beam_size=1)
        return {
            "translation": self.translator.tokenizers.target.detokenize(result.ids[:, 0]),
            "score": result.scores[:, 0],
        }

    def translate_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) -> its best translations (B, N) and their scores (B, N), best first."""
        beam_size = self.translator.decoding.beam_size
        result = self._search(self._source(text), beam_size)
        return {
            "translations": self._texts(result, beam_size),
            "scores": tf.reshape(result.scores, (-1, beam_size)),
        }

    def translate_prefix(self, text: tf.Tensor, prefix: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) and the beginning of each translation (B,) -> K continuations (B, K).

        Also returns the probability (B, K) of each continuation's first piece after the prefix, see
        `Translator.continuations`.
        """
        ids, _ = self._ids_and_lengths(self.translator.tokenizers.target, prefix)
        message = "a prefix has a character that the vocabulary lacks; use another word"
        tf.debugging.Assert(tf.reduce_all(ids != UNKNOWN_ID), [message])
        result = continue_translations(
            self.translator.model,
            self._source(text),
            ids,
            CONTINUATIONS,
            self.translator.max_length,
            self.to_logits,
            self.translator.tokenizers.target.prefix_id,
            self.translator.shortlist,
        )
        return {
            "translations": self._texts(result, CONTINUATIONS),
            "probabilities": tf.exp(tf.reshape(result.scores, (-1, CONTINUATIONS))),
        }

    def translate_aligned(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) -> its greedy translation (B,), score (B,), alignment and confidence (B,).

        Pieces (B, T) and source pieces (B, S) end with the end token and are padded with "". The
        alignment consists of the index of the source piece to which each piece attends most, the
        weight of this attention, and the piece's probability, scaled by the temperature, each
        (B, T) and 0 at padding. The confidence is the geometric mean of the probabilities.
        """
        source = self._source(text)
        result = self._search(source, beam_size=1)
        target = _best_ids(result)["ids"]
        pair = self._aligned(source, target)
        tokenizers = self.translator.tokenizers
        begin = len(tokenizers.target.begin_ids)  # the language token is not translated
        target, log_probs, attention = (values[:, begin:] for values in (target, *pair))
        is_real = tf.not_equal(target, PAD_ID) & tf.not_equal(source[:, :1], PAD_ID)
        count = tf.math.count_nonzero(is_real, axis=1, dtype=tf.float32)
        return {
            "translation": tokenizers.target.detokenize(result.ids[:, 0]),
            "score": result.scores[:, 0],
            "pieces": _pieces(tokenizers.target, target),
            "source_pieces": _pieces(tokenizers.source, source),
            "source_index": tf.argmax(attention, axis=2, output_type=tf.int32),
            "attention": tf.reduce_max(attention, axis=2),
            "probability": tf.where(is_real, tf.exp(log_probs), 0.0),
            "confidence": tf.exp(tf.math.divide_no_nan(tf.reduce_sum(log_probs, axis=1), count)),
        }

    def align_ids(
        self,
        ids: tf.Tensor,
        lengths: tf.Tensor,
        target_ids: tf.Tensor,
        target_lengths: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Ids (B, S) and the ids of given translations (B, T) -> attention (B, T + 1, S + 1).

        Also returns the log-probability of each target token in nats (B, T + 1), scaled by the
        temperature. End tokens are appended on both sides, as in `translate_ids`.
        """
        longest = self.translator.max_length
        source = source_ids(ids, lengths, longest)
        target = with_end(target_ids, target_lengths, longest)
        return self._aligned(source, target)._asdict()

    def translate_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Ids (B, S) -> their greedy translation (B, T).

        Also returns the length (B,) and the score (B,). Only the first `lengths` (B,) ids of a row
        are read.
        """
        source = source_ids(ids, lengths, self.translator.max_length)
        return _best_ids(self._search(source, beam_size=1))

    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Two texts (B,) -> log P(target | source) in nats (B,).

        Also returns the number of target tokens (B,).
        """
        source_rows = self._source(source)
        ids, lengths = self._ids_and_lengths(self.translator.tokenizers.target, target)
        target_ids = with_end(ids, lengths, self.translator.max_length)
        model = self.translator.model
        log_probs = token_log_probs(model, source_rows, target_ids, self.to_logits)
        lengths = tf.math.count_nonzero(target_ids, axis=1, dtype=tf.int32)
        return {
            "log_prob": tf.reduce_sum(log_probs, axis=1),
            "num_tokens": tf.where(source_rows[:, 0] != PAD_ID, lengths, 0),
        }

    def _aligned(self, source: tf.Tensor, target: tf.Tensor) -> AlignedIds:
        translator = self.translator
        return aligned_ids(translator.model, source, target, self.to_logits, translator.temperature)

    def _search(self, source: tf.Tensor, beam_size: int) -> Hypotheses:
        return translate_ids(
            self.translator.model,
            source,
            self.translator.max_length,
            self.translator.decoding.replace(beam_size=beam_size),
            self.to_logits,
            self.translator.tokenizers.target.prefix_id,
            self.translator.shortlist,
        )

    def _texts(self, result: Hypotheses, count: int) -> tf.Tensor:
        """Return the texts (B, N) of N hypotheses per sentence."""
        ids = tf.reshape(result.ids, (-1, tf.shape(result.ids)[2]))
        texts = self.translator.tokenizers.target.detokenize(ids)
        return tf.reshape(texts, (-1, count))

    def _source(self, text: tf.Tensor) -> tf.Tensor:
        ids, lengths = self._ids_and_lengths(self.translator.tokenizers.source, text)
        return source_ids(ids, lengths, self.translator.max_length)

    def _ids_and_lengths(
        self, tokenizer: Tokenizer, text: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Text (B,) -> ids (B, S), truncated to the model's length, and their number (B,)."""
        rows = _rows(tokenizer, text, self.translator.max_length)
        return rows.to_tensor(PAD_ID), tf.cast(rows.row_lengths(), tf.int32)


@dataclass(frozen=True)
class _Continuing:
    """The computations of a language model's signatures."""

    generator: Generator
    to_logits: ToLogits

    def signatures(self) -> Signatures:
        over_text = {
            "serving_default": traced(self.complete, input_signature=[TEXT]),
            "score": traced(self.score, input_signature=[TEXT]),
        }
        over_ids = {"continue_ids": traced(self.continue_ids, input_signature=IDS)}
        return Signatures(over_ids, over_text)

    def complete(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) -> the text with its greedy continuation (B,).

        Also returns the log-probability of the continuation.
        """
        rows = _rows(self.generator.tokenizer, text, self.generator.max_length)
        lengths = tf.cast(rows.row_lengths(), tf.int32)
        result = self._continue(rows.to_tensor(PAD_ID), lengths)
        return {
            "generated_text": self.generator.tokenizer.detokenize(result.ids[:, 0]),
            "score": result.scores[:, 0],
        }

    def continue_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Ids (B, S) -> the ids with their greedy continuation (B, T).

        Also returns the length (B,) and the score (B,). Only the first `lengths` (B,) ids of a row
        are read.
        """
        longest = tf.minimum(tf.shape(ids)[1], self.generator.max_length - 1)
        return _best_ids(self._continue(ids, tf.clip_by_value(lengths, 0, longest)))

    def score(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Text (B,) -> its log-probability in nats (B,).

        Also returns the number of its tokens (B,), including the end token.
        """
        max_length = self.generator.max_length
        rows = _rows(self.generator.tokenizer, text, max_length)
        lengths = tf.cast(rows.row_lengths(), tf.int32)
        ids = with_end(rows.to_tensor(PAD_ID), lengths, max_length)
        log_prob = self.generator.model.log_prob(ids, self.to_logits)
        return {"log_prob": log_prob, "num_tokens": lengths + 1}

    def _continue(self, ids: tf.Tensor, lengths: tf.Tensor) -> Hypotheses:
        prefixes = tf.pad(ids, ((0, 0), (1, 0)), constant_values=START_ID)
        return continue_prefixes(
            self.generator.model,
            prefixes,
            lengths + 1,
            self.generator.max_length,
            greedy_search,
            self.to_logits,
        )


def questions_of(model: TextModel, samples: Sequence[str]) -> list[Question]:
    """Return the questions for each signature of a model, about these sentences."""
    if isinstance(model, Translator):
        over_text = greedy("serving_default", model, samples)
        translations = [text for text, _ in over_text.expected]
        sources, targets = model.encode(samples), model.encode_targets(translations)
        log_probs = [score.log_prob for score in model.score(sources, targets)]
        questions = [
            _over_ids("translate_ids", model, samples, over_text.expected),
            over_text,
            beam("translate_beam", model, samples),
            continued(PREFIX, model, samples),
            _score({"source": samples, "target": translations}, translations, log_probs),
        ]
        if model.model.can_align:
            questions.append(Question(ALIGNED, 1, ALIGNED, *over_text[3:]))
            questions.append(_align(model, sources, model.encode_targets(samples)))
        return questions
    assert isinstance(model, Generator)
    encoded = model.encode(samples)
    expected = model.complete(encoded)

    def read(outputs: Outputs) -> list[Scored]:
        return list(zip(outputs["generated_text"], outputs["score"], strict=True))

    text: Inputs = {"text": samples}
    return [
        _over_ids("continue_ids", model, samples, expected),
        Question("serving_default", 1, "serving_default", [text], read, expected),
        _score(text, samples, model.log_prob(encoded)),
    ]


def _over_ids(
    signature: str, model: TextModel, samples: Sequence[str], expected: Sequence[Scored]
) -> Question:
    """Ask with ids (B, S) and lengths (B,); a row may contain any ids after its length."""
    tokenizers = model.tokenizers
    rows = tokenizers.source.encode(samples)
    longest = max(map(len, rows))
    padded = [row + [END_ID] * (longest - len(row)) for row in rows]

    def read(outputs: Outputs) -> list[Scored]:
        texts = tokenizers.target.decode(outputs["ids"])
        return list(zip(texts, outputs["score"], strict=True))

    inputs = {"ids": padded, "lengths": list(map(len, rows))}
    return Question(signature, 1, signature, [inputs], read, expected)


def _align(model: Translator, sources: EncodedSentences, targets: EncodedSentences) -> Question:
    """Ask how ids attend to ids; the score is the sum of the strongest weights of all tokens."""
    numbers = [
        n for n, sides in enumerate(zip(sources.ids, targets.ids, strict=True)) if all(sides)
    ]
    inputs: Inputs = {}
    for prefix, side in (("", sources), ("target_", targets)):
        rows = side.take(numbers).ids
        inputs[f"{prefix}ids"] = pad(rows).tolist()
        inputs[f"{prefix}lengths"] = list(map(len, rows))
    texts = [str(number) for number in numbers]
    both = model.tokenizers
    begin, target_begin = (len(side.begin_ids) for side in (both.source, both.target))

    def read(outputs: Outputs) -> list[Scored]:
        attention = ([row[begin:] for row in rows[target_begin:]] for rows in outputs["attention"])
        return list(zip(texts, (sum(map(max, rows)) for rows in attention), strict=True))

    aligned = model.aligned(sources.take(numbers), targets.take(numbers))
    strongest = [float(pair.attention.max(axis=1).sum()) for pair in aligned]
    return Question(ALIGN, 1, ALIGN, [inputs], read, list(zip(texts, strongest, strict=True)))


def _score(inputs: Inputs, texts: Sequence[str], log_probs: Sequence[float]) -> Question:
    """The probabilities of given texts."""

    def read(outputs: Outputs) -> list[Scored]:
        return list(zip(texts, outputs["log_prob"], strict=True))

    expected = list(zip(texts, log_probs, strict=True))
    return Question("score", 1, "score", [inputs], read, expected)
