"""Prepare the text for a training run: read it, train the vocabularies, encode and batch it."""

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.config import Config, corpora_of
from tfformer.data.augmentation import augmented
from tfformer.data.batches import Batches
from tfformer.data.encoding import EncodedText, encode_corpora
from tfformer.data.mixture import shares_by_temperature
from tfformer.data.sources import Row, read_linked_pairs, source_files, without_tag
from tfformer.data.text_cache import cached_text, text_fingerprint
from tfformer.data.tokenizers import Tokenizer
from tfformer.data.word_links import learn_links
from tfformer.run_directory import MODEL_KINDS, Tokenizers
from tfformer.storage.folders import ADDRESS
from tfformer.storage.whole_files import check_regular
from tfformer.training.resume_or_initialise import Start

Report = Callable[[str], None]


@dataclass(frozen=True)
class TrainingData:
    """The training and validation text of a run, encoded, with its tokenizers."""

    tokenizers: Tokenizers
    train: Batches
    valid: Batches
    valid_rows: list[Row]

    @classmethod
    def read(cls, config: Config, start: Start, report: Report) -> "TrainingData":
        """Read both texts, train the tokenizers that `start` does not provide, and encode.

        `report` receives a line per text with the number of rows dropped.
        """
        if config.data.cache and ADDRESS.fullmatch(config.data.cache):
            raise ValueError(
                f"data.cache={config.data.cache} is an address; set it to a folder on this machine"
            )
        valid_rows = list(_read(config, "valid"))
        tokenizers = start.tokenizers
        if tokenizers is None:
            report(f"training the vocabulary on {config.data.train}")
            tokenizers = train_tokenizers(config, start.source_tokenizer)
        train = _batches(config, "train", tokenizers, report)
        valid = _batches(config, "valid", tokenizers, report)
        return cls(tokenizers, train, valid, valid_rows)


def _read(config: Config, role: str) -> Iterator[Row]:
    """Yield the rows of the recipe's `train` or `valid` text."""
    return itertools.chain.from_iterable(_read_corpora(config, role))


def _read_corpora(config: Config, role: str, with_links: bool = False) -> list[Iterator[Row]]:
    """Return the rows of each corpus of the recipe's `train` or `valid` text.

    Altered copies follow the rows of the training text. With links, rows have a third column.
    """
    data_source, folder, languages, split = _source(config, role)
    reader = read_linked_pairs if with_links else MODEL_KINDS[config.model.architecture].read
    read = functools.partial(reader, folder=folder, languages=languages, split=split)
    if tags := config.data.tags:  # a translation model's
        read = functools.partial(read, tags=tags)
    corpora = [read([corpus]) for corpus in corpora_of(data_source)]
    if role == "valid":
        return corpora
    settings, seed = config.data.augment, config.training.seed
    placeholders = config.tokenizer.placeholders
    return [augmented(rows, settings, seed, placeholders, tags) for rows in corpora]


def _source(config: Config, role: str) -> tuple[Any, str, tuple[str, ...] | None, str]:
    data_source = getattr(config.data, role)
    split = "validation" if role == "valid" else "train"  # TensorFlow Datasets' names
    if not data_source:
        raise ValueError(
            f"the recipe has no data.{role}; set it to a file per side, FILE.tsv, tfds:NAME or "
            "phrasebook:SPLIT"
        )
    folder = config.data.folder
    for file in itertools.chain.from_iterable(source_files(data_source, folder)):
        check_regular(file)
    languages = tuple(config.data.languages) if config.data.languages else None
    return data_source, folder, languages, split


def train_tokenizers(config: Config, source_tokenizer: Tokenizer | None = None) -> Tokenizers:
    """Train the tokenizers, or only the target's if `source_tokenizer` is given."""
    settings = config.tokenizer

    def trained(sentences: Iterator[str], normalization: str) -> Tokenizer:
        return Tokenizer.train(
            sentences,
            settings.vocab_size,
            settings.model_type,
            normalization=normalization,
            character_coverage=settings.character_coverage,
            symbols=[*settings.symbols, *config.data.tags],
            byte_fallback=settings.byte_fallback,
            case_variants=settings.case_variants,
        )

    def rows() -> Iterator[Row]:
        for first, *others in _read(config, "train"):
            yield without_tag(first, config.data.tags), *others

    def column(number: int) -> Iterator[str]:
        return (row[number] for row in rows())

    if settings.shared:
        sentences = itertools.chain.from_iterable(rows())
        shared = trained(sentences, settings.normalization)
        return Tokenizers(shared, shared)
    target_normalization = settings.target_normalization or settings.normalization
    return Tokenizers(
        source_tokenizer or trained(column(0), settings.normalization),
        trained(column(1), target_normalization),
    )


