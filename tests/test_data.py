"""Sources against files written by hand, encoding against hand-written ids, batches against brute force over epochs."""

import gzip
import io
import itertools
import random
import sys

import numpy as np
import pytest

from tfformer import data, tokenizers
from tfformer.data import Batches, IdRows
from tfformer.special_ids import END_ID, PAD_ID, START_ID
from tfformer.tokenizers import Tokenizer

PAIRS = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("dogs see cats", "Hunde sehen Katzen")]


def refusal(message, error=ValueError):
    """`pytest.raises` for an error whose whole message, a regular expression, is on one line."""
    return pytest.raises(error, match=f"^{message}$")


# Reading text


def write_sides(folder, pairs, suffix=""):
    write = gzip.compress if suffix else bytes
    for side, name in enumerate(("train.en", "train.de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (folder / f"{name}{suffix}").write_bytes(write(text))
    return [f"train.en{suffix}", f"train.de{suffix}"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files_are_read_line_by_line(tmp_path, suffix):
    paths = write_sides(tmp_path, PAIRS, suffix)
    assert list(data.read_pairs(paths, tmp_path)) == PAIRS
    assert list(data.read_pairs([str(tmp_path / path) for path in paths])) == PAIRS


@pytest.mark.parametrize("name", ["train.tsv", "train.tsv.gz"])
def test_tsv_is_read_line_by_line(tmp_path, name):
    write = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(write("".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()))
    assert list(data.read_pairs(name, tmp_path)) == PAIRS
    assert list(data.read_pairs(tmp_path / name)) == PAIRS


def test_only_a_newline_ends_a_line():
    text = "one\u2028still one\x85\x0b\x0c\x1c\rstill\r\ntwo\n\n four\r"
    assert list(data.lines(io.BytesIO(text.encode()), "standard input")) == [
        "one\u2028still one\x85\x0b\x0c\x1c\rstill",
        "two",
        "",
        " four",
    ]
    assert list(data.lines(io.BytesIO(b""), "standard input")) == []


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_read_lines_keeps_every_line(tmp_path, name):
    (tmp_path / name).write_bytes((gzip.compress if name.endswith(".gz") else bytes)("é\n\nß".encode()))
    assert list(data.read_lines(tmp_path / name)) == ["é", "", "ß"]


def test_text_that_no_tokenizer_should_see_is_named_by_line():
    with refusal("standard input, line 2: byte 4, 0xe9, is not UTF-8; convert the text to UTF-8"):
        list(data.lines(io.BytesIO(b"fine\ncaf\xe9\n"), "standard input"))
    with refusal("standard input, line 3: holds a NUL byte, which no text has; save the file as UTF-8 text"):
        list(data.lines(io.BytesIO(b"fine\n\na\0b\n"), "standard input"))


def test_a_missing_file_is_named(tmp_path):
    with refusal(".*train.en: there is no such file; correct the path or fetch the data first", FileNotFoundError):
        list(data.read_pairs(["train.en", "train.de"], tmp_path))


DAMAGES = {
    "cut short": lambda packed: packed[:-9],
    "not packed": lambda packed: b"plain text\n",
    "scrambled": lambda packed: packed[:10] + b"\xff" * 20 + packed[30:],
    "wrong checksum": lambda packed: packed[:-8] + bytes(8),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_broken_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "text.gz"
    path.write_bytes(damage(gzip.compress("".join(f"line {i}\n" for i in range(100)).encode())))
    with refusal(r".*text.gz: not a whole gzip file; fetch or compress it again \(.*\)"):
        list(data.read_lines(path))


@pytest.mark.parametrize("source_count, target_count", [(3, 5), (5, 3), (0, 2)])
def test_files_of_different_length_are_refused_with_both_counts(tmp_path, source_count, target_count):
    (tmp_path / "train.en").write_text("a dog\n" * source_count)
    (tmp_path / "train.de").write_text("ein Hund\n" * target_count)
    with refusal(
        f".*train.en has {source_count} lines and .*train.de {target_count}, but line n of one must translate line n "
        "of the other; give two files of the same length"
    ):
        for pair in data.read_pairs(["train.en", "train.de"], tmp_path):
            assert pair == ("a dog", "ein Hund")


def test_empty_sources_are_refused(tmp_path):
    for name in ("train.en", "train.de", "train.tsv"):
        (tmp_path / name).write_bytes(b"")
    with refusal(r"data source \['train.en', 'train.de'\] is empty; give at least one sentence pair"):
        list(data.read_pairs(["train.en", "train.de"], tmp_path))
    with refusal("data source 'train.tsv' is empty; give at least one sentence pair"):
        list(data.read_pairs("train.tsv", tmp_path))


@pytest.mark.parametrize("line, columns", [("a dog", 1), ("", 1), ("a\tb\tc", 3)])
def test_a_tsv_line_without_two_columns_is_named(tmp_path, line, columns):
    (tmp_path / "train.tsv").write_text(f"a dog\tein Hund\n{line}\n")
    with refusal(
        f".*train.tsv, line 2: {columns} columns, but a line must have 2, source and target; "
        "put exactly one tab between them"
    ):
        list(data.read_pairs("train.tsv", tmp_path))


@pytest.mark.parametrize("source", ["train.txt", "", ["train.en"], ["a", "b", "c"], [], "phrasebook"])
def test_a_source_of_no_known_form_is_refused(source):
    with pytest.raises(ValueError) as error:
        data.read_pairs(source)
    assert str(error.value) == (
        f"data source {source!r} has none of the known forms; give [SOURCE_FILE, TARGET_FILE], FILE.tsv, "
        "tfds:NAME@SPLIT or phrasebook:SPLIT"
    )


def test_the_phrasebook_is_a_source():
    from tfformer import phrasebook

    pairs = list(data.read_pairs("phrasebook:valid"))
    assert pairs == [(pair.source, pair.target) for pair in phrasebook.pairs("valid")] and len(pairs) > 1
    with pytest.raises(ValueError, match="tomorrow"):
        list(data.read_pairs("phrasebook:tomorrow"))


# TensorFlow Datasets


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory):
    """Two datasets prepared by TFDS itself: `tiny_translation` knows its source side, `tiny_sides` does not."""
    import tensorflow_datasets as tfds

    class Tiny(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples(PAIRS), "validation": self._generate_examples(PAIRS[:1])}

        def _generate_examples(self, pairs):
            yield from ((i, {"en": source, "de": target}) for i, (source, target) in enumerate(pairs))

    class TinyTranslation(Tiny):
        def _info(self):
            features = tfds.features.Translation(("de", "en"))
            return tfds.core.DatasetInfo(builder=self, features=features, supervised_keys=("en", "de"))

    class TinySides(Tiny):
        def _info(self):
            text = tfds.features.Text()
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({"de": text, "en": text}))

        def _generate_examples(self, pairs):
            yield 0, {"en": b"not \xff text", "de": "kein Text"}

    folder = tmp_path_factory.mktemp("tfds")
    for builder in (TinyTranslation, TinySides):
        builder(data_dir=folder).download_and_prepare()
    return folder


@pytest.fixture
def tfds(tfds_folder, monkeypatch):
    import tensorflow_datasets as tfds

    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tfds_folder))


