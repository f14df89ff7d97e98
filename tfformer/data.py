"""Sentences and pairs of them from text files, TSV, TFDS or the phrasebook, as batches of ids. Knows no model."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import gzip
import hashlib
import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from tfformer.special_ids import END_ID, PAD_ID, START_ID
from tfformer.tokenizers import Tokenizer

SentencePair = tuple[str, str]
Sides = tuple[str, ...]  # a sentence pair, or (sentence,) for a language model
Cut = Callable[[Tokenizer, Sequence[str]], list[list[int]]]  # how sentences become ids

CHUNK = 10_000  # sentences or pairs encoded at a time, so that memory holds their text only

# Reading text


def read_pairs(
    source: str | Path | Sequence[str | Path],
    folder: str | Path = ".",
    languages: tuple[str, str] | None = None,
    split: str = "train",
) -> Iterator[SentencePair]:
    """The (source, target) sentences of a data source, one of four forms; file paths are relative to `folder`.

    - `[train.en, train.de]`: two text files, line by line; `.gz` too.
    - `train.tsv`: one file of source, tab, target lines; `.tsv.gz` too.
    - `tfds:NAME` or `tfds:NAME@SPLIT`: TensorFlow Datasets; `languages` are the keys of source and target, by
      default the dataset's own order; `split` is for a NAME without one.
    - `phrasebook:SPLIT`: the sentences that come with the package.

    Raises ValueError for another form, for sides that do not match and for text no tokenizer should see.
    """
    name = str(source)
    if not isinstance(source, str | Path) and len(source) == 2:
        pairs = _aligned_pairs(*(Path(folder, path) for path in source))
    elif name.startswith("tfds:"):
        pairs = _tfds_rows(name.removeprefix("tfds:"), languages, split, sides=2)
    elif name.startswith("phrasebook:"):
        pairs = _phrasebook_pairs(name.removeprefix("phrasebook:"))
    elif name.endswith((".tsv", ".tsv.gz")):
        pairs = _tsv_pairs(Path(folder, name))
    else:
        raise ValueError(
            f"data source {source!r} has none of the known forms; give [SOURCE_FILE, TARGET_FILE], FILE.tsv, "
            "tfds:NAME@SPLIT or phrasebook:SPLIT"
        )
    return _at_least_one(pairs, source, "sentence pair")


def read_sentences(
    source: str | Path, folder: str | Path = ".", languages: tuple[str] | None = None, split: str = "train"
) -> Iterator[tuple[str]]:
    """The sentences (sentence,) of a data source, for a language model: as `read_pairs`, but of one side.

    - `train.txt`: a text file, line by line; `.gz` too.
    - `tfds:NAME` or `tfds:NAME@SPLIT`: TensorFlow Datasets; `languages` holds the key of the text.
    - `phrasebook:SPLIT`: the sentences that come with the package; `languages` is [en] or [de].
    """
    name = str(source)
    if not isinstance(source, str | Path) or name.endswith((".tsv", ".tsv.gz")):
        raise ValueError(
            f"data source {source!r} has two sides, but a language model reads one text; give FILE, tfds:NAME@SPLIT or "
            "phrasebook:SPLIT"
        )
    if name.startswith("tfds:"):
        rows = _tfds_rows(name.removeprefix("tfds:"), languages, split, sides=1)
    elif name.startswith("phrasebook:"):
        rows = _phrasebook_sentences(name.removeprefix("phrasebook:"), languages)
    else:
        rows = ((line,) for line in read_lines(Path(folder, name)))
    return _at_least_one(rows, source, "sentence")


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file, unpacked if it ends in `.gz`; raises FileNotFoundError or what `lines` raises."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file; correct the path or fetch the data first")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        try:
            yield from lines(stream, str(path))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: not a whole gzip file; fetch or compress it again ({error})") from error


def lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a UTF-8 stream, ended by a newline alone (never by U+2028 and the like), without "\\r\\n" or "\\n".

    Raises ValueError, with `name` and the line's number, for bytes that are not UTF-8 and for NUL.
    """
    for number, line in enumerate(stream, start=1):
        yield _text(line.removesuffix(b"\n").removesuffix(b"\r"), f"{name}, line {number}")


def _text(line: bytes, place: str) -> str:
    if b"\0" in line:
        raise ValueError(f"{place}: holds a NUL byte, which no text has; save the file as UTF-8 text")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{place}: byte {error.start + 1}, {line[error.start]:#04x}, is not UTF-8; convert the text to UTF-8"
        ) from error


