"""Trim a checkpoint's vocabulary to the pieces that occur in a text.

A sentence whose pieces are all kept is segmented as before. A unigram model chooses the best of all
segmentations, which is still available. BPE merges neighbours by rank, so the pieces that a kept
piece is merged from are also kept.
"""

from __future__ import annotations

import dataclasses
import itertools
import re

from tfformer.checkpoints.foreign_checkpoint import Checkpoint, Rewrites, Vocabulary
from tfformer.checkpoints.vocabulary import SPECIAL, RowOrder, renumbered
from tfformer.checkpoints.weight_names import SOURCE, TokenTable
from tfformer.config import ModelConfig
from tfformer.data.encoding import in_batches
from tfformer.data.imported_tokenizers import CODE
from tfformer.data.sentencepiece_proto import BPE, NORMAL, UNIGRAM, ModelProto
from tfformer.data.sources import read_lines
from tfformer.data.tokenizers import parse_sentencepiece
from tfformer.special_ids import START_ID

COVERAGE = 0.98  # minimum share of known pieces; below it, the text is in another language
CHUNK = 10_000  # lines


def trim(checkpoint: Checkpoint, text: str) -> Checkpoint:
    """Return the checkpoint with the vocabulary of a text whose lines are in both languages.

    The special tokens, the language codes, and the tokens of the checkpoint's two languages are
    kept. The sizes and the coverage are recorded in the provenance under "trimmed". It raises
    ValueError if the text is empty, or if less than `COVERAGE` of its pieces are in the vocabulary.
    """
    vocabularies = [checkpoint.source, checkpoint.target]
    needed, coverage = _needed_pieces(vocabularies, checkpoint.rewrites, text)
    if coverage < COVERAGE:
        raise ValueError(
            f"the vocabulary contains {coverage:.1%} of the pieces of {text}, but --trim needs "
            f"{COVERAGE:.0%}; use a text in the languages of the model"
        )
    if checkpoint.shares_vocabulary:
        kept = _closed(needed[0] | needed[1], vocabularies)
        source, target = (_cut(vocabulary, kept) for vocabulary in vocabularies)
    else:
        source, target = (
            _cut(vocabulary, _closed(pieces, [vocabulary]))
            for vocabulary, pieces in zip(vocabularies, needed, strict=True)
        )
    if checkpoint.target is checkpoint.source:
        target = source
    model = _with_ids(checkpoint.model, checkpoint.target.order, target.order)
    trimmed = dataclasses.replace(checkpoint, model=model, source=source, target=target)
    record = {
        "pieces": [len(c.target.order.rows) for c in (checkpoint, trimmed)],
        "bytes": [_bytes(c) for c in (checkpoint, trimmed)],
        "coverage": round(coverage, 6),
    }
    return dataclasses.replace(trimmed, provenance={**trimmed.provenance, "trimmed": record})


def _with_ids(model: ModelConfig, before: RowOrder, after: RowOrder) -> ModelConfig:
    """Return a model whose rules use the new ids, without words that can no longer occur."""
    numbers = {row: number for number, row in enumerate(after.rows) if number != START_ID}
    ids = {number: numbers[row] for number, row in enumerate(before.rows) if row in numbers}
    ids[START_ID] = START_ID
    rules = model.dialect.rules
    rules = rules.replace(
        bad_words=renumbered(rules.bad_words, ids), start_token=ids[rules.start_token]
    )
    return model.replace(dialect=model.dialect.replace(rules=rules))