def test_tfds_gives_the_sides_and_the_split_asked_for(tfds):
    reversed_pairs = [(target, source) for source, target in PAIRS]
    assert sorted(data.read_pairs("tfds:tiny_translation")) == sorted(PAIRS)
    assert sorted(data.read_pairs("tfds:tiny_translation", languages=("de", "en"))) == sorted(reversed_pairs)
    assert list(data.read_pairs("tfds:tiny_translation", split="validation")) == PAIRS[:1]
    assert list(data.read_pairs("tfds:tiny_translation@validation", languages=["en", "de"])) == PAIRS[:1]
    assert len(list(data.read_pairs("tfds:tiny_translation@train[:2]"))) == 2
    assert list(data.read_pairs("tfds:tiny_translation")) == list(data.read_pairs("tfds:tiny_translation"))


def test_tfds_errors_name_what_there_is(tfds):
    with refusal("TFDS dataset 'tiny_translation' has no split 'test'; give one of train, validation"):
        list(data.read_pairs("tfds:tiny_translation@test"))
    with refusal(
        "TensorFlow Datasets knows no 'no_such_translation'; choose one from https://www.tensorflow.org/datasets.*"
    ):
        list(data.read_pairs("tfds:no_such_translation"))
    for languages in (("en", "fr"), ("en",)):
        with refusal(r"languages \['en'.*\] do not fit TFDS dataset 'tiny_translation'; give two of \['de', 'en'\]"):
            list(data.read_pairs("tfds:tiny_translation", languages=languages))
    assert sorted(data.read_sentences("tfds:tiny_translation", languages=("en",))) == sorted((en,) for en, _ in PAIRS)
    with refusal(r"languages \['en', 'de'\] do not fit TFDS dataset 'tiny_translation'; give one of \['de', 'en'\]"):
        list(data.read_sentences("tfds:tiny_translation", languages=("en", "de")))
    with refusal(r"TFDS dataset 'tiny_sides' names no source and target; give languages, two of \['de', 'en'\]"):
        list(data.read_pairs("tfds:tiny_sides"))
    with refusal("tfds:tiny_sides, row 1: byte 5, 0xff, is not UTF-8; convert the text to UTF-8"):
        list(data.read_pairs("tfds:tiny_sides", languages=("en", "de")))