def _at_least_one(rows: Iterator[Sides], source: object, what: str) -> Iterator[Sides]:
    first = next(rows, None)
    if first is None:
        raise ValueError(f"data source {source!r} is empty; give at least one {what}")
    yield first
    yield from rows


def _aligned_pairs(source_path: Path, target_path: Path) -> Iterator[SentencePair]:
    source_count = target_count = 0
    for source, target in itertools.zip_longest(read_lines(source_path), read_lines(target_path)):
        source_count += source is not None
        target_count += target is not None
        if source_count == target_count:
            yield source, target
    if source_count != target_count:
        raise ValueError(
            f"{source_path} has {source_count:,} lines and {target_path} {target_count:,}, but line n of one must "
            "translate line n of the other; give two files of the same length"
        )


def _tsv_pairs(path: Path) -> Iterator[SentencePair]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise ValueError(
                f"{path}, line {number}: {len(columns)} columns, but a line must have 2, source and target; "
                "put exactly one tab between them"
            )
        yield columns[0], columns[1]


def _tfds_rows(name: str, languages: tuple[str, ...] | None, split: str, sides: int) -> Iterator[Sides]:
    name, _, own_split = name.partition("@")
    tfds, builder = _tfds_builder(name)
    keys = _tfds_languages(builder.info, languages, sides)
    _prepare(name, builder)
    try:
        dataset = builder.as_dataset(split=own_split or split)
    except ValueError as error:
        raise ValueError(
            f"TFDS dataset {name!r} has no split {own_split or split!r}; give one of {', '.join(builder.info.splits)}"
        ) from error
    for number, row in enumerate(tfds.as_numpy(dataset), start=1):
        place = f"tfds:{name}, row {number}"
        yield tuple(_text(row[key], place) for key in keys)


def _tfds_builder(name: str):
    try:
        import tensorflow_datasets as tfds
    except ModuleNotFoundError as error:
        raise ValueError(
            f"data source 'tfds:{name}' needs TensorFlow Datasets; pip install 'tfformer[tfds]'"
        ) from error
    try:
        return tfds, tfds.builder(name)
    except ValueError as error:
        raise ValueError(
            f"TensorFlow Datasets knows no {name!r}; choose one from https://www.tensorflow.org/datasets/catalog"
        ) from error


def _prepare(name: str, builder) -> None:
    """Fetch the data set, if it is not here already; TFDS has errors of its own for what can go wrong."""
    try:
        builder.download_and_prepare()
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise OSError(f"TFDS cannot fetch {name!r} ({reason}); check network and disk, and try again") from error


def _tfds_languages(info, languages: tuple[str, ...] | None, sides: int) -> tuple[str, ...]:
    chosen, known, count = languages or info.supervised_keys, list(info.features), {1: "one", 2: "two"}[sides]
    if chosen is None:
        raise ValueError(f"TFDS dataset {info.name!r} names no source and target; give languages, {count} of {known}")
    if len(chosen) != sides or not set(chosen) <= set(known):
        raise ValueError(f"languages {list(chosen)} do not fit TFDS dataset {info.name!r}; give {count} of {known}")
    return tuple(chosen)


def _phrasebook_pairs(split: str) -> Iterator[SentencePair]:
    from tfformer import phrasebook

    return ((pair.source, pair.target) for pair in phrasebook.pairs(split))


def _phrasebook_sentences(split: str, languages: tuple[str] | None) -> Iterator[tuple[str]]:
    if languages not in (("en",), ("de",)):
        raise ValueError(f"languages {list(languages or [])} do not choose a side of the phrasebook; give [en] or [de]")
    return ((pair[languages == ("de",)],) for pair in _phrasebook_pairs(split))


# Text to ids


@dataclasses.dataclass(frozen=True)
class IdRows:
    """Many rows of ids in two flat arrays, so that millions fit: row i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: np.ndarray  # (sum of lengths,) int32
    offsets: np.ndarray  # (rows + 1,) int64

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> IdRows:
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(np.fromiter(itertools.chain.from_iterable(rows), np.int32, offsets[-1]), offsets)

    @classmethod
    def join(cls, parts: Sequence[IdRows]) -> IdRows:
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        return cls(np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]), np.cumsum(lengths))

    @property
    def lengths(self) -> np.ndarray:
        """(rows,) int64."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def padded(self, rows: Iterable[int]) -> np.ndarray:
        """The chosen rows as (B, longest) int32, with PAD_ID after their ends."""
        chosen = [self[row] for row in rows]
        batch = np.full((len(chosen), max(map(len, chosen))), PAD_ID, np.int32)
        for place, ids in zip(batch, chosen, strict=True):
            place[: len(ids)] = ids
        return batch


