"""Compare encoded sentences with ids written by hand."""

import hashlib
import tracemalloc

import numpy as np
import pytest
from support.word_ids import WordIds, encode_pairs

from tfformer.data import encoding
from tfformer.data.encoding import EncodedText, IdRows, encode_truncated
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