def test_tfds_that_cannot_fetch_is_one_line(tfds, monkeypatch):
    import tensorflow_datasets

    def refuse(self, **_):
        raise Exception("Failed to get url http://a/b.\nHTTP code: 404.")

    monkeypatch.setattr(type(tensorflow_datasets.builder("tiny_translation")), "download_and_prepare", refuse)
    with pytest.raises(OSError, match=r"cannot fetch 'tiny_translation' \(Failed to get url http://a/b\.\); check"):
        list(data.read_pairs("tfds:tiny_translation"))


def test_tfds_not_installed_gives_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with refusal("data source 'tfds:a/b' needs TensorFlow Datasets; pip install 'tfformer\\[tfds\\]'"):
        list(data.read_pairs("tfds:a/b"))


def test_one_side_of_a_source_for_a_language_model(tmp_path):
    (tmp_path / "text.en.gz").write_bytes(gzip.compress(b"A house.\n\nA tree.\n"))
    assert list(data.read_sentences("text.en.gz", tmp_path)) == [("A house.",), ("",), ("A tree.",)]
    both = list(data.read_pairs("phrasebook:valid"))
    for side, language in enumerate(("en", "de")):
        sentences = list(data.read_sentences("phrasebook:valid", languages=(language,)))
        assert sentences == [(pair[side],) for pair in both]
    with refusal(r"languages \['en', 'de'\] do not choose a side of the phrasebook; give \[en\] or \[de\]"):
        data.read_sentences("phrasebook:valid", languages=("en", "de"))
    for source in (["a.en", "a.de"], "a.tsv"):
        with refusal(
            r"data source .* has two sides, but a language model reads one text; give FILE, tfds:NAME@SPLIT or .*"
        ):
            data.read_sentences(source, tmp_path)
    (tmp_path / "empty.txt").write_bytes(b"")
    with refusal(r"data source 'empty.txt' is empty; give at least one sentence"):
        list(data.read_sentences("empty.txt", tmp_path))


# Text to ids


class WordIds:
    """Stands in for a tokenizer: the word "7" has the id 7."""

    def encode(self, sentences):
        return [[int(word) for word in sentence.split()] for sentence in sentences]


def encode(pairs, max_length=8, **options):
    return data.encode_text(pairs, (WordIds(), WordIds()), max_length, **options)


def test_rows_are_kept_flat():
    rows = IdRows.join([IdRows.of([[4, 5, 3], [3]]), IdRows.of([]), IdRows.of([[6, 3]])])
    assert rows.ids.tolist() == [4, 5, 3, 3, 6, 3] and rows.ids.dtype == np.int32
    assert rows.offsets.tolist() == [0, 3, 4, 6] and rows.lengths.tolist() == [3, 1, 2] and len(rows) == 3
    assert [rows[i].tolist() for i in range(3)] == [[4, 5, 3], [3], [6, 3]]
    assert rows.padded([2, 0]).tolist() == [[6, 3, 0], [4, 5, 3]] and rows.padded([2, 0]).dtype == np.int32