def like_length_batches(rows: Sequence[Sequence[int]], batch_size: int) -> Iterator[tuple[list[int], np.ndarray]]:
    """The rows that are not empty, shortest first, `batch_size` at a time: their numbers and their ids, padded."""
    order = [number for number in sorted(range(len(rows)), key=lambda number: len(rows[number])) if rows[number]]
    for first in range(0, len(order), batch_size):
        numbers = order[first : first + batch_size]
        yield numbers, IdRows.of([rows[number] for number in numbers]).padded(range(len(numbers)))


@dataclasses.dataclass(frozen=True)
class EncodedText:
    """Sentence pairs, or sentences, as ids, END_ID closing every row, and the count of those left out."""

    sides: tuple[IdRows, ...]
    max_length: int
    dropped_empty: int
    dropped_long: int

    @property
    def source(self) -> IdRows:
        return self.sides[0]

    @property
    def target(self) -> IdRows:
        """What is learned; of text with one side, that side."""
        return self.sides[-1]

    @property
    def kept(self) -> int:
        return len(self.target)

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, in hexadecimal: the same for the same text, vocabulary and `max_length`."""
        return hashlib.sha256(b"".join(rows.ids.tobytes() + rows.offsets.tobytes() for rows in self.sides)).hexdigest()

    def report(self) -> str:
        if len(self.sides) == 1:
            return (
                f"{self.kept:,} sentences kept ({len(self.target.ids):,} tokens), {self.dropped_empty:,} dropped as "
                f"empty, {self.dropped_long:,} as longer than {self.max_length:,} tokens"
            )
        return (
            f"{self.kept:,} sentence pairs kept ({len(self.source.ids):,} source and {len(self.target.ids):,} target "
            f"tokens), {self.dropped_empty:,} dropped for an empty side, {self.dropped_long:,} for a side of more than "
            f"{self.max_length:,} tokens"
        )


def encode_text(
    rows: Iterable[Sides],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
    cut: Cut = lambda tokenizer, sentences: tokenizer.encode(sentences),
) -> EncodedText:
    """Tokenizes each side and drops the rows with an empty side or with more than `max_length` ids, END_ID included.

    Calls `on_progress` with the number of rows read so far. Raises ValueError where none is left.
    """
    parts, rows_done = [], 0
    for chunk in _chunks(rows):
        parts.append(_encode_chunk(chunk, tokenizers, max_length, cut))
        on_progress(rows_done := rows_done + len(chunk))
    encoded = EncodedText(
        sides=tuple(IdRows.join([part.sides[side] for part in parts]) for side in range(len(tokenizers))),
        max_length=max_length,
        dropped_empty=sum(part.dropped_empty for part in parts),
        dropped_long=sum(part.dropped_long for part in parts),
    )
    if not encoded.kept:
        raise ValueError(f"no text is left: {encoded.report()}; give more text or raise max_length")
    return encoded


def _chunks(rows: Iterable[Sides]) -> Iterator[list[Sides]]:
    rows = iter(rows)
    return iter(lambda: list(itertools.islice(rows, CHUNK)), [])


def _encode_chunk(chunk: list[Sides], tokenizers: Sequence[Tokenizer], max_length: int, cut: Cut) -> EncodedText:
    sides = [cut(tokenizer, side) for tokenizer, side in zip(tokenizers, zip(*chunk, strict=True), strict=True)]
    full = [[[*ids, END_ID] for ids in row] for row in zip(*sides, strict=True) if all(row)]
    kept = [row for row in full if max(map(len, row)) <= max_length]
    return EncodedText(
        sides=tuple(IdRows.of([row[side] for row in kept]) for side in range(len(tokenizers))),
        max_length=max_length,
        dropped_empty=len(chunk) - len(full),
        dropped_long=len(full) - len(kept),
    )


def random_cut(alpha: float, max_length: int, seed: Sequence[int]) -> Cut:
    """Cuts sentences at random, by `Tokenizer.sample`; one that would not fit into `max_length` ids is cut as usual.

    So the same rows are dropped as with the usual cuts.
    """
    random = np.random.default_rng(seed)

    def cut(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
        usual = tokenizer.encode(sentences)
        drawn = tokenizer.sample(sentences, alpha, seed=int(random.integers(2**32)))
        pairs = zip(drawn, usual, strict=True)
        return [one if max(len(one), len(other)) < max_length else other for one, other in pairs]

    return cut


def sampled_texts(
    rows: Sequence[Sides], tokenizers: Sequence[Tokenizer], max_length: int, alpha: float, seed: int
) -> Callable[[int], EncodedText]:
    """The text of epoch 0, 1, ..., cut at random in another way each time (subword regularisation, Kudo 2018)."""
    return lambda epoch: encode_text(rows, tokenizers, max_length, cut=random_cut(alpha, max_length, [seed, epoch]))


# Ids to batches


def snake_order(source_lengths: np.ndarray, target_lengths: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """The order in which pairs of like lengths are neighbours, (pairs,) int64, longest first.

    Pairs are sorted by their longer side, which decides how many fit into a batch; of equal ones, by how much longer
    the source is, upwards and downwards in turn, so that the shorter side does not jump. `ties` decides the rest.
    """
    longer = np.maximum(source_lengths, target_lengths)
    upwards = np.where(longer % 2, 1, -1)
    return np.lexsort((ties, upwards * (source_lengths - target_lengths), -longer))


def plan_batches(longer_lengths: np.ndarray, batch_tokens: int) -> list[tuple[int, int]]:
    """Cuts rows, the longest first, into (start, stop) of at most `batch_tokens` padded tokens a side.

    Vaswani et al. 2017, section 5.1. The last two batches share their rows evenly, so that none is a mere rest. Raises
    ValueError where the longest pair does not fit into a batch.
    """
    if longer_lengths[0] > batch_tokens:
        raise ValueError(
            f"batch_tokens is {batch_tokens:,}, but one sentence has {longer_lengths[0]:,} tokens and must fit; "
            f"raise batch_tokens, or encode with max_length={batch_tokens}"
        )
    bounds, pairs = [0], len(longer_lengths)
    while bounds[-1] < pairs:
        bounds.append(min(pairs, bounds[-1] + batch_tokens // int(longer_lengths[bounds[-1]])))
    if len(bounds) > 2:
        bounds[-2] = min(bounds[-2], (bounds[-3] + pairs) // 2)
    return list(itertools.pairwise(bounds))


def plan_steps(longer_lengths: np.ndarray, batch_tokens: int, steps: int) -> list[tuple[int, int]]:
    """As `plan_batches`, but in exactly `steps` batches: with no more tokens a batch than that takes, or halved ones.

    Raises ValueError where there are fewer rows than steps.
    """
    rows = len(longer_lengths)
    if rows < steps:
        raise ValueError(f"{rows:,} rows cannot make {steps:,} batches; give more text or fewer steps")
    budgets = range(batch_tokens, rows * int(longer_lengths[0]) + batch_tokens)
    enough = bisect.bisect_left(budgets, -steps, key=lambda tokens: -len(plan_batches(longer_lengths, tokens)))
    plan = plan_batches(longer_lengths, budgets[enough])
    while len(plan) < steps:
        start, stop = most = max(plan, key=lambda bounds: bounds[1] - bounds[0])
        middle = (start + stop) // 2
        plan[plan.index(most) : plan.index(most) + 1] = [(start, middle), (middle, stop)]
    return plan


class Epoch(NamedTuple):
    """One pass over the text: as it is cut into tokens this time, its rows in their order, its batches in theirs."""

    text: EncodedText
    order: np.ndarray  # (rows,)
    plan: np.ndarray  # (steps, 2): each batch as (start, stop) in `order`


class Batches:
    """Batches of rows of like lengths; batch `step` follows from the text, `batch_tokens`, `seed` and `step` alone.

    So a training run resumes at any step without a state. Every epoch holds each row once, in as many batches; which of
    the equally long rows share a batch, and the order of batches, change with the epoch. `sampled` gives the text of an
    epoch, where it is cut anew each time: then a batch may need a few tokens more than `batch_tokens`.
    Raises what `plan_batches` raises.
    """

    def __init__(
        self,
        text: EncodedText,
        batch_tokens: int,
        seed: int = 0,
        sampled: Callable[[int], EncodedText] | None = None,
    ):
        self.text = text
        self.batch_tokens = batch_tokens
        self.seed = seed
        self._text_of = sampled or (lambda epoch: text)
        self._epoch = functools.lru_cache(maxsize=2)(self._shuffle)
        self.steps_per_epoch = len(plan_batches(_longer(self._text_of(0)), batch_tokens))

    @functools.cached_property
    def padding_share(self) -> float:
        """The share of padding among all positions of all sides in the first epoch; in the others about the same."""
        text, order, plan = self._epoch(0)
        starts, stops = np.sort(plan, axis=0).T
        longest = [np.maximum.reduceat(rows.lengths[order], starts) for rows in text.sides]
        return 1 - sum(len(rows.ids) for rows in text.sides) / float(sum(longest) @ (stops - starts))

    def report(self) -> str:
        return f"{self.steps_per_epoch:,} batches an epoch, {self.padding_share:.1%} padding"

    def batch(self, step: int) -> tuple[dict[str, np.ndarray] | np.ndarray, np.ndarray, np.ndarray]:
        """({"source": (B, S), "target": (B, T)}, labels (B, T), weights (B, T)): ids are int32, weights float32.

        `labels` end in END_ID; `target` is the same one place later, behind START_ID; `weights` are 1 at real labels.
        Text with one side has no source: `target` takes the place of the dictionary.
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        text, order, plan = self._epoch(epoch)
        rows = order[slice(*plan[place])]
        *sources, labels = (side.padded(rows) for side in text.sides)
        is_real = labels != PAD_ID
        previous = np.pad(labels[:, :-1], [(0, 0), (1, 0)], constant_values=START_ID)
        target = np.where(is_real, previous, PAD_ID)
        inputs = {"source": sources[0], "target": target} if sources else target
        return inputs, labels, is_real.astype(np.float32)

    def dataset(self, first_step: int = 0):
        """An endless `tf.data.Dataset` of `batch(first_step)`, `batch(first_step + 1)`, ..."""
        return self._dataset(lambda: map(self.batch, itertools.count(first_step)))

    def dataset_of_epochs(self):
        """A `tf.data.Dataset` of one epoch, the next one at each pass."""
        import tensorflow as tf

        steps, epochs = self.steps_per_epoch, itertools.count()

        def one_epoch():
            epoch = next(epochs)
            return map(self.batch, range(epoch * steps, (epoch + 1) * steps))

        return self._dataset(one_epoch).apply(tf.data.experimental.assert_cardinality(steps))

    def _dataset(self, generator: Callable[[], Iterator]):
        import tensorflow as tf

        ids, weights = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.float32)
        inputs = {"source": ids, "target": ids} if len(self.text.sides) == 2 else ids
        options = tf.data.Options()
        options.autotune.enabled = False  # nothing to tune; and its thread may sleep on for a minute when training ends
        dataset = tf.data.Dataset.from_generator(generator, output_signature=(inputs, ids, weights))
        return dataset.prefetch(2).with_options(options)

    def _shuffle(self, epoch: int) -> Epoch:
        random = np.random.default_rng([self.seed, epoch])
        text = self._text_of(epoch)
        order = snake_order(text.source.lengths, text.target.lengths, ties=random.random(text.kept))
        plan = plan_steps(_longer(text), self.batch_tokens, self.steps_per_epoch)
        return Epoch(text, order, random.permutation(plan))


