"""Tables of candidates in Marian's two formats, as the test writes them from their layout."""

import gzip
import itertools
import shutil
import struct

import numpy as np
import pytest
import tensorflow as tf
import yaml
from support.marian_checkpoints import FIXTURES, checkpoint, edit_json, edit_yaml, languages

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import shortlist
from tfformer.checkpoints.marian.shortlist import read_table, table_in
from tfformer.checkpoints.vocabulary import read_vocabulary
from tfformer.cli.main import main
from tfformer.config import DecodingConfig
from tfformer.data.encoding import IdRows, pad
from tfformer.export.pipeline import export_model
from tfformer.inference.graphs import translate_ids
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID

PIECES = read_vocabulary(FIXTURES / "SSRU" / "joint.spm")
SIZE = len(PIECES)
END = PIECES.index("</s>")


def random_lists(seed, count=SIZE):
    """Each source piece's 0 to 3 target pieces, the most likely first; none for special pieces."""
    random = np.random.default_rng(seed)
    lists = [random.permutation(np.arange(3, SIZE))[: random.integers(4)] for _ in range(count)]
    return [row.tolist() if number > 2 else [] for number, row in enumerate(lists)]


def binary(lists, first=5, ids=None):
    """The layout of browsermt/marian-dev, src/data/shortlist.h, with the hash of common/hash.h."""
    ids = [number for row in lists for number in sorted(row)] if ids is None else ids
    offsets = np.cumsum([0, *map(len, lists)]).tolist()
    body = struct.pack(f"<4Q{len(offsets)}Q", first, 3, len(offsets), len(ids), *offsets)
    body += struct.pack(f"<{len(ids)}I", *ids)
    return struct.pack("<2Q", 0xF11A48D5013417F5, checksum(body)) + body


