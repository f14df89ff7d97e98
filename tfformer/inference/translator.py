"""Strings in, strings out: tokenizers, model and search combined."""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.config import Config, DecodingConfig
from tfformer.data.batches import by_length, token_batches
from tfformer.data.encoding import (
    EncodedSentences,
    Sentences,
    check_pairs,
    encode_prefixes,
    encode_truncated,
    in_batches,
    pad,
    warn_if_truncated,
    warn_of_truncation,
)
from tfformer.data.sources import Row, SentencePair
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference import Translation, evaluation
from tfformer.inference.alignment import Aligned, align_pairs, check_attention
from tfformer.inference.graphs import (
    FIRST_CAPACITY,
    aligned_ids,
    continue_translations,
    sample_ids,
    token_log_probs,
    translate_ids,
)
from tfformer.inference.search import Hypotheses, check_sampling, is_used
from tfformer.inference.text_model import (
    DAMAGED,
    SAMPLES,
    Measured,
    TextModel,
    check_finite,
    check_size,
)
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.runtime.devices import has_gpu
from tfformer.special_ids import END_ID
from tfformer.text import Align, Glossary, TextTranslator

BATCH_SIZE = 64
CHUNK = 1_000  # sentence pairs in memory
# Per batch: the sources' tokens and the cache's first positions, times the beams. This is 512
# sentences of 32 tokens; a step with 64 sentences takes as long, because launching it dominates.
GPU_TOKENS = 24_576


class ForcedScore(NamedTuple):
    """The probability that the model assigns to a given translation."""

    # The T pieces of the translation, the end token last; empty if the source is blank
    tokens: tuple[str, ...]
    log_probs: np.ndarray  # the log P(token | source, tokens before it) in nats, (T,) float32

    @property
    def log_prob(self) -> float:
        """The log-probability log P(translation | source) in nats."""
        return float(self.log_probs.sum(dtype=np.float64))

    @property
    def perplexity(self) -> float:
        """exp(mean negative log-probability of a token); nan without tokens."""
        return math.exp(-self.log_prob / len(self.tokens)) if self.tokens else math.nan


