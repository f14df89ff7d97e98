"""Encoded text in files equals encoded text in memory; incomplete or changed files are refused."""

import functools
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tfformer.data.batches import Batches
from tfformer.data.encoding import encode_corpora
from tfformer.data.sources import read_pairs
from tfformer.data.text_cache import cached_text, text_fingerprint
from tfformer.data.tokenizers import Tokenizer

MAX_LENGTH = 24


@pytest.fixture
def corpus(tmp_path, letter_pairs) -> Path:
    """Write two TSV files of pairs of letters."""
    for name, pairs in (("a.tsv", letter_pairs[:300]), ("b.tsv", letter_pairs[300:])):
        (tmp_path / name).write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    return tmp_path


def never():
    raise AssertionError("the text was read again")


def open_cache(corpus, tokenizer, read=None, max_length=MAX_LENGTH):
    """Open the cached text of both files; `read` replaces the reader of the files."""
    sources = ["a.tsv", "b.tsv"]
    return cached_text(
        corpus / "cache",
        functools.partial(text_fingerprint, sources, corpus, None, "train"),
        read or (lambda: [read_pairs(source, corpus) for source in sources]),
        (tokenizer, tokenizer),
        max_length,
    )


def entries(corpus):
    return list((corpus / "cache").glob("*"))


def test_a_file_may_have_the_name_of_a_kind_of_corpus(tmp_path):
    for name in ("tfds", "phrasebook"):
        (tmp_path / name).write_bytes(name.encode())
        digest = hashlib.sha256(name.encode()).hexdigest()
        (fingerprint,) = text_fingerprint(name, tmp_path, None, "train")
        assert digest in json.dumps(fingerprint)


def test_a_cached_text_is_that_in_memory_and_is_not_read_again(corpus, letters, letter_pairs):
    memory = encode_corpora(
        [letter_pairs[:300], letter_pairs[300:]], (letters, letters), MAX_LENGTH
    )
    for read in (None, never):
        text = open_cache(corpus, letters, read)
        assert text.report() == memory.report()
        assert text.corpora == memory.corpora
        assert text.digest == memory.digest
        for mapped, rows in zip(text.sides, memory.sides, strict=True):
            assert isinstance(mapped.ids, np.memmap)
            assert mapped.ids.dtype == np.uint8  # 40 pieces
            assert mapped.offsets.dtype == np.uint16
            np.testing.assert_array_equal(mapped.ids, rows.ids)
            np.testing.assert_array_equal(mapped.offsets, rows.offsets)
        shares = [0.2, 0.8]
        for given in (None, shares):
            ours, expected = (Batches(encoded, 200, 1, shares=given) for encoded in (text, memory))
            assert ours.report() == expected.report()
            for step in range(2 * ours.steps_per_epoch):
                for mapped, array in zip(flat(ours, step), flat(expected, step), strict=True):
                    np.testing.assert_array_equal(mapped, array)


def flat(batches, step):
    inputs, labels, weights = batches.batch(step)
    return [*inputs.values(), labels, weights]


def test_a_touched_text_is_told_by_its_content(corpus, letters):
    open_cache(corpus, letters)
    os.utime(corpus / "a.tsv")
    open_cache(corpus, letters, never)


def test_another_text_vocabulary_or_length_has_files_of_its_own(corpus, letters):
    open_cache(corpus, letters)
    open_cache(corpus, letters, max_length=MAX_LENGTH + 1)
    open_cache(corpus, Tokenizer.train(["ab cd abc"] * 50, 10))
    status = (corpus / "a.tsv").stat()
    text = (corpus / "a.tsv").read_text()
    (corpus / "a.tsv").write_text(text.replace("a", "b", 1))  # of the same size and mtime
    os.utime(corpus / "a.tsv", ns=(status.st_atime_ns, status.st_mtime_ns))
    open_cache(corpus, letters)
    assert len(entries(corpus)) == 4


def flip_a_byte(entry):
    file = entry / "target.ids.npy"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)


def truncate(entry):
    file = entry / "source.offsets.npy"
    file.write_bytes(file.read_bytes()[:-4])


def edit_the_manifest(entry):
    file = entry / "manifest.json"
    file.write_text(file.read_text().replace('"dropped_empty": 0', '"dropped_empty": 1'))


def take_anothers(entry):
    manifest = json.loads((entry / "manifest.json").read_text())
    assert manifest["key"]["max_length"] == MAX_LENGTH
    (foreign,) = (folder for folder in entry.parent.iterdir() if folder != entry)
    shutil.rmtree(entry)
    shutil.copytree(foreign, entry)


