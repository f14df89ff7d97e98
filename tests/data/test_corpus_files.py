"""Patterns of files, tested on folders made by hand."""

import gzip

import pytest

from tfformer.data.sources import matching_files, read_pairs, read_sentences, source_files

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