class Translator(TextModel):
    """A trained model that translates lists of sentences.

    Methods that take sentences accept them as texts or as the result of `encode`. Texts that are
    too long for the model are truncated, with one warning per call. If you call `encode` yourself,
    its result contains their number, and there is no warning.

    Args:
        model: The model.
        tokenizer: The tokenizer of the source, and of the target if both share a vocabulary.
        target_tokenizer: The tokenizer of the target, if it has another vocabulary.
        beam_size: The default number of beams; 1 is greedy search.
        length_penalty: The default alpha of Wu et al. 2016, equation 14.
        max_length: Maximum number of tokens of a source or a translation, the end token included.
        language: The code of the source language, whose rules `translate_text` uses to find
            sentences.
        target_language: The code of the target language, which `translate_text` writes into the
            `lang` attribute of `<html>`.

    Attributes:
        decoding: The default search, a `DecodingConfig`.
        shortlist: The `Shortlist` of the run, whose candidates `translate` and `n_best` choose
            from; None to choose from the whole vocabulary.

    Raises:
        ValueError: A tokenizer and the model differ in vocabulary size, or `max_length` is below 2.

    Example:
        This model is untrained; `Translator.load("my_run")` returns a trained one.

        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
        >>> model = tfformer.Transformer(9, 9, num_layers=1, d_model=8, num_heads=2, d_ff=8)
        >>> translator = tfformer.Translator(model, tokenizer, max_length=8)
        >>> [len(translations) for translations in translator.n_best(["a b", "c"], beam_size=3)]
        [3, 3]
        >>> translator.score(["a b"], ["c"])[0].tokens
        ('▁', 'c', '</s>')
        >>> translator.encode(["a b", "a b c d a b c d"]).truncated
        1
    """

    architecture = "encoder-decoder"
    model: Transformer

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        *,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        max_length: int = 128,
        language: str = "en",
        target_language: str | None = None,
    ) -> None:
        self.model = model
        self.tokenizers = Tokenizers(tokenizer, target_tokenizer or tokenizer)
        check_size(self.tokenizers.source, model.source_vocab_size)
        check_size(self.tokenizers.target, model.target_vocab_size)
        self.decoding = DecodingConfig(beam_size=beam_size, length_penalty=length_penalty)
        self.max_length = require_size("max_length", max_length, least=2)
        self.language = language
        self.target_language = target_language
        self._graphs = {}

    @classmethod
    def for_recipe(cls, model: Model, tokenizers: Tokenizers, config: Config) -> Self:
        """Return a translator for a model, with the limits and the search of a recipe."""
        assert isinstance(model, Transformer)
        source, target = config.data.languages or ("en", None)
        return cls(
            model,
            tokenizers.source,
            tokenizers.target,
            beam_size=config.decoding.beam_size,
            length_penalty=config.decoding.length_penalty,
            max_length=config.data.max_length,
            language=source,
            target_language=target,
        )

    def with_search(self, decoding: DecodingConfig, max_length: int | None = None) -> Self:
        """Return a copy with another search and, if given, another `max_length`."""
        changed = copy.copy(self)
        changed.decoding = decoding
        changed.max_length = max_length or self.max_length
        changed._graphs = {}
        return changed

    def with_model(self, model: Model) -> Self:
        """Return a copy with another model, which has the same vocabularies."""
        assert isinstance(model, Transformer)
        changed = self.with_search(self.decoding)
        changed.model = model
        return changed

    def search_settings(self) -> dict[str, Any]:
        """Return the section `decoding` of the model's recipe."""
        return dict(vars(self.decoding))

    def measure(self, rows: Sequence[Row], config: Config) -> Measured:
        """Translate the rows' sources greedily and return BLEU, chrF and some translations."""
        sources, references = (list(column) for column in zip(*rows, strict=True))
        translations = self.translate(sources, beam_size=1)
        scores = evaluation.scores(
            translations, references, tokenize=evaluation.bleu_tokenizer(config)
        )
        shown = [
            f"{source}\n\n> {translation}"
            for source, translation in zip(sources, translations, strict=True)
        ]
        step = max(1, len(shown) // SAMPLES)
        figures = {"val_bleu": float(scores["bleu"]), "val_chrf": float(scores["chrf"])}
        return Measured(figures, shown[::step][:SAMPLES])

    @classmethod
    def load(
        cls,
        run: str | Path,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> "Translator":
        """Load a run directory, with its best weights and decoding settings.

        Args:
            run: The run directory of a trained or imported translation model.
            source_language: For a multilingual model (M2M100, NLLB), the language to translate
                from, such as "en" or "eng_Latn"; the run's own by default.
            target_language: The language to translate into.

        Returns:
            The run's translator.

        Raises:
            FileNotFoundError: The folder, or a file in it, is missing.
            ValueError: A file is damaged, the run contains a language model, or the model does not
                support a language.
        """
        return cls.of(Run.open(run).with_languages(source_language, target_language))

    def encode_targets(self, sentences: Sentences) -> EncodedSentences:
        """Encode translations as `encode` encodes sources."""
        return encode_truncated(self.tokenizers.target, sentences, self.max_length - 1)

    def translate(
        self,
        sentences: Sentences,
        beam_size: int | None = None,
        length_penalty: float | None = None,
    ) -> list[str]:
        """Translate sentences.

        The translation of a sentence depends neither on the other sentences nor on their order.

        Args:
            sentences: B texts, or the result of `encode`.
            beam_size: Number of beams; 1 is greedy search. By default, that of `decoding`.
            length_penalty: The alpha of Wu et al. 2016, equation 14, at least 0. By default, that
                of `decoding`.

        Returns:
            The best translation of each sentence, empty for a blank sentence.

        Raises:
            ValueError: A setting is invalid, a sentence is not Unicode text, or the weights are
                damaged.
        """
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        n_best = self.n_best(encoded, beam_size, length_penalty)
        return [best.text for best, *_ in n_best]

    def translate_text(
        self,
        text: str,
        format: str = "text",
        beam_size: int | None = None,
        length_penalty: float | None = None,
        align: Align | None = None,
        keep: Sequence[str] = (),
        glossary: Glossary | None = None,
    ) -> str:
        """Translate a whole text, sentence by sentence.

        Args:
            text: The text. A sentence that is too long for the model is divided into clauses.
            format: "text" (paragraphs), "lines" (one sentence per line), "html", "xml", "markdown"
                or "srt" (SubRip's subtitles).
            beam_size: As in `translate`.
            length_penalty: As in `translate`.
            align: A function that aligns words, such as the engine's `nearest_targets`, so that
                markup can be placed. Without it, markup is placed at equal words, and otherwise at
                the same relative position.
            keep: Words and phrases that are not translated.
            glossary: The translations of terms.

        Returns:
            The translation, with whitespace, line ends and markup unchanged.

        Raises:
            ValueError: The format is unknown, a setting is invalid, the text is not Unicode, or the
                weights are damaged.
        """
        texts = self.text_translator(beam_size, length_penalty, align, keep, glossary)
        return texts.translate(text, format)

    def text_translator(
        self,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        align: Align | None = None,
        keep: Sequence[str] = (),
        glossary: Glossary | None = None,
    ) -> TextTranslator:
        """Return a translator for whole texts; its method `stream` yields piece by piece.

        The arguments are those of `translate_text`.
        """

        def translated(sentences: list[str]) -> list[str]:
            return self.translate(sentences, beam_size, length_penalty)

        def counted(texts: Sequence[str]) -> list[int]:
            return [len(ids) for ids in self.tokenizers.source.encode(texts)]

        return TextTranslator(
            translated,
            align,
            counted,
            max_tokens=self.max_length - 1,
            language=self.language,
            target_language=self.target_language,
            keep=keep,
            placeholders=self.tokenizers.placeholders,
            glossary=glossary,
            tags=self.tokenizers.source.tags,
        )

    def n_best(
        self,
        sentences: Sentences,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        batch_size: int | None = None,
    ) -> list[list[Translation]]:
        """Find the best translations of each sentence.

        Args:
            sentences: B texts, or the result of `encode`.
            beam_size: As in `translate`.
            length_penalty: As in `translate`.
            batch_size: Number of sentences of similar length that are decoded together; by default
                64, and on a GPU as many as have `GPU_TOKENS` tokens.

        Returns:
            Up to `beam_size` translations of each sentence, best first; a single empty one for a
            blank sentence.

        Raises:
            ValueError: A setting is invalid, a sentence is not Unicode text, or the weights are
                damaged.
        """
        beam_size = self.decoding.beam_size if beam_size is None else beam_size
        alpha = self.decoding.length_penalty if length_penalty is None else length_penalty
        beam_size = require_size("beam_size", beam_size)
        if not 0 <= alpha < math.inf:
            raise ValueError(f"length_penalty={alpha} must be a number of at least 0")
        batch_tokens = None
        if batch_size is None:
            batch_size = BATCH_SIZE
            batch_tokens = GPU_TOKENS // beam_size if has_gpu() else None
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        graph = self._graph(
            translate_ids,
            max_length=self.max_length,
            decoding=self.decoding.replace(beam_size=beam_size, length_penalty=alpha),
            first_token=self.tokenizers.target.prefix_id,
            shortlist=self.shortlist,
        )
        return self._in_batches(encoded, batch_size, lambda ids, numbers: graph(ids), batch_tokens)

    def continuations(
        self, sentences: Sentences, prefixes: Sequence[str], count: int = 5
    ) -> list[list[Translation]]:
        """Translate sentences with given beginnings, in several ways.

        Args:
            sentences: B texts, or the result of `encode`.
            prefixes: B texts, the beginnings of the translations, such as their first words; an
                empty one leaves the beginning to the model.
            count: Number of translations of each sentence, at most as many as there are pieces.

        Returns:
            For each sentence `count` translations that begin with its prefix, and continue with the
            most likely pieces, best first; a single empty one for a blank sentence. The score is
            the log-probability in nats of the piece after the prefix; the pieces after it are
            chosen greedily. The first is therefore the greedy translation with this prefix.

        Raises:
            ValueError: The numbers of sentences and prefixes differ, a prefix is too long for the
                model or has a character that its vocabulary lacks, or the weights are damaged.

        Example:
            >>> import tfformer
            >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
            >>> model = tfformer.Transformer(9, 9, num_layers=1, d_model=8, num_heads=2, d_ff=8)
            >>> translator = tfformer.Translator(model, tokenizer, max_length=8)
            >>> [translations] = translator.continuations(["a b"], ["c d"], count=3)
            >>> [translation.text.startswith("c d") for translation in translations]
            [True, True, True]
        """
        check_pairs(sentences, prefixes)
        count = min(require_size("count", count), self.tokenizers.target.vocab_size - END_ID)
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        begun = encode_prefixes(self.tokenizers.target, prefixes, self.max_length)
        graph = self._graph(
            continue_translations,
            tf.TensorSpec((None, None), tf.int32),
            count=count,
            max_length=self.max_length,
            first_token=self.tokenizers.target.prefix_id,
            shortlist=self.shortlist,
        )

        def decode(ids: np.ndarray, numbers: Sequence[int]) -> Hypotheses:
            return graph(ids, pad([begun[number] for number in numbers]))

        return self._in_batches(encoded, max(1, BATCH_SIZE // count), decode)

    def sample(
        self,
        sentences: Sentences,
        seed: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        batch_size: int = 64,
    ) -> list[str]:
        """Draw a random translation of each sentence.

        The same arguments return the same translations. The draws for a sentence depend on its
        batch and its row in the batch, and therefore on the other sentences.

        Args:
            sentences: B texts, or the result of `encode`.
            seed: From 0 to 2^31 - 1.
            temperature: Above 0; values near 0 approach greedy search.
            top_k: If above 0, only the k most likely tokens may be drawn.
            top_p: If below 1, only the smallest set of most likely tokens whose probabilities add
                up to at least p may be drawn.
            batch_size: Number of sentences of similar length that are decoded together.

        Returns:
            One translation of each sentence.

        Raises:
            ValueError: A setting is invalid, a sentence is not Unicode text, or the weights are
                damaged.
        """
        check_sampling(seed, temperature, top_k, top_p)
        encoded = self.encode(sentences)
        warn_of_truncation([sentences], [encoded], stacklevel=2)
        number = tf.TensorSpec((), tf.int32)
        graph = self._graph(
            sample_ids,
            number,
            number,
            max_length=self.max_length,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            first_token=self.tokenizers.target.prefix_id,
        )
        batch = itertools.count()
        drawn = self._in_batches(
            encoded, batch_size, lambda ids, numbers: graph(ids, seed, next(batch))
        )
        return [translation.text for (translation,) in drawn]

    def score(
        self, sources: Sentences, targets: Sentences, batch_tokens: int = 2048
    ) -> list[ForcedScore]:
        """Score given translations, token by token.

        Args:
            sources: B texts, or the result of `encode`.
            targets: A translation of each source: B texts, or the result of `encode_targets`.
            batch_tokens: Maximum number of target tokens in a batch; pairs of similar length share
                a batch.

        Returns:
            The score of each pair. If the source is blank, it has no tokens; if the target is
            blank, it has only the end token.

        Raises:
            ValueError: The numbers of sources and targets differ, a sentence is not Unicode text,
                or the weights are damaged.
        """
        check_pairs(sources, targets)
        encoded_sources = self.encode(sources)
        encoded_targets = self.encode_targets(targets)
        warn_of_truncation([sources, targets], [encoded_sources, encoded_targets], stacklevel=2)
        source_ids = _ended(encoded_sources)
        target_ids = [[*ids, END_ID] for ids in encoded_targets.ids]

        graph = self._graph(token_log_probs, tf.TensorSpec((None, None), tf.int32))
        scores = [ForcedScore((), np.zeros(0, np.float32)) for _ in source_ids]
        order = [index for index in by_length(target_ids) if source_ids[index]]
        lengths = [len(ids) for ids in target_ids]
        for indices in token_batches(order, lengths, batch_tokens):
            source = pad([source_ids[index] for index in indices])  # (B, S)
            target = pad([target_ids[index] for index in indices])  # (B, T)
            log_probs = graph(source, target).numpy()  # (B, T)
            for index, row in zip(indices, log_probs, strict=True):
                tokens = self.tokenizers.target.pieces(target_ids[index])
                check_finite(row[: len(tokens)])
                scores[index] = ForcedScore(tuple(tokens), row[: len(tokens)])
        return scores

    def aligned(self, sources: Sentences, targets: Sentences) -> list[Aligned]:
        """Return the attention and the probability of each token of given translations.

        The probabilities of a calibrated run are scaled by its `temperature`.

        Args:
            sources: B texts, or the result of `encode`.
            targets: A translation of each source: B texts, or the result of `encode_targets`.

        Returns:
            The pairs, whose methods link words and return confidences.

        Raises:
            ValueError: The numbers of sources and targets differ, a sentence is not Unicode text,
                the weights are damaged, or the model is made from keras-hub.
        """
        check_attention(self)
        check_pairs(sources, targets)
        read, written = self.encode(sources), self.encode_targets(targets)
        warn_of_truncation([sources, targets], [read, written], stacklevel=2)
        ids = tf.TensorSpec((None, None), tf.int32)
        graph = self._graph(aligned_ids, ids, temperature=self.temperature)

        def align_ids(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            log_probs, attention = (tensor.numpy() for tensor in graph(source, target))
            check_finite(log_probs)
            return log_probs, attention

        return align_pairs(self.tokenizers, read.ids, written.ids, align_ids)

    def score_stream(
        self, pairs: Iterable[SentencePair], advance: Callable[[int], None]
    ) -> Iterator[ForcedScore]:
        """Score existing translations of a text of any length, and yield the score of each pair.

        `advance` is called with the number of pairs after each chunk. One warning at the end counts
        the sentences that were truncated.
        """
        total = truncated = 0
        for chunk in in_batches(pairs, CHUNK):
            sources = self.encode([source for source, _ in chunk])
            targets = self.encode_targets([target for _, target in chunk])
            total += len(sources) + len(targets)
            truncated += sources.truncated + targets.truncated
            scores = self.score(sources, targets)
            advance(len(chunk))
            yield from scores
        warn_if_truncated(truncated, total, self.max_length - 1, stacklevel=1)

    def _in_batches(
        self,
        sentences: EncodedSentences,
        batch_size: int,
        decode: Callable[[np.ndarray, Sequence[int]], Hypotheses],
        batch_tokens: int | None = None,
    ) -> list[list[Translation]]:
        """Decode sentences of similar length together with `decode(ids, their_numbers)`.

        A batch has `batch_tokens` tokens or, without them, `batch_size` sentences.
        """
        translations = [[Translation("", 0.0)] for _ in sentences.ids]
        rows = _ended(sentences)
        order = [number for number in by_length(rows) if rows[number]]
        batches = in_batches(order, batch_size)
        if batch_tokens is not None:
            lengths = [len(row) + FIRST_CAPACITY for row in rows]
            batches = token_batches(order, lengths, batch_tokens)
        for numbers in batches:
            hypotheses = decode(pad([rows[number] for number in numbers]), numbers)
            for number, row in zip(numbers, self._texts(hypotheses), strict=True):
                translations[number] = row
        return translations

    def _texts(self, hypotheses: Hypotheses) -> list[list[Translation]]:
        """Decode each sentence's hypotheses, leaving out empty slots."""
        ids, _, scores = (tensor.numpy() for tensor in hypotheses)
        texts = iter(self.tokenizers.target.decode(ids.reshape(-1, ids.shape[-1])))
        translations = []
        for row in scores:
            candidates = [Translation(next(texts), float(score)) for score in row]
            used = is_used(row)  # (N,)
            translations.append(list(itertools.compress(candidates, used)))
        if not all(translations):
            raise ValueError(DAMAGED)
        return translations


def _ended(sentences: EncodedSentences) -> list[list[int]]:
    """Append the end token to every sentence; a blank sentence remains empty."""
    return [[*ids, END_ID] if ids else [] for ids in sentences.ids]