def _needed_pieces(
    vocabularies: list[Vocabulary], rewrites: Rewrites, text: str
) -> tuple[list[set[str]], float]:
    """Return the pieces of a text in each vocabulary, and the share of known pieces.

    The text is in both languages, so for each line the vocabulary with more known pieces counts.
    """
    processors = [
        parse_sentencepiece(vocabulary.model, "the tokenizer") for vocabulary in vocabularies
    ]
    known = [set(vocabulary.pieces) for vocabulary in vocabularies]
    needed: list[set[str]] = [set(), set()]
    total = unknown = 0
    for lines in in_batches(read_lines(text), CHUNK):
        for pattern, replacement in rewrites:
            lines = [re.sub(pattern, replacement, line) for line in lines]
        rows = [processor.encode(lines, out_type=str) for processor in processors]
        for pair in zip(*rows, strict=True):
            counts = []
            for pieces, known_pieces, needed_pieces in zip(pair, known, needed, strict=True):
                needed_pieces.update(pieces)
                counts.append((sum(piece not in known_pieces for piece in pieces), len(pieces)))
            lacking, length = min(counts)
            unknown += lacking
            total += length
    if not total:
        raise ValueError(f"{text} contains no text; use sentences in both languages")
    return needed, 1 - unknown / total


def _closed(kept: set[str], vocabularies: list[Vocabulary]) -> set[str]:
    """Return the kept pieces, their characters, and all pieces that BPE merges them from.

    The result includes the special pieces of every vocabulary, so that equal vocabularies remain
    equal.
    """
    kept = kept | {character for piece in kept for character in piece}
    for vocabulary in vocabularies:
        kept |= {piece for piece in vocabulary.pieces if CODE.fullmatch(piece)}
        kept |= {vocabulary.prefix} if vocabulary.prefix else set()
        start = vocabulary.order.rows[START_ID]
        kept |= {vocabulary.pieces[start]} if start is not None else set()
    models = [ModelProto.FromString(vocabulary.model) for vocabulary in vocabularies]
    for model in models:
        kept |= {piece.piece for piece in model.pieces if piece.type != NORMAL}
    for model in models:
        if model.trainer_spec.model_type == BPE:
            scores = {piece.piece: piece.score for piece in model.pieces}
            kept = kept.union(*(_merged(piece, scores) for piece in kept))
        elif model.trainer_spec.model_type == UNIGRAM:  # the lowest score sets the unknown's
            texts = [piece for piece in model.pieces if piece.type == NORMAL]
            kept.add(min(texts, key=lambda piece: piece.score).piece)
    return kept


def _merged(piece: str, scores: dict[str, float]) -> set[str]:
    """Return a piece and the intermediate pieces that BPE merges it from.

    Example:
        >>> sorted(_merged("abc", {"bc": -1.0, "abc": -2.0, "ab": -3.0}))
        ['abc', 'bc']
    """
    symbols = list(piece)
    made: set[str] = set()
    while True:
        pairs = [first + second for first, second in itertools.pairwise(symbols)]
        known = [index for index, pair in enumerate(pairs) if pair in scores]
        if not known:
            return made
        best = max(known, key=lambda index: (scores[pairs[index]], -index))
        symbols[best : best + 2] = [pairs[best]]
        made.add(pairs[best])


def _cut(vocabulary: Vocabulary, kept: set[str]) -> Vocabulary:
    """Return a vocabulary with the kept pieces, in their order, and its SentencePiece model."""
    model = ModelProto.FromString(vocabulary.model)
    pieces = [piece for piece in model.pieces if piece.piece in kept]
    del model.pieces[:]
    model.pieces.extend(pieces)
    model.trainer_spec.vocab_size = len(pieces)
    rows = vocabulary.order.rows
    ordinary = [row for row in rows[SPECIAL:] if row is not None and vocabulary.pieces[row] in kept]
    return dataclasses.replace(
        vocabulary,
        model=model.SerializeToString(),
        order=RowOrder((*rows[:SPECIAL], *ordinary), vocabulary.order.foreign_size),
        languages=[piece for piece in vocabulary.languages if piece in kept],
    )


def _bytes(checkpoint: Checkpoint) -> int:
    count = 0
    for weight, tensor in checkpoint.tensors.items():
        size = tensor.size
        if isinstance(weight, TokenTable):
            vocabulary = checkpoint.source if weight == SOURCE else checkpoint.target
            size = size // len(tensor) * len(vocabulary.order.rows)
        count += size
    return 4 * count