def test_encoding_ends_every_side_and_counts_what_it_drops():
    encoded = encode([("5 6", "7"), ("", "7"), ("5", " "), ("1 2 3", "4"), ("9", "8 7"), ("4", "1 1 1")], max_length=3)
    assert [row.tolist() for row in encoded.source] == [[5, 6, END_ID], [9, END_ID]]
    assert [row.tolist() for row in encoded.target] == [[7, END_ID], [8, 7, END_ID]]
    assert (encoded.kept, encoded.dropped_empty, encoded.dropped_long) == (2, 2, 2)
    assert encoded.report() == (
        "2 sentence pairs kept (5 source and 5 target tokens), 2 dropped for an empty side, "
        "2 for a side of more than 3 tokens"
    )


def test_encoding_in_chunks_equals_encoding_at_once(monkeypatch):
    pairs = [(f"{i}", f"{i} " * (i % 5)) for i in range(4, 44)]
    whole, seen = encode(pairs), []
    monkeypatch.setattr(data, "CHUNK", 7)
    chunked = encode(iter(pairs), on_progress=seen.append)
    assert seen == [7, 14, 21, 28, 35, 40]
    for side in ("source", "target"):
        np.testing.assert_array_equal(getattr(chunked, side).ids, getattr(whole, side).ids)
        np.testing.assert_array_equal(getattr(chunked, side).offsets, getattr(whole, side).offsets)
    assert chunked.report() == whole.report()


def test_text_with_one_side_is_encoded_and_batched_without_a_source():
    text = data.encode_text([("5 6",), ("",), ("1 2 3",), ("9",)], [WordIds()], max_length=3)
    assert text.report() == "2 sentences kept (5 tokens), 1 dropped as empty, 1 as longer than 3 tokens"
    batches = Batches(text, 8)
    target, labels, weights = batches.batch(0)
    assert sorted(labels.tolist()) == [[5, 6, END_ID], [9, END_ID, PAD_ID]]
    assert sorted(target.tolist()) == [[START_ID, 5, 6], [START_ID, 9, PAD_ID]]
    assert weights.tolist() == (labels != PAD_ID).tolist() and batches.padding_share == pytest.approx(1 / 6)
    for given, expected in zip(next(iter(batches.dataset())), (target, labels, weights), strict=True):
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("pairs", [[], [("", "7")], [("1 2 3", "7")]])
def test_no_pair_left_is_refused(pairs):
    with refusal(r"no text is left: 0 sentence pairs kept \(.*tokens; give more text or raise max_length"):
        encode(pairs, max_length=3)


# Ids to batches


@pytest.fixture(scope="module")
def pairs():
    """700 pairs with sides of 2 to 40 ids that are about as long as each other; each pair is unlike every other."""
    dice = random.Random(3)
    texts = []
    for number in range(700):
        length = min(38, int(dice.expovariate(0.1)))
        other = max(0, min(38, length + dice.randint(-6, 6)))
        texts.append((f"{1000 + number}" + " 5" * length, f"{2000 + number}" + " 6" * other))
    return encode(texts, max_length=40)


def rows_of(batch):
    """The (source, target) id lists of a batch, cut at their ends."""
    inputs, labels, _ = batch
    return list(zip(map(without_padding, inputs["source"]), map(without_padding, labels), strict=True))


def without_padding(row):
    return row[row != PAD_ID].tolist()


def epoch_of(batches, epoch=0):
    return [batches.batch(epoch * batches.steps_per_epoch + place) for place in range(batches.steps_per_epoch)]


@pytest.mark.parametrize("batch_tokens", [40, 97, 512, 1_000_000])
def test_an_epoch_holds_every_pair_exactly_once(pairs, batch_tokens):
    expected = sorted(
        (source.tolist(), target.tolist()) for source, target in zip(pairs.source, pairs.target, strict=True)
    )
    batches = Batches(pairs, batch_tokens)
    for epoch in (0, 1, 5):
        assert sorted(itertools.chain.from_iterable(map(rows_of, epoch_of(batches, epoch)))) == expected


