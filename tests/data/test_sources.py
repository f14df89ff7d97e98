"""Data sources, tested on files written by hand."""

import gzip
import io
import re
import sys

import pytest

from tfformer.data import phrasebook
from tfformer.data import sources as reading
from tfformer.data.sources import (
    matching_files,
    read_linked_pairs,
    read_pairs,
    read_sentences,
    source_files,
)
from tfformer.data.text_cache import text_fingerprint

PAIRS = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("dogs see cats", "Hunde sehen Katzen")]
LONG = "^{} has more than 16,777,216 bytes; use a text file with line ends$"


def refusal(message, error=ValueError):
    """Expect an error of one line. The regular expression must match the whole line."""
    return pytest.raises(error, match=f"^{message}$")


def write_sides(folder, pairs, suffix=""):
    write = gzip.compress if suffix else bytes
    for side, name in enumerate(("train.en", "train.de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (folder / f"{name}{suffix}").write_bytes(write(text))
    return [f"train.en{suffix}", f"train.de{suffix}"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pairs_are_read_line_by_line(tmp_path, suffix):
    paths = write_sides(tmp_path, PAIRS, suffix)
    assert list(reading.read_pairs(paths, tmp_path)) == PAIRS
    assert list(reading.read_pairs([str(tmp_path / path) for path in paths])) == PAIRS
    write = gzip.compress if suffix else bytes
    name = f"train.tsv{suffix}"
    rows = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    (tmp_path / name).write_bytes(write(rows.encode()))
    assert list(reading.read_pairs(name, tmp_path)) == PAIRS
    assert list(reading.read_pairs(tmp_path / name)) == PAIRS


def test_a_tag_stands_before_the_source(tmp_path):
    """A third column names the tag of a line; an empty column names none."""
    lines = ["you\tdu\t<du>", "you\tSie\t<Sie>", "a dog\tein Hund\t", "a\tb"]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    (tmp_path / "b.tsv").write_text("ein Hund\ta dog\n")
    tags = ["<du>", "<Sie>", "<en>"]
    source = ["a.tsv", {"text": "b.tsv", "tag": "<en>"}]
    assert list(read_pairs(source, tmp_path, tags=tags)) == [
        ("<du> you", "du"),
        ("<Sie> you", "Sie"),
        ("a dog", "ein Hund"),
        ("a", "b"),
        ("<en> ein Hund", "a dog"),
    ]
    with refusal(".*a.tsv, line 1: 3 columns, but a line must have 2, .*"):
        list(read_pairs([{"text": "a.tsv", "tag": "<en>"}], tmp_path, tags=tags))
    with refusal(
        r".*a.tsv, line 2: the third column is '<Sie>', which is not in data.tags \(<du>\); "
        "correct it, or add it there"
    ):
        list(read_pairs("a.tsv", tmp_path, tags=["<du>"]))
    (tmp_path / "a.tsv").write_text("a\tb\t<du>\tc\n")
    with refusal(
        ".*a.tsv, line 1: 4 columns, but a line must have 2 or 3, source, target and tag; .*"
    ):
        list(read_pairs("a.tsv", tmp_path, tags=["<du>"]))


def test_a_text_must_not_contain_a_tag(tmp_path):
    (tmp_path / "a.tsv").write_text("a dog\tein Hund\nWrite <de>.\tSchreib das.\n")
    with refusal(
        "a.tsv, row 2: the text contains <de>, which is one of data.tags; remove it from the text, "
        "or choose another tag"
    ):
        list(read_pairs("a.tsv", tmp_path, tags=["<de>"]))
    assert len(list(read_pairs("a.tsv", tmp_path, tags=["<en>"]))) == 2


def test_the_phrasebook_is_reversed_by_its_languages():
    reversed_pairs = [{"text": "phrasebook:valid", "languages": ["de", "en"]}]
    swapped = [(target, source) for source, target in read_pairs("phrasebook:valid")]
    assert list(read_pairs(reversed_pairs)) == swapped


@pytest.mark.parametrize("split", ["test", "test-formality"])
@pytest.mark.parametrize("languages", [("en", "fr"), ("de", "de"), ("en",)])
def test_the_phrasebook_has_no_other_languages(split, languages):
    with refusal(
        f"languages {re.escape(str(list(languages)))} do not choose the sides of the phrasebook; "
        rf"set those of the corpus: {{text: phrasebook:{split}, languages: \[en, de\]}}, or "
        r"\[de, en\]"
    ):
        read_pairs(f"phrasebook:{split}", languages=languages)


def test_the_formality_of_the_phrasebook_is_a_tag():
    """Each sentence that addresses somebody occurs with both tags."""
    rows = list(read_pairs("phrasebook:valid-formality", tags=["<du>", "<Sie>"]))
    polite, familiar = rows[::2], rows[1::2]
    assert [f"<du>{source.removeprefix('<Sie>')}" for source, _ in polite] == [
        source for source, _ in familiar
    ]
    plain = {(source.removeprefix("<Sie> "), target) for source, target in polite}
    assert plain <= set(read_pairs("phrasebook:valid"))
    assert all(re.search(r"\b(Sie|Ihnen|Ihr\w*)\b", target) for _, target in polite)
    assert not any(re.search(r".\b(Sie|Ihnen|Ihr\w*)\b", target) for _, target in familiar)
    with refusal("phrasebook:valid-formality has the tag <Sie>; add it to data.tags"):
        list(read_pairs("phrasebook:valid-formality"))
    corpus = {"text": "phrasebook:valid-formality", "tag": "<du>"}
    with refusal(
        "phrasebook:valid-formality has tags in its rows, and the corpus has the tag <du>; "
        "leave out the tag of the corpus"
    ):
        list(read_pairs([corpus], tags=["<du>", "<Sie>"]))
    with refusal("unknown split 'dev'; .*"):
        read_pairs("phrasebook:dev-formality")
    with refusal("phrasebook:test-formality translates from English to German only; set .*"):
        read_pairs("phrasebook:test-formality", languages=("de", "en"))


def test_only_a_newline_ends_a_line():
    text = "one\u2028still one\x85\x0b\x0c\x1c\rstill\r\ntwo\n\n four\r"
    assert list(reading.lines(io.BytesIO(text.encode()), "standard input")) == [
        "one\u2028still one\x85\x0b\x0c\x1c\rstill",
        "two",
        "",
        " four",
    ]
    assert list(reading.lines(io.BytesIO(b""), "standard input")) == []


def test_a_byte_order_mark_is_no_text_at_the_beginning_alone(tmp_path):
    (tmp_path / "text").write_text("one\n\ufefftwo\n", encoding="utf-8-sig")
    assert list(reading.read_lines(tmp_path / "text")) == ["one", "\ufefftwo"]


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_read_lines_keeps_every_line(tmp_path, name):
    packed = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(packed("é\n\nß".encode()))
    assert list(reading.read_lines(tmp_path / name)) == ["é", "", "ß"]


def test_text_that_no_tokenizer_should_see_is_named_by_line():
    with refusal("standard input, line 2: byte 4, 0xe9, is not UTF-8; convert the text to UTF-8"):
        list(reading.lines(io.BytesIO(b"fine\ncaf\xe9\n"), "standard input"))
    with refusal(
        "standard input, line 3 contains a NUL byte, so it is not text; save the file as UTF-8 text"
    ):
        list(reading.lines(io.BytesIO(b"fine\n\na\0b\n"), "standard input"))


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory():
    """Only the first bytes of an endless device are read."""
    with (
        open("/dev/zero", "rb") as zeros,
        pytest.raises(ValueError, match=LONG.format("zeros, line 1")),
    ):
        list(reading.lines(zeros, "zeros"))
    text = b"a\n" + b"b" * (2**24 + 1)
    assert len(list(reading.lines(io.BytesIO(text[:-1]), "a test"))) == 2
    with pytest.raises(ValueError, match=LONG.format("a test, line 2")):
        list(reading.lines(io.BytesIO(text), "a test"))


def test_a_missing_file_is_named(tmp_path):
    with refusal(
        ".*train.en: there is no such file; correct the path or fetch the data first",
        FileNotFoundError,
    ):
        list(reading.read_pairs(["train.en", "train.de"], tmp_path))


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
    with refusal(r".*text.gz is not a complete gzip file \(.*\); fetch or compress it again"):
        list(reading.read_lines(path))


@pytest.mark.parametrize(("source_count", "target_count"), [(3, 5), (5, 3), (0, 2)])
def test_files_of_different_length_are_refused_with_both_counts(
    tmp_path, source_count, target_count
):
    (tmp_path / "train.en").write_text("a dog\n" * source_count)
    (tmp_path / "train.de").write_text("ein Hund\n" * target_count)
    with refusal(
        f".*train.en has {source_count} lines and .*train.de {target_count}, but line n of one "
        "must belong to line n of the other; use files of the same length"
    ):
        for pair in reading.read_pairs(["train.en", "train.de"], tmp_path):
            assert pair == ("a dog", "ein Hund")


def test_a_third_file_has_links(tmp_path):
    """In Pharaoh's format, as fast_align and eflomal write it; a tag is a word."""
    write_sides(tmp_path, PAIRS)
    links = ["0-0 1-1", "", "0-0 1-1 2-2 2-1"]
    (tmp_path / "train.links").write_text("\n".join(links) + "\n")
    files = ["train.en", "train.de", "train.links"]
    assert list(read_pairs(files, tmp_path)) == PAIRS
    linked = [(*pair, line) for pair, line in zip(PAIRS, links, strict=True)]
    assert list(read_linked_pairs(files, tmp_path)) == linked
    assert list(read_linked_pairs(files[:2], tmp_path)) == [(*pair, "") for pair in PAIRS]
    tagged = read_linked_pairs([{"text": files, "tag": "<de>"}], tmp_path, tags=["<de>"])
    assert next(tagged) == ("<de> a dog", "ein Hund", "1-0 2-1")


@pytest.mark.parametrize(
    ("line", "link"), [("0-0 2-1", "2-1"), ("1-2", "1-2"), ("0:1", "0:1"), ("1-1 -1-0", "-1-0")]
)
def test_a_link_of_no_word_is_named_by_line(tmp_path, line, link):
    write_sides(tmp_path, PAIRS)
    (tmp_path / "links").write_text(f"0-0\n{line}\n0-0\n")
    with refusal(
        f".*links, line 2: '{link}' must be a source word and a target word, counted from 0, such "
        "as 0-0, of 2 and 2 words; align these files, divided at spaces"
    ):
        list(read_pairs(["train.en", "train.de", "links"], tmp_path))


def test_a_file_of_links_has_a_line_for_each_pair(tmp_path):
    write_sides(tmp_path, PAIRS)
    (tmp_path / "links").write_text("0-0\n0-0\n")
    with refusal(
        ".*train.en has 3 lines and .*links 2, but line n of one must belong to line n of the "
        "other; use files of the same length"
    ):
        list(read_pairs(["train.en", "train.de", "links"], tmp_path))


def test_the_phrasebook_has_the_links_of_its_grammar():
    for languages, order in ((None, 1), (("de", "en"), -1)):
        for pair, row in zip(
            phrasebook.pairs("valid"),
            read_linked_pairs("phrasebook:valid", languages=languages),
            strict=True,
        ):
            assert row[:2] == (pair.source, pair.target)[::order]
            assert row[2].split() == ["{}-{}".format(*link[::order]) for link in pair.alignment]


def test_empty_sources_are_refused(tmp_path):
    for name in ("train.en", "train.de", "train.tsv"):
        (tmp_path / name).write_bytes(b"")
    with refusal(
        r"data source \['train.en', 'train.de'\] is empty; it needs at least one sentence pair"
    ):
        list(reading.read_pairs(["train.en", "train.de"], tmp_path))
    with refusal("data source 'train.tsv' is empty; it needs at least one sentence pair"):
        list(reading.read_pairs("train.tsv", tmp_path))


@pytest.mark.parametrize(("line", "columns"), [("a dog", 1), ("", 1), ("a\tb\tc", 3)])
def test_a_tsv_line_without_two_columns_is_named(tmp_path, line, columns):
    (tmp_path / "train.tsv").write_text(f"a dog\tein Hund\n{line}\n")
    with refusal(
        f".*train.tsv, line 2: {columns} columns, but a line must have 2, source and target; "
        "put exactly one tab between them"
    ):
        list(reading.read_pairs("train.tsv", tmp_path))


@pytest.mark.parametrize(
    "source", ["train.txt", "", ["train.en"], ["a", "b", "c", "d"], [], "phrasebook"]
)
def test_a_source_of_no_known_form_is_refused(source):
    with pytest.raises(ValueError, match="an unknown form") as error:
        reading.read_pairs(source)
    assert str(error.value) == (
        f"data source {source!r} has an unknown form; use [SOURCE_FILE, TARGET_FILE], "
        "FILE.tsv, tfds:NAME@SPLIT or phrasebook:SPLIT"
    )


def test_the_phrasebook_is_a_source():
    pairs = list(reading.read_pairs("phrasebook:valid"))
    assert pairs == [(pair.source, pair.target) for pair in phrasebook.pairs("valid")]
    assert len(pairs) > 1
    with pytest.raises(ValueError, match="tomorrow"):
        list(reading.read_pairs("phrasebook:tomorrow"))


# TensorFlow Datasets


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory):
    """Two datasets prepared by TFDS.

    `tiny_translation` declares its source language, `tiny_sides` does not.
    """
    tfds = pytest.importorskip("tensorflow_datasets", reason="pip install -e '.[tfds]'")

    class Tiny(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _split_generators(self, dl_manager):
            return {
                "train": self._generate_examples(PAIRS),
                "validation": self._generate_examples(PAIRS[:1]),
            }

        def _generate_examples(self, pairs):
            yield from (
                (i, {"en": source, "de": target}) for i, (source, target) in enumerate(pairs)
            )

    class TinyTranslation(Tiny):
        def _info(self):
            features = tfds.features.Translation(("de", "en"))
            return tfds.core.DatasetInfo(
                builder=self, features=features, supervised_keys=("en", "de")
            )

    class TinySides(Tiny):
        def _info(self):
            text = tfds.features.Text()
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict({"de": text, "en": text})
            )

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
    assert sorted(reading.read_pairs("tfds:tiny_translation")) == sorted(PAIRS)
    assert sorted(reading.read_pairs("tfds:tiny_translation", languages=("de", "en"))) == sorted(
        reversed_pairs
    )
    assert list(reading.read_pairs("tfds:tiny_translation", split="validation")) == PAIRS[:1]
    assert (
        list(reading.read_pairs("tfds:tiny_translation@validation", languages=["en", "de"]))
        == PAIRS[:1]
    )
    assert len(list(reading.read_pairs("tfds:tiny_translation@train[:2]"))) == 2
    assert list(reading.read_pairs("tfds:tiny_translation")) == list(
        reading.read_pairs("tfds:tiny_translation")
    )


def test_tfds_names_the_version_of_a_data_set(tfds, tmp_path):
    assert reading.tfds_version("tiny_translation") == "tiny_translation/1.0.0"
    source = ["tfds:tiny_translation@train[:2]", "tfds:tiny_translation"]
    assert text_fingerprint(source, ".", ("en", "de"), "train") == [
        {"tfds": "tiny_translation/1.0.0", "split": split, "languages": ("en", "de")}
        for split in ("train[:2]", "train")
    ]


def test_tfds_errors_name_what_there_is(tfds):
    with refusal(
        "TFDS dataset 'tiny_translation' has no split 'test'; choose one of train, validation"
    ):
        list(reading.read_pairs("tfds:tiny_translation@test"))
    with refusal(
        "TensorFlow Datasets has no data set 'no_such_translation'; choose one from "
        "https://www.tensorflow.org/datasets.*"
    ):
        list(reading.read_pairs("tfds:no_such_translation"))
    for languages in (("en", "fr"), ("en",)):
        with refusal(
            r"languages \['en'.*\] do not fit TFDS dataset 'tiny_translation'; choose two of "
            r"\['de', 'en'\]"
        ):
            list(reading.read_pairs("tfds:tiny_translation", languages=languages))
    assert sorted(reading.read_sentences("tfds:tiny_translation", languages=("en",))) == sorted(
        (en,) for en, _ in PAIRS
    )
    with refusal(
        r"languages \['en', 'de'\] do not fit TFDS dataset 'tiny_translation'; choose one of "
        r"\['de', 'en'\]"
    ):
        list(reading.read_sentences("tfds:tiny_translation", languages=("en", "de")))
    with refusal(
        r"TFDS dataset 'tiny_sides' declares no source and target; set languages to two of "
        r"\['de', 'en'\]"
    ):
        list(reading.read_pairs("tfds:tiny_sides"))
    with refusal("tfds:tiny_sides, row 1: byte 5, 0xff, is not UTF-8; convert the text to UTF-8"):
        list(reading.read_pairs("tfds:tiny_sides", languages=("en", "de")))


def test_tfds_that_cannot_fetch_is_one_line(tfds, monkeypatch):
    import tensorflow_datasets

    def refuse(self, **_):
        raise Exception("Failed to get url http://a/b.\nHTTP code: 404.")

    monkeypatch.setattr(
        type(tensorflow_datasets.builder("tiny_translation")), "download_and_prepare", refuse
    )
    with pytest.raises(
        OSError, match=r"cannot fetch 'tiny_translation' \(Failed to get url http://a/b\.\); check"
    ):
        list(reading.read_pairs("tfds:tiny_translation"))


def test_tfds_not_installed_gives_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with refusal(
        "data source 'tfds:a/b' needs TensorFlow Datasets; pip install -e '\\.\\[tfds\\]'"
    ):
        list(reading.read_pairs("tfds:a/b"))


def test_one_side_of_a_source_for_a_language_model(tmp_path):
    (tmp_path / "text.en.gz").write_bytes(gzip.compress(b"A house.\n\nA tree.\n"))
    assert list(reading.read_sentences("text.en.gz", tmp_path)) == [
        ("A house.",),
        ("",),
        ("A tree.",),
    ]
    texts = [{"text": "text.en.gz"}, {"text": "text.en.gz"}]
    assert len(list(reading.read_sentences(texts, tmp_path))) == 6
    both = list(reading.read_pairs("phrasebook:valid"))
    for side, language in enumerate(("en", "de")):
        sentences = list(reading.read_sentences("phrasebook:valid", languages=[language]))
        assert sentences == [(pair[side],) for pair in both]
    with refusal(
        r"languages \['en', 'de'\] do not choose a side of the phrasebook; use \[en\] or \[de\]"
    ):
        reading.read_sentences("phrasebook:valid", languages=("en", "de"))
    for source in (["a.en", "a.de"], "a.tsv"):
        with refusal(
            r"data source .* has two sides, but a language model reads one text; use FILE, "
            r"\[{text: FILE}, {text: FILE}\], tfds:NAME@SPLIT or .*"
        ):
            reading.read_sentences(source, tmp_path)
    (tmp_path / "empty.txt").write_bytes(b"")
    with refusal(r"data source 'empty.txt' is empty; it needs at least one sentence"):
        list(reading.read_sentences("empty.txt", tmp_path))


PARTS = {"a": [("a dog", "ein Hund")], "b": [("a cat", "eine Katze"), ("one", "eins")]}


@pytest.fixture
def root(tmp_path):
    for name, pairs in PARTS.items():
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"part-{name}.{language}.gz").write_bytes(gzip.compress(lines.encode()))
        lines = "".join("\t".join(pair) + "\n" for pair in pairs)
        (tmp_path / f"part-{name}.tsv").write_text(lines)
    return tmp_path


def test_parts_are_read_in_the_order_of_their_names(root):
    pairs = [pair for name in sorted(PARTS) for pair in PARTS[name]]
    assert list(read_pairs(["part-*.en.gz", "part-*.de.gz"], root)) == pairs
    assert list(read_pairs("part-*.tsv", root)) == pairs
    assert list(read_sentences("part-*.en.gz", root)) == [(source,) for source, _ in pairs]
    assert source_files("part-*.tsv", root) == [(root / "part-a.tsv",), (root / "part-b.tsv",)]


def test_several_corpora_are_read_one_after_the_other(root):
    sources = [
        ["part-b.en.gz", "part-b.de.gz"],
        {"text": "part-a.tsv", "weight": 2},
        "phrasebook:valid",
    ]
    pairs = list(read_pairs(sources, root))
    assert pairs == [*PARTS["b"], *PARTS["a"], *read_pairs("phrasebook:valid")]
    assert list(read_pairs(["part-a.tsv", "part-b.tsv"], root)) == PARTS["a"] + PARTS["b"]
    assert len(source_files(sources, root)) == 2


@pytest.mark.parametrize("missing", ["part-a.en.gz", "part-b.de.gz"])
def test_a_part_without_its_other_side_is_named(root, missing):
    (root / missing).unlink()
    partner = missing.replace("en", "de") if "en" in missing else missing.replace("de", "en")
    with pytest.raises(
        FileNotFoundError,
        match=f"^{root}/{missing}: no such file, but it is the other side of {root}/{partner}$",
    ):
        read_pairs(["part-*.en.gz", "part-*.de.gz"], root)


def test_a_pattern_without_files_is_named(root):
    with pytest.raises(
        FileNotFoundError,
        match=r"piece-\*\.tsv: no file matches; correct the pattern or fetch the data first$",
    ):
        read_pairs("piece-*.tsv", root)


def test_both_sides_need_as_many_stars(root):
    with pytest.raises(ValueError, match="must contain the same number of \\*, because each \\*"):
        read_pairs(["part-*.en.gz", "part-a.de.gz"], root)


def test_other_characters_of_patterns_stand_for_themselves(tmp_path):
    for name in ("[1]-a", "1-a", "[1]-ab"):
        (tmp_path / name).touch()
    assert matching_files([tmp_path / "[1]-*"]) == [(tmp_path / "[1]-a",), (tmp_path / "[1]-ab",)]