DAMAGES = {
    flip_a_byte: "its ids do not match their digest",
    truncate: "mmap length is greater than file size",
    edit_the_manifest: "manifest.json does not match its digest",
    take_anothers: "it was written for another text, vocabulary or version",
    lambda entry: (entry / "manifest.json").unlink(): "manifest.json is missing",
    lambda entry: (entry / "source.ids.npy").unlink(): r"\[Errno 2\] No such file .*source.ids.npy",
    lambda entry: (entry / "manifest.json").write_bytes(b"\xff{"): ".*is not UTF-8 .*",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_cache_is_refused_in_one_line(corpus, letters, damage):
    open_cache(corpus, letters)
    (entry,) = entries(corpus)
    open_cache(corpus, letters, max_length=MAX_LENGTH + 1)
    damage(entry)
    with pytest.raises(
        ValueError,
        match=rf"^{entry} is not a complete text cache \({DAMAGES[damage]}.*\); delete this folder"
        "; the next training run writes it again$",
    ):
        open_cache(corpus, letters, never)
    shutil.rmtree(entry)
    open_cache(corpus, letters)


def test_damage_in_any_byte_of_a_header_is_refused(corpus, letters):
    open_cache(corpus, letters)
    [entry] = entries(corpus)
    file = entry / "source.ids.npy"
    content = file.read_bytes()
    for number in range(128):
        damaged = bytearray(content)
        damaged[number] ^= 8
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a complete text cache"):
            open_cache(corpus, letters, never)


def test_a_file_in_place_of_the_cache_is_refused(corpus, letters):
    (corpus / "cache").touch()
    with pytest.raises(ValueError, match=r"^data.cache=.*cache is a file; set it to a folder, or"):
        open_cache(corpus, letters)


def test_a_text_that_changes_while_it_is_read_is_refused(corpus, letters):
    def read():
        yield read_pairs("a.tsv", corpus)
        (corpus / "a.tsv").write_text("ab\tcd\n")

    with pytest.raises(ValueError, match="was changed while it was encoded; start again when"):
        open_cache(corpus, letters, read)
    assert entries(corpus) == []


def test_no_text_left_or_an_error_within_leaves_nothing(corpus, letters):
    with pytest.raises(ValueError, match=r"^no text is left: 0 sentence pairs kept"):
        open_cache(corpus, letters, max_length=2)
    (corpus / "b.tsv").write_bytes(b"caf\xe9\tab\n")
    with pytest.raises(ValueError, match=r"b.tsv, line 1: byte 4, 0xe9, is not UTF-8"):
        open_cache(corpus, letters)
    assert entries(corpus) == []


@pytest.mark.parametrize(
    ("limit", "failure"),
    [
        (200, r"source.ids.npy of the text cache cannot be written \(File too large\)"),
        (110_000, r"target.offsets.npy of the text cache cannot be written \(30001 requested.*\)"),
    ],
)
def test_a_full_disk_is_one_line_and_leaves_nothing(corpus, letters, limit, failure):
    """A limit on file sizes simulates a full disk; many short pairs have more offsets than ids."""
    open_cache(corpus, letters, max_length=MAX_LENGTH + 1)
    (kept,) = entries(corpus)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    pairs = [("d a", "d b")] * 30_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(OSError, match=f"^{failure}; free some space, or set data.cache to"):
            open_cache(corpus, letters, lambda: [pairs])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert entries(corpus) == [kept]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:2]
from tests.data.test_text_cache import open_cache, read_pairs
from tfformer.data import encoding
from tfformer.data.tokenizers import Tokenizer
corpus = Path(sys.argv[2])
encoding.CHUNK = 50

def read():
    for number, pair in enumerate(read_pairs("a.tsv", corpus)):
        if number == 290:
            os.kill(os.getpid(), signal.SIGKILL)
        yield pair

open_cache(corpus, Tokenizer.load(corpus / "letters.model"), lambda: [read()])
"""


def test_a_kill_in_the_middle_of_writing_leaves_no_cache(corpus, letters, letter_pairs):
    root = Path(__file__).parents[2]
    letters.save(corpus / "letters.model")
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'tests'}"}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(root), str(corpus)], env=environment)
    assert killed.returncode == -signal.SIGKILL
    (leaving,) = entries(corpus)
    assert {file.name for file in leaving.iterdir()} == {"source.ids.npy", "target.ids.npy"}
    with pytest.warns(UserWarning, match="removed .* which a killed process had left unfinished"):
        text = open_cache(corpus, letters)
    memory = encode_corpora([letter_pairs], (letters, letters), MAX_LENGTH)
    assert text.digest == memory.digest
    assert len(entries(corpus)) == 1


def write_together(corpus, barrier, digests):
    barrier.wait()
    digests.put(open_cache(corpus, Tokenizer.load(corpus / "letters.model")).digest)


def test_processes_that_write_one_cache_at_once_end_well(corpus, letters):
    letters.save(corpus / "letters.model")
    context = multiprocessing.get_context("fork")
    barrier, digests = context.Barrier(3), context.Queue()
    writers = [
        context.Process(target=write_together, args=(corpus, barrier, digests)) for _ in range(3)
    ]
    for writer in writers:
        writer.start()
    written = {digests.get(timeout=60) for _ in writers}
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert written == {open_cache(corpus, letters, never).digest}
    assert len(entries(corpus)) == 1


def test_text_with_one_side_has_one_pair_of_files(corpus, letters, letter_pairs):
    (corpus / "text.txt").write_text("".join(f"{source}\n" for source, _ in letter_pairs))
    fingerprint = functools.partial(text_fingerprint, "text.txt", corpus, None, "train")
    rows = [(source,) for source, _ in letter_pairs]
    text = cached_text(corpus / "cache", fingerprint, lambda: [rows], [letters], MAX_LENGTH)
    assert text.digest == encode_corpora([rows], [letters], MAX_LENGTH).digest
    (entry,) = entries(corpus)
    assert {file.name for file in entry.iterdir()} == {
        "manifest.json",
        "text.ids.npy",
        "text.offsets.npy",
    }