def checksum(body):
    """The hash in uint64 arithmetic, which wraps around as in C++."""
    seed = np.uint64(0)
    with np.errstate(over="ignore"):
        for number in np.frombuffer(body[: len(body) // 8 * 8], "<u8"):
            seed ^= number + np.uint64(0x9E3779B9) + (seed << np.uint64(6)) + (seed >> np.uint64(2))
    return int(seed)


def test_the_checksum_is_that_of_a_program_in_cpp():
    """g++ compiled the hash_combine of Marian's common/hash.h to obtain the last value."""
    numbers = (5, 3, 4, 4, 0, 1, 2, 3, 0x500000004, 2**64 - 1, 0xF11A48D5013417F5)
    body = struct.pack("<11Q", *numbers)
    assert checksum(body) == shortlist._checksum(body + bytes(4)) == 0xEDDFF88D3049259C


def text(lists):
    """The lines "target source probability", the less likely first, and some to be ignored."""
    lines = ["NULL ▁ 0.5", "nowhere ▁ 0.5"]
    for source, row in enumerate(lists):
        lines += [
            f"{PIECES[target]} {PIECES[source]} {0.5 / (rank + 1):.6f}"
            for rank, target in reversed(list(enumerate(row)))
        ]
    return "\n".join(lines) + "\n"


def rows_of(table):
    return [table[number].tolist() for number in range(len(table))]


@pytest.mark.parametrize("count", [SIZE, SIZE - 3])
def test_both_formats_are_read(tmp_path, count):
    lists = random_lists(1, count)
    (tmp_path / "lex.bin").write_bytes(binary(lists))
    with gzip.open(tmp_path / "lex.s2t.gz", "wt", encoding="utf-8") as file:
        file.write(text(lists))
    wanted = [sorted(row) for row in [*lists, [], [], []][:SIZE]]
    wanted[END] = list(range(5))
    others = [f"other{number}" for number in range(SIZE)]  # all texts but one differ
    others[7] = PIECES[9]
    wanted_of_others = [*wanted[:9], sorted({*wanted[9], 7}), *wanted[10:]]
    assert rows_of(read_table(tmp_path / "lex.bin", PIECES, others)) == wanted_of_others
    rows = rows_of(read_table(tmp_path / "lex.s2t.gz", PIECES, PIECES, ["lex.s2t.gz", 5]))
    assert rows == [sorted({*row, number}) for number, row in enumerate(wanted)]


@pytest.mark.parametrize("limits", [(5, 1), ("7", "2", "0.1"), (0, 3, 0.25), (SIZE + 9, 3, 0.5)])
def test_the_limits_in_decoder_yml_are_those_of_a_text(tmp_path, limits):
    """A translation's probability is 0.5 / rank, and must be above the threshold."""
    lists = random_lists(1)
    (tmp_path / "lex.s2t").write_text(text(lists), encoding="utf-8")
    rows = rows_of(read_table(tmp_path / "lex.s2t", PIECES, PIECES, ["lex.s2t", *limits]))
    first, best, threshold = map(float, (*limits, 0)[:3])
    for number, row in enumerate(lists):
        likely = {target for rank, target in enumerate(row, 1) if 0.5 / rank > threshold}
        wanted = likely & {*row[: int(best)]} | {number}
        if number == END:
            wanted |= {*range(min(int(first), SIZE))}
        assert rows[number] == sorted(wanted)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(FIXTURES / "SSRU", tmp_path / "model")


def pieces_of(run):
    """The candidates of each piece of a run as texts; those of ids, if padding or start."""
    pieces = run.tokenizers.source.pieces(range(run.tokenizers.source.vocab_size))
    table = run.load_shortlist()
    return {piece: {pieces[n] for n in table[number]} for number, piece in enumerate(pieces)}


def test_an_imported_run_has_the_shortlist_in_its_own_ids(folder, tmp_path):
    lists = random_lists(2)
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(binary(lists))
    run = Run.open(import_model(folder, tmp_path / "run"))
    of_binary = pieces_of(run)
    for number, piece in enumerate(PIECES):
        row = {*lists[number], number, *(range(5) if number == END else ())}
        assert of_binary[piece] == {PIECES[target] for target in row}
    assert {PIECES[n] for n in range(5)} == of_binary["</s>"]
    assert run.tokenizers.source.pieces([END_ID]) == ["</s>"]

    for name in ("lex.s2t", "lex.t2s"):  # the second is for the other direction
        (folder / name).write_text(text(lists), encoding="utf-8")
    with pytest.raises(ValueError, match=r"2 shortlists \(lex.50.50.ende.s2t.bin, lex.s2t\)"):
        import_model(folder, tmp_path / "both")
    (folder / "lex.50.50.ende.s2t.bin").unlink()
    of_text = pieces_of(Run.open(import_model(folder, tmp_path / "text")))
    assert {**of_text, "</s>": ()} == {**of_binary, "</s>": ()}
    assert of_text["</s>"] == set(PIECES[:100])

    words = tmp_path / "words"
    words.write_text("".join(piece.replace("▁", " ") for piece in PIECES[3:60]), encoding="utf-8")
    trimmed = pieces_of(Run.open(import_model(folder, tmp_path / "trimmed", trim=str(words))))
    assert len(trimmed) < len(of_text)
    assert trimmed == {piece: of_text[piece] & trimmed.keys() for piece in trimmed}


GOOD = binary(random_lists(4))
FAULTS = {
    "cut off": ("lex.bin", GOOD[:-2]),
    "is cut off": ("lex.bin", GOOD[:20]),
    "its checksum differs": ("lex.bin", GOOD[:60] + b"\x01" + GOOD[61:]),
    "does not fit the vocabularies of": ("lex.bin", binary(random_lists(4, SIZE + 2))),
    "does not fit the vocabularies": ("lex.bin", binary([[1], [SIZE]], ids=[1, SIZE])),
    "of an unknown layout": ("lex.bin", b"\xd2\x02\x96\x49" + GOOD),
    "lex.s2t, line 2 is not 'target source probability'": ("lex.s2t", b"a b 0.1\na b 0.1 d\n"),
    "line 1 is not 'target": ("lex.s2t", b"a b c\n"),
    "they lack pieces in 2 of its 2 lines": ("lex.s2t", b"x1 x2 0.1\nx3 x4 0.2\n"),
    "line 1: byte 1, 0xff, is not UTF-8": ("lex.s2t", b"\xff"),
    "is compressed; unpack it": ("lex.bin.gz", gzip.compress(GOOD)),
}


def test_only_tables_are_read_and_decoder_yml_chooses(tmp_path):
    for name in ("lexicon.txt", "lexical_shortlist.npz", "lex.t2s", "lex.s2t.old", "table.bin"):
        (tmp_path / name).touch()
    (tmp_path / "lex.s2t").mkdir()
    assert table_in(tmp_path, None) is None
    (tmp_path / "lex.50.50.ende.s2t.bin").touch()
    assert table_in(tmp_path, None) == tmp_path / "lex.50.50.ende.s2t.bin"
    assert table_in(tmp_path, ["/elsewhere/table.bin", 50, 50]) == tmp_path / "table.bin"
    with pytest.warns(UserWarning, match=r"lex.s2t.gz, the shortlist in decoder.yml, is missing"):
        assert table_in(tmp_path, ["lex.s2t.gz", False]) is None


@pytest.mark.parametrize("limits", [[-1], [50, "x"], [50, 50, ".nan"], [".inf"], [False]])
def test_a_limit_that_is_not_a_number_is_one_line(folder, tmp_path, capsys, limits):
    (folder / "lex.s2t").write_text(text(random_lists(1)), encoding="utf-8")
    edit_yaml(next(folder.glob("*decoder.yml")), shortlist=["lex.s2t", *limits])
    assert main(["import", str(folder), "--run-dir", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "after the path there must be numbers of at least 0" in line


def read_binary(path):
    """Return the frequent pieces and the candidates of each piece in a lex.bin."""
    content = path.read_bytes()
    magic, hashed, first, _, offset_count, id_count = struct.unpack_from("<6Q", content)
    assert (magic, hashed) == (0xF11A48D5013417F5, checksum(content[16:]))
    numbers = struct.unpack_from(f"<{offset_count}Q{id_count}I", content, 48)
    offsets, ids = numbers[:offset_count], numbers[offset_count:]
    assert len(content) == 48 + 8 * offset_count + 4 * id_count
    return set(range(first)), [{*ids[a:b]} for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("first", [5, 0])
def test_a_shortlist_goes_back_to_firefox_and_marian(folder, tmp_path, first):
    lists = random_lists(5)
    lists[END] = [8, 11]  # frequent pieces that are not the first
    (folder / "lex.bin").write_bytes(binary(lists, first))
    run = Run.open(import_model(folder, tmp_path / "run"))
    version = export_model(run.path, tmp_path / "out", format="marian")
    wanted = [{*row, number} for number, row in enumerate(lists)]
    wanted[END] |= {*range(first)}

    frequent, candidates = read_binary(version / "lex.bin")
    assert frequent == {*range(max(first, 1))}  # the end itself is the first piece
    assert candidates == wanted
    with gzip.open(version / "lex.s2t.gz", "rt", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    for number, piece in enumerate(PIECES):
        assert {t for t, s, _ in lines if s == piece} == {PIECES[n] for n in wanted[number]}

    decoder = yaml.safe_load((version / "decoder.yml").read_text())
    best = max(map(len, wanted))
    assert decoder["shortlist"] == ["lex.s2t.gz", len(frequent), best, 0]
    assert {file.name for file in version.glob("*.spm")} == {"vocab.spm"}
    for name in ("lex.s2t.gz", "lex.bin"):
        edit_yaml(version / "decoder.yml", shortlist=[name, *decoder["shortlist"][1:]])
        again = Run.open(import_model(version, tmp_path / f"of-{name}"))
        assert rows_of(again.load_shortlist()) == rows_of(run.load_shortlist())


@pytest.mark.parametrize("message", FAULTS)
def test_a_table_that_does_not_fit_is_one_line(folder, tmp_path, capsys, message):
    name, content = FAULTS[message]
    (folder / name).write_bytes(content)
    assert main(["import", str(folder), "--run-dir", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "run").exists()


def test_a_model_with_rules_has_no_shortlist(tmp_path, capsys):
    folder = checkpoint("M2M", tmp_path)
    edit_json(folder / "generation_config.json", no_repeat_ngram_size=3)
    run = import_model(folder, tmp_path / "run", **languages("M2M"))
    assert main(["shortlist", str(run)]) == 2
    assert "was imported with rules for its search" in capsys.readouterr().err
    assert not (run / "shortlist.npz").exists()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_language_token_is_a_candidate_of_each_sentence(tmp_path, beam_size):
    """The token is in no list of the table, which allows the pieces of two words only."""
    run = import_model(checkpoint("M2M", tmp_path), tmp_path / "run", **languages("M2M"))
    tokenizers = Run.open(run).tokenizers
    [[token, *pieces]] = tokenizers.target.encode(["wir sehen"])
    rows = [pieces] * (tokenizers.source.vocab_size - END_ID)
    Run.open(run).save_shortlist(IdRows.of([[], [], [], *rows]))
    translator = Translator.load(run)
    sources = [[*ids, END_ID] for ids in tokenizers.source.encode(["a dog", "we see the dog."])]
    decoding = DecodingConfig(beam_size=beam_size)
    options = {"first_token": token, "shortlist": translator.shortlist}
    found = translate_ids(translator.model, tf.constant(pad(sources)), 20, decoding, **options)
    assert set(found.ids[:, 0, 0].numpy()) == {token}
    assert set(found.ids[:, 0, 1:].numpy().ravel()) <= {*range(END_ID + 1), *pieces}