@pytest.mark.parametrize("batch_tokens", [40, 97, 512, 1_000_000])
def test_no_batch_exceeds_the_budget_on_either_side(pairs, batch_tokens):
    for inputs, labels, _ in epoch_of(Batches(pairs, batch_tokens)):
        assert inputs["source"].size <= batch_tokens and labels.size <= batch_tokens


def test_a_batch_holds_what_teacher_forcing_needs():
    ((inputs, labels, weights),) = epoch_of(Batches(encode([("5", "9"), ("4", "7 8 9"), ("5 6", "7 8 9")]), 12))
    assert inputs["source"].tolist() == [[5, 6, END_ID], [4, END_ID, PAD_ID], [5, END_ID, PAD_ID]]
    assert inputs["target"].tolist() == [[START_ID, 7, 8, 9], [START_ID, 7, 8, 9], [START_ID, 9, PAD_ID, PAD_ID]]
    assert labels.tolist() == [[7, 8, 9, END_ID], [7, 8, 9, END_ID], [9, END_ID, PAD_ID, PAD_ID]]
    assert weights.tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert inputs["source"].dtype == inputs["target"].dtype == labels.dtype == np.int32 and weights.dtype == np.float32


def test_pairs_of_like_lengths_are_neighbours():
    source, target = np.array([4, 3, 2, 1, 4, 3, 1, 3]), np.array([4, 3, 4, 3, 2, 1, 1, 3])
    ordered = data.snake_order(source, target, ties=np.array([0, 1, 0, 0, 0, 0, 0, 0]))
    lengths = list(zip(source[ordered].tolist(), target[ordered].tolist(), strict=True))
    assert lengths == [(4, 2), (4, 4), (2, 4), (1, 3), (3, 3), (3, 3), (3, 1), (1, 1)]
    assert ordered.tolist().index(7) < ordered.tolist().index(1)


def test_batches_are_cut_at_the_budget_and_the_last_two_share():
    assert data.plan_batches(np.array([5, 5, 4, 4, 3, 2]), 10) == [(0, 2), (2, 4), (4, 6)]
    assert data.plan_batches(np.array([5, 2, 2, 2, 2, 2, 1]), 8) == [(0, 1), (1, 4), (4, 7)]
    assert data.plan_batches(np.array([3, 3, 3, 3, 3]), 12) == [(0, 2), (2, 5)]
    assert data.plan_batches(np.array([3, 1, 1]), 3) == [(0, 1), (1, 3)]
    assert data.plan_batches(np.array([3]), 100) == [(0, 1)]


@pytest.mark.parametrize("seed", range(30))
def test_any_plan_covers_all_pairs_within_the_budget(seed):
    random = np.random.default_rng(seed)
    longer = np.sort(random.integers(1, random.integers(2, 60), random.integers(1, 200)))[::-1]
    budget = int(longer[0]) + int(random.integers(0, 300))
    plan = data.plan_batches(longer, budget)
    assert [row for start, stop in plan for row in range(start, stop)] == list(range(len(longer)))
    assert all(start < stop and (stop - start) * longer[start] <= budget for start, stop in plan)


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_of_so_many_steps_has_them_with_no_larger_batches_than_that_takes(seed):
    random = np.random.default_rng(seed)
    longer = np.sort(random.integers(1, 30, random.integers(5, 200)))[::-1]
    budget, steps = int(longer[0]) + int(random.integers(0, 100)), int(random.integers(1, len(longer) + 1))
    plan = data.plan_steps(longer, budget, steps)
    assert [row for start, stop in plan for row in range(start, stop)] == list(range(len(longer)))
    assert len(plan) == steps and all(start < stop for start, stop in plan)
    least = next(tokens for tokens in itertools.count(budget) if len(data.plan_batches(longer, tokens)) <= steps)
    assert all((stop - start) * longer[start] <= least for start, stop in plan)


def test_more_steps_than_rows_are_refused():
    with refusal("3 rows cannot make 4 batches; give more text or fewer steps"):
        data.plan_steps(np.array([3, 2, 1]), 10, 4)


