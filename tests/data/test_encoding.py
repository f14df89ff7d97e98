"""Compare encoded sentences with ids written by hand."""

import hashlib
import itertools
import tracemalloc

import numpy as np
import pytest
from support.word_ids import WordIds, encode_pairs

from tfformer.data import encoding
from tfformer.data.encoding import EncodedText, IdRows, encode_truncated
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID


def test_rows_are_kept_flat():
    rows = IdRows.join([IdRows.of([[4, 5, 3], [3]]), IdRows.of([]), IdRows.of([[6, 3]])])
    assert rows.ids.tolist() == [4, 5, 3, 3, 6, 3]
    assert rows.ids.dtype == np.int32
    assert rows.offsets.tolist() == [0, 3, 4, 6]
    assert rows.lengths.tolist() == [3, 1, 2]
    assert len(rows) == 3
    assert [rows[i].tolist() for i in range(3)] == [[4, 5, 3], [3], [6, 3]]
    assert rows.padded([2, 0]).tolist() == [[6, 3, 0], [4, 5, 3]]
    assert rows.padded([2, 0]).dtype == np.int32


def test_encoding_ends_every_side_and_counts_what_it_drops():
    encoded = encode_pairs(
        [("5 6", "7"), ("", "7"), ("5", " "), ("1 2 3", "4"), ("9", "8 7"), ("4", "1 1 1")],
        max_length=3,
    )
    assert [row.tolist() for row in encoded.source] == [[5, 6, END_ID], [9, END_ID]]
    assert [row.tolist() for row in encoded.target] == [[7, END_ID], [8, 7, END_ID]]
    assert (encoded.kept, encoded.dropped_empty, encoded.dropped_long) == (2, 2, 2)
    assert encoded.report() == (
        "2 sentence pairs kept (5 source and 5 target tokens), 2 dropped because a side is empty, "
        "2 because a side exceeds 3 tokens"
    )


def test_encoding_in_chunks_equals_encoding_at_once(monkeypatch):
    pairs = [(f"{i}", f"{i} " * (i % 5)) for i in range(4, 44)]
    direct, seen = encode_pairs(pairs), []
    monkeypatch.setattr(encoding, "CHUNK", 7)
    chunked = encode_pairs(iter(pairs), on_progress=seen.append)
    assert seen == [7, 14, 21, 28, 35, 40]
    for side in ("source", "target"):
        np.testing.assert_array_equal(getattr(chunked, side).ids, getattr(direct, side).ids)
        np.testing.assert_array_equal(getattr(chunked, side).offsets, getattr(direct, side).offsets)
    assert chunked.report() == direct.report()


@pytest.mark.parametrize("pairs", [[], [("", "7")], [("1 2 3", "7")]])
def test_no_pair_left_is_refused(pairs):
    message = (
        r"^no text is left: 0 sentence pairs kept \(.*tokens; use more text or raise max_length$"
    )
    with pytest.raises(ValueError, match=message):
        encode_pairs(pairs, max_length=3)


def long_text(rows):
    """A text with two sides and as many rows of 50 ids on each."""
    ids = np.arange(50 * rows, dtype=np.int32)
    side = IdRows(ids, np.arange(0, 50 * rows + 1, 50))
    return EncodedText((side, side), max_length=50, dropped_empty=0, dropped_long=0)


def test_the_digest_is_that_of_the_bytes_of_all_ids_and_offsets():
    text = encode_pairs([("5 6", "7"), ("9", "8 7")])
    assert {rows.ids.dtype for rows in text.sides} == {np.dtype(np.uint16)}  # 10,000 pieces
    side_bytes = [
        rows.ids.astype(np.int32).tobytes() + rows.offsets.astype(np.int64).tobytes()
        for rows in text.sides
    ]
    assert text.digest == hashlib.sha256(b"".join(side_bytes)).hexdigest()


def test_the_digest_copies_no_text():
    text = long_text(rows=100_000)
    tracemalloc.start()
    assert len(text.digest) == 64
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < text.source.ids.nbytes / 10