def _batches(config: Config, role: str, tokenizers: Tokenizers, report: Report) -> Batches:
    """Encode the text of a role, "train" or "valid", and group it into batches."""
    text = encoded_text(config, role, tokenizers)
    settings = config.training
    shares = cutoff = links = None
    if role == "train":
        _check_tags(config.data.tags, text, tokenizers.source)
        shares = _shares(config, text)
        cutoff = settings.simcut.cutoff if settings.simcut.alpha else None
        if settings.guided_alignment:
            links = text.links
            if links is None or not links.ids.any():
                sizes = (tokenizers.source.vocab_size, tokenizers.target.vocab_size)
                links = learn_links(text, *sizes)
    assert config.data.batch_tokens is not None  # set by `devices.settled`
    batches = Batches(
        text,
        config.data.batch_tokens,
        settings.seed,
        shares=shares,
        packed=settings.jit_compile is True,
        cutoff=cutoff,
        links=links,
    )
    report(f"{role}: {text.report()}; {batches.report()}")
    if shares is not None:
        report(f"{role}: shares of an epoch {', '.join(f'{share:.1%}' for share in shares)}")
    return batches


def _check_tags(tags: Sequence[str], text: EncodedText, tokenizer: Tokenizer) -> None:
    """Raise ValueError for a tag that no row has, or that the vocabulary would divide."""
    for tag in tags:
        if tag not in tokenizer.symbols:
            raise ValueError(
                f"the vocabulary lacks the tag {tag}; train a new one, without --init-from, or "
                "remove the tag from data.tags"
            )
        *before, number = tokenizer.encode([tag])[0]
        if not np.any(text.source.ids[text.source.offsets[:-1] + len(before)] == number):
            raise ValueError(
                f"data.tags has {tag}, but no row of data.train has this tag; add text with the "
                "tag, or remove it from data.tags"
            )


def encoded_text(config: Config, role: str, tokenizers: Tokenizers) -> EncodedText:
    """Encode the text of a role, "train" or "valid", or map it from the recipe's cache."""
    side_tokenizers = MODEL_KINDS[config.model.architecture].side_tokenizers(tokenizers)

    def show(rows_done: int) -> None:
        if sys.stdout.isatty():
            print(f"{role}: {rows_done:,} sentences encoded", end="\r", flush=True)

    with_links = role == "train" and config.training.guided_alignment > 0
    settings = (side_tokenizers, config.data.max_length, show)
    if role == "valid" or not config.data.cache:
        corpora = _read_corpora(config, role, with_links)
        return encode_corpora(corpora, *settings, with_links=with_links)
    source = _source(config, role)
    shares = config.data.augment.to_dict()
    altered = (shares, config.training.seed, config.tokenizer.placeholders)
    copies = altered if any(shares.values()) else None
    tags = [*config.data.tags, *(corpus.tag for corpus in corpora_of(source[0]))]
    return cached_text(
        Path(config.data.cache),
        lambda: {
            "text": text_fingerprint(*source, config.data.tags),
            "copies": copies,
            "tags": tags,
        },
        lambda: _read_corpora(config, role, with_links),
        *settings,
        with_links=with_links,
    )


def _shares(config: Config, text: EncodedText) -> np.ndarray | None:
    """Return the share of each corpus in an epoch; None if each row occurs once."""
    weights = [corpus.weight for corpus in corpora_of(config.data.train)]
    if None not in weights:
        given = np.array(weights, float)
        return given / given.sum()
    if config.data.temperature is not None:
        return shares_by_temperature(text.corpora, config.data.temperature)
    return None