def test_padding_is_what_counting_it_says_and_less_than_in_a_plain_sort(pairs):
    batches = Batches(pairs, 512)
    padding = positions = 0
    for inputs, labels, weights in epoch_of(batches):
        padding += (inputs["source"] == PAD_ID).sum() + (weights == 0).sum()
        positions += inputs["source"].size + labels.size
    assert batches.padding_share == pytest.approx(padding / positions, abs=1e-12)
    plain = np.lexsort((pairs.source.lengths, pairs.target.lengths))[::-1]
    longer = np.maximum.accumulate(np.maximum(pairs.source.lengths, pairs.target.lengths)[plain][::-1])[::-1]
    plain_positions = sum(
        (stop - start) * side.lengths[plain[start:stop]].max()
        for start, stop in data.plan_batches(longer, 512)
        for side in (pairs.source, pairs.target)
    )
    assert positions < 0.97 * plain_positions
    assert batches.report() == f"{batches.steps_per_epoch} batches an epoch, {100 * padding / positions:.1f}% padding"


def as_lists(batches):
    return [rows_of(batch) for batch in batches]


def test_the_seed_and_the_step_decide_a_batch(pairs):
    batches, again, other = Batches(pairs, 512, seed=4), Batches(pairs, 512, seed=4), Batches(pairs, 512, seed=5)
    last = 3 * batches.steps_per_epoch + 2
    assert rows_of(again.batch(last)) == rows_of(batches.batch(last))
    assert as_lists(epoch_of(again)) == as_lists(epoch_of(batches))
    assert as_lists(epoch_of(other)) != as_lists(epoch_of(batches))


def test_epochs_differ_in_order_and_company_but_not_in_shapes(pairs):
    batches = Batches(pairs, 512)
    first, second = epoch_of(batches, 0), epoch_of(batches, 1)
    assert as_lists(first) != as_lists(second)
    company = [{frozenset(str(row) for row in rows) for rows in as_lists(epoch)} for epoch in (first, second)]
    assert company[0] != company[1]
    shapes = [[(inputs["source"].shape, labels.shape) for inputs, labels, _ in epoch] for epoch in (first, second)]
    assert shapes[0] != shapes[1]
    assert sorted(shapes[0]) == sorted(shapes[1])


def test_the_dataset_goes_on_from_any_step(pairs):
    batches = Batches(pairs, 512)
    steps = 2 * batches.steps_per_epoch + 3
    whole = [batches.batch(step) for step in range(steps)]
    for first_step in (0, 1, batches.steps_per_epoch - 1, batches.steps_per_epoch + 2):
        rest = Batches(pairs, 512).dataset(first_step).take(steps - first_step).as_numpy_iterator()
        for (inputs, labels, weights), expected in zip(rest, whole[first_step:], strict=True):
            np.testing.assert_array_equal(inputs["source"], expected[0]["source"])
            np.testing.assert_array_equal(inputs["target"], expected[0]["target"])
            np.testing.assert_array_equal(labels, expected[1])
            np.testing.assert_array_equal(weights, expected[2])


def test_two_iterators_over_one_dataset_do_not_disturb_each_other(pairs):
    batches = Batches(pairs, 512)
    early, late = (batches.dataset(first).as_numpy_iterator() for first in (0, 5 * batches.steps_per_epoch))
    taken = [(next(early), next(late)) for _ in range(batches.steps_per_epoch)]
    assert as_lists(batch for batch, _ in taken) == as_lists(epoch_of(batches, 0))
    assert as_lists(batch for _, batch in taken) == as_lists(epoch_of(batches, 5))


def test_a_pair_that_fits_into_no_batch_is_refused():
    with refusal(
        "batch_tokens is 7, but one sentence has 8 tokens and must fit; raise batch_tokens, or encode with max_length=7"
    ):
        Batches(encode([("5", "7"), ("5", "7 7 7 7 7 7 7")]), 7)


@pytest.fixture(scope="module")
def tokenizer():
    dice = random.Random(5)
    return Tokenizer(tokenizers.train(["".join(dice.choices("ab cd", k=30)) for _ in range(500)], 40))