def test_sentences_are_truncated_and_counted():
    encoded = encode_truncated(WordIds(), ["4 5 6 7", "", "8 9", "5 5 5"], max_tokens=2)
    assert encoded.ids == [[4, 5], [], [8, 9], [5, 5]]
    assert encoded.truncated == 2
    assert len(encoded) == 4
    assert encoded.take([3, 1]).ids == [[5, 5], []]
    assert encoded.take([3, 1]).truncated == 1


# Links between words

ROWS = [
    ("ab b", "b ab a", "0-0 0-2 1-0"),  # "ab" of the target has no link
    ("", "a", "0-0"),  # is dropped
    ("bab", "ab", ""),  # has no links
    ("a ba", "bb b", "0-1 1-1 1-0"),
]


def words_of(pieces):
    """The positions of the pieces of each word, from 1 on; the end token is a word."""
    text = "".join(pieces[:-1])
    ends = itertools.accumulate(map(len, pieces))
    numbers = [text[:end].count("▁") - 1 for end in ends]
    return [
        [position for position, number in enumerate(numbers[:-1], 1) if number == word]
        for word in range(text.count("▁"))
    ] + [[len(pieces)]]


def allowed(row, pieces):
    """The source positions that each target piece of a row may get, one word at a time."""
    source, target = map(words_of, pieces)
    links = [tuple(map(int, link.split("-"))) for link in row[2].split()]
    end = len(source) - 1
    positions = {}
    for number, word in enumerate(target):
        linked = [i for i, j in links if j == number] or [end]
        for piece in word:
            positions[piece] = [source[i] for i in linked] if row[2] else [[0]]
    return [positions[piece] for piece in sorted(positions)]


def test_each_piece_gets_every_word_that_is_linked_to_its_word_equally_often(monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK", 1_000)  # each chunk draws the same
    letters = Tokenizer.train(["a b"] * 20, 7)
    text = encoding.encode_corpora([ROWS * 250], (letters, letters), 20, with_links=True)
    kept = [row for row in ROWS if row[0]]
    assert text.links.lengths.tolist() == text.target.lengths.tolist()
    for number, row in enumerate(kept):
        drawn = np.stack([text.links[n] for n in range(number, text.kept, len(kept))])  # (250, T)
        pieces = [letters.pieces(side[number].tolist()) for side in text.sides]
        for column, words in zip(drawn.T, allowed(row, pieces), strict=True):
            assert set(column) == set(itertools.chain.from_iterable(words))
            for word in words:
                share = np.isin(column, word).mean()
                assert share == pytest.approx(1 / len(words), abs=0.12)


def test_a_tag_has_no_number():
    letters = Tokenizer.train(["a b"] * 20, 8, symbols=["<de>"]).with_tag("<de>")
    rows = [("a b", "b a", "0-1 1-0")]
    text = encoding.encode_corpora([rows], (letters, letters), 20, with_links=True)
    pieces = [letters.pieces(side[0].tolist()) for side in text.sides]
    assert pieces[0] == ["▁", "<de>", "▁", "a", "▁", "b", "</s>"]
    assert pieces[1] == ["▁", "<de>", "▁", "b", "▁", "a", "</s>"]
    tag, b, a, end = np.split(text.links[0], [2, 4, 6])
    assert (set(tag), set(end)) == ({7}, {7})
    assert set(b) <= {5, 6}
    assert set(a) <= {3, 4}


@pytest.mark.parametrize("source", ["\x01 a b", "a \u200b b", "a\u200bb"])
def test_links_of_words_that_the_tokenizer_removes_or_divides_are_ignored(source):
    letters = Tokenizer.train(["a b"] * 20, 7)
    rows = [(source, "b", "1-0"), ("a", "b", "0-0"), ("", "b", "")]
    text = encoding.encode_corpora([rows], (letters, letters), 20, with_links=True)
    assert not text.links[0].any()
    assert text.links[1].all()
