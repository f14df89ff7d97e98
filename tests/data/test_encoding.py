"""Sentences as ids, against ids written by hand."""

import numpy as np
import pytest
from support.word_ids import encode_pairs

from tfformer.data import encoding
from tfformer.data.encoding import IdRows
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
        "2 sentence pairs kept (5 source and 5 target tokens), 2 dropped for an empty side, "
        "2 for a side of more than 3 tokens"
    )


def test_encoding_in_chunks_equals_encoding_at_once(monkeypatch):
    pairs = [(f"{i}", f"{i} " * (i % 5)) for i in range(4, 44)]
    whole, seen = encode_pairs(pairs), []
    monkeypatch.setattr(encoding, "CHUNK", 7)
    chunked = encode_pairs(iter(pairs), on_progress=seen.append)
    assert seen == [7, 14, 21, 28, 35, 40]
    for side in ("source", "target"):
        np.testing.assert_array_equal(getattr(chunked, side).ids, getattr(whole, side).ids)
        np.testing.assert_array_equal(getattr(chunked, side).offsets, getattr(whole, side).offsets)
    assert chunked.report() == whole.report()


@pytest.mark.parametrize("pairs", [[], [("", "7")], [("1 2 3", "7")]])
def test_no_pair_left_is_refused(pairs):
    message = (
        r"^no text is left: 0 sentence pairs kept \(.*tokens; give more text or raise max_length$"
    )
    with pytest.raises(ValueError, match=message):
        encode_pairs(pairs, max_length=3)


# Random segmentation


def test_random_cuts_keep_the_rows_and_the_length(letter_pairs, letters):
    usual = encoding.encode_text(letter_pairs, [letters, letters], 20)
    drawn = encoding.sampled_texts(letter_pairs, [letters, letters], 20, alpha=0.1, seed=1)(0)
    assert 0 < usual.dropped_long < len(letter_pairs)
    assert (drawn.kept, drawn.dropped_long) == (usual.kept, usual.dropped_long)
    for one, other in zip(drawn.sides, usual.sides, strict=True):
        assert letters.decode(list(one)) == letters.decode(list(other))
        assert one.lengths.max() == 20
        assert one.lengths.mean() > 1.01 * other.lengths.mean()
