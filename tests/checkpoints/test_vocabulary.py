import json
from pathlib import Path

import numpy as np
import pytest
from support.marian_checkpoints import FIXTURES

from tfformer.checkpoints.provenance import NOT_STATED, licence
from tfformer.checkpoints.vocabulary import RowOrder, by_id, read_vocabulary

PATH = Path("vocab.yml")


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("▁Haus: 0", "▁Haus"),
        ("yes: 0", "yes"),
        ("~: 0", "~"),
        ("1.0: 0", "1.0"),
        ("null: 0", "null"),
        ('"\\x84": 0', "\x84"),
        ('"\\u2581a": 0', "▁a"),
        ('"\\U0001F600": 0', "😀"),
        ("'it''s': 0", "it's"),
        ("':': 0", ":"),
        ("a:b: 0", "a:b"),
        ("? long\n: 0", "long"),
        ('? "quoted"\n: 0', "quoted"),
        ("-: 0", "-"),
    ],
)
def test_a_line_of_marians_yaml_is_a_piece_and_its_id(tmp_path, line, piece):
    path = tmp_path / "vocab.yml"
    path.write_text(f"{line}\n", encoding="utf-8")
    assert read_vocabulary(path) == [piece]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", "must contain tokens and ids"),
        ("a: 0\nb: x\n", "'b' has the id 'x'"),
        ("? a\n", "'a' has the id ''"),
        ("? a\nb: 1\n", "'a' has the id ''"),
        ("'a: 0\n", "is not a YAML vocabulary"),
        ('"\\q": 0\n', "is not a YAML vocabulary"),
        ('"\\UFFFFFFFF": 0\n', "is not a YAML vocabulary"),
        ('"\\U00110000": 0\n', "is not a YAML vocabulary"),
    ],
)
def test_other_lines_are_refused(tmp_path, text, message):
    path = tmp_path / "vocab.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"vocab\.yml.*{message}"):
        read_vocabulary(path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"a": 0, "b": 2}, "no token has the id 1, although the largest id is 2"),
        ({"a": 0, "b": 0}, "'a' and 'b' have the same id 0"),
        ({"a": 0, "b": -1}, "'b' has the id -1"),
        ({"a": 0, "b": "1"}, "'b' has the id '1'"),
        ({"a": 0, "b": True}, "'b' has the id True"),
    ],
)
def test_ids_with_holes_or_doubles_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        by_id(ids, PATH)


def test_every_kind_of_vocabulary_file_gives_its_tokens_by_id(tmp_path):
    pieces = ["</s>", "<unk>", "▁a", '"']
    (tmp_path / "a.json").write_text(json.dumps({p: n for n, p in enumerate(pieces)}))
    (tmp_path / "a.yml").write_text(
        "".join(f"{json.dumps(p)}: {n}\n" for n, p in enumerate(pieces))
    )
    for ending in ("json", "yml"):
        assert read_vocabulary(tmp_path / f"a.{ending}") == pieces


def test_the_ids_of_a_sentencepiece_model_are_its_own():
    vocabulary = read_vocabulary(FIXTURES / "source.spm")
    assert vocabulary[:2] == ["</s>", "<unk>"]
    assert len(vocabulary) == 72


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.spm", b"no model", "not a complete SentencePiece model"),
        ("a.yml", b"\xff\n", "is not a YAML vocabulary"),
    ],
)
def test_a_damaged_vocabulary_file_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_vocabulary(tmp_path / name)


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"vocab\.json is missing"):
        read_vocabulary(tmp_path / "vocab.json")


ORDERS = [
    RowOrder.of(6, unknown=1, end=0, pad=5, start=5),  # Hugging Face
    RowOrder.of(6, unknown=4, end=2, pad=0, start=0),
    RowOrder.of(6, unknown=1, end=0, pad=None, start=None),  # Marian
    RowOrder.of(6, unknown=1, end=0, pad=5, start=3),
]


@pytest.mark.parametrize("order", ORDERS)
def test_a_table_comes_back_bit_equal(order):
    table = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
    np.testing.assert_array_equal(order.give_back(order.bring_in(table)), table)


def test_the_special_rows_come_first():
    order = RowOrder.of(6, unknown=4, end=2, pad=0, start=0)
    table = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(order.bring_in(table), [0, 4, 0, 2, 1, 3, 5])


def test_rows_that_a_foreign_table_lacks_are_zero():
    order = RowOrder.of(3, unknown=1, end=0, pad=None, start=None)
    np.testing.assert_array_equal(
        order.bring_in(np.ones((3, 2))), [[0, 0], [1, 1], [0, 0], [1, 1], [1, 1]]
    )


def test_a_start_row_that_training_has_changed_goes_back_as_padding():
    order = RowOrder.of(5, unknown=1, end=0, pad=4, start=4)
    embeddings = order.bring_in(np.zeros((5, 1), np.float32))
    embeddings[2] = 7
    np.testing.assert_array_equal(order.give_back(embeddings)[:, 0], [0, 0, 0, 0, 7])


def test_added_pieces_have_names_that_are_free():
    order = RowOrder.of(4, unknown=1, end=0, pad=None, start=None)
    assert order.pieces(["</s>", "<unk>", "<start>", "<pad>"]) == [
        *("<<pad>>", "<unk>", "<<start>>", "</s>"),
        *("<start>", "<pad>"),
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"README.md": "---\nlanguage: en\nlicense: cc-by-4.0\n---\n"}, "cc-by-4.0"),
        ({"README.md": "license: mit\n"}, NOT_STATED),
        ({"README.md": "---\nlicense:\n- apache-2.0\n---\n"}, "apache-2.0"),
        ({"README.md": "---\nlicense: [mit, apache-2.0]\n---\n"}, "mit, apache-2.0"),
        ({"README.md": '---\r\nlicense: "mit" # ours\r\n---\r\n'}, "mit"),
        ({"README.md": "---\nlicense: other\nlicense_name: foo-1\n---\n"}, "foo-1"),
        ({"README.md": "---\nlicense: other\n---\n"}, "other"),
        ({"README.md": "---\nlicense:\nlanguage: en\n---\n", "LICENSE": "MIT"}, "MIT"),
        ({"README.md": "---\nlanguage: en\n---\nlicense: see below\n"}, NOT_STATED),
        ({"README.md": "---\nlicense: {\n---\n"}, NOT_STATED),
        ({"README.md": "---\nlicense: mit\n"}, NOT_STATED),
        ({"LICENSE": "\n  The MIT License\n\nmore"}, "The MIT License"),
        ({}, NOT_STATED),
    ],
)
def test_the_licence_is_the_one_that_the_folder_states(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert licence(tmp_path) == expected