def test_training_dataset_gives_each_pass_anew(tokenizer):
    dice = random.Random(6)
    texts = [("".join(dice.choices("abcd", k=4)), "".join(dice.choices("abcd", k=4))) for _ in range(60)]
    dataset = data.training_dataset(texts, tokenizer, batch_tokens=64, max_length=16)
    first, second = (list(dataset.as_numpy_iterator()) for _ in range(2))
    assert len(first) == len(second) == int(dataset.cardinality())
    assert as_lists(first) != as_lists(second)
    encoded = sorted(([*s, END_ID], [*t, END_ID]) for s, t in (tokenizer.encode(pair) for pair in texts))
    for one_pass in (first, second):
        assert sorted(itertools.chain.from_iterable(as_lists(one_pass))) == encoded


def test_training_dataset_takes_a_tokenizer_for_each_side(tokenizer):
    other = Tokenizer(tokenizers.train(["x yz"] * 20, 8))
    ((inputs, labels, _),) = data.training_dataset([("ab", "xz")], tokenizer, other).as_numpy_iterator()
    assert inputs["source"].tolist() == [[*tokenizer.encode(["ab"])[0], END_ID]]
    assert labels.tolist() == [[*other.encode(["xz"])[0], END_ID]]


def test_training_dataset_says_what_it_drops(tokenizer):
    with pytest.warns(
        UserWarning, match="^1 sentence pairs kept .* 1 dropped for an empty side, 1 for a side of more than"
    ):
        data.training_dataset([("ab", "cd"), ("", "cd"), ("ab" * 100, "cd")], tokenizer, max_length=16)


# Random cuts


@pytest.fixture(scope="module")
def rows():
    """400 pairs of the letters of the tokenizer, each pair unlike every other; some do not fit into 20 tokens."""
    dice = random.Random(7)
    return [tuple("".join(dice.choices("ab cd", k=dice.randint(20, 40))) for _ in range(2)) for _ in range(400)]


def texts_of(epoch, tokenizer):
    return sorted(tuple(tokenizer.decode(row)) for batch in epoch for row in rows_of(batch))


def test_random_cuts_keep_the_rows_and_the_length(rows, tokenizer):
    usual = data.encode_text(rows, [tokenizer, tokenizer], 20)
    drawn = data.sampled_texts(rows, [tokenizer, tokenizer], 20, alpha=0.1, seed=1)(0)
    assert 0 < usual.dropped_long < len(rows)
    assert (drawn.kept, drawn.dropped_long) == (usual.kept, usual.dropped_long)
    for one, other in zip(drawn.sides, usual.sides, strict=True):
        assert tokenizer.decode(list(one)) == tokenizer.decode(list(other))
        assert one.lengths.max() == 20 and one.lengths.mean() > 1.01 * other.lengths.mean()


def test_every_epoch_cuts_every_pair_anew_in_as_many_batches(rows, tokenizer):
    vocabularies = [tokenizer, tokenizer]
    text = data.encode_text(rows, vocabularies, 24)

    def batches(seed):
        return Batches(text, 200, seed, data.sampled_texts(rows, vocabularies, 24, 0.3, seed))

    epochs = [epoch_of(batches(1), epoch) for epoch in range(4)]
    expected = texts_of(epoch_of(Batches(text, 200)), tokenizer)
    assert all(texts_of(epoch, tokenizer) == expected for epoch in epochs)
    cuts = [sorted(itertools.chain.from_iterable(as_lists(epoch))) for epoch in epochs]
    assert all(one != other for one, other in itertools.combinations(cuts, 2))
    assert as_lists(epoch_of(batches(1), 3)) == as_lists(epochs[3]) != as_lists(epoch_of(batches(2), 3))


def test_the_dataset_for_fit_cuts_each_pass_anew(rows, tokenizer):
    dataset = data.training_dataset(rows, tokenizer, batch_tokens=200, sampling_alpha=0.3)
    first, second = (list(dataset.as_numpy_iterator()) for _ in range(2))
    assert len(first) == len(second) == dataset.cardinality()
    assert texts_of(first, tokenizer) == texts_of(second, tokenizer)
    assert sorted(itertools.chain.from_iterable(as_lists(first))) != sorted(
        itertools.chain.from_iterable(as_lists(second))
    )