def _longer(text: EncodedText) -> np.ndarray:
    """The lengths of the rows' longer sides, downwards."""
    return np.sort(np.maximum(text.source.lengths, text.target.lengths))[::-1]


def training_dataset(
    pairs: Iterable[SentencePair],
    tokenizer: Tokenizer,
    target_tokenizer: Tokenizer | None = None,
    *,
    batch_tokens: int = 4096,
    max_length: int = 128,
    seed: int = 0,
    sampling_alpha: float | None = None,
):
    """Sentence pairs -> a `tf.data.Dataset` for `model.fit(dataset, epochs=...)`; each pass is shuffled anew.

    Elements are those of `Batches.batch`; both sides share `tokenizer` unless the target has its own. With
    `sampling_alpha`, each pass cuts the sentences anew at random (`Tokenizer.sample`). Warns where pairs are dropped;
    raises what `encode_text` and `Batches` raise.
    """
    vocabularies, sampled = (tokenizer, target_tokenizer or tokenizer), None
    if sampling_alpha is not None:
        pairs = list(pairs)
        sampled = sampled_texts(pairs, vocabularies, max_length, sampling_alpha, seed)
    encoded = encode_text(pairs, vocabularies, max_length)
    if encoded.dropped_empty or encoded.dropped_long:
        warnings.warn(encoded.report(), stacklevel=2)
    return Batches(encoded, batch_tokens, seed, sampled).dataset_of_epochs()
