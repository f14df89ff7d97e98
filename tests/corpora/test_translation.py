"""Translate a part of a corpus with a scripted engine; parts and their folders."""

import gzip
import json
import random
from pathlib import Path

import pytest
from support.scripted_engine import ScriptedEngine

from tfformer.corpora import parts
from tfformer.corpora.parts import JOB, LOCK, Counts, Part, find_parts, job_folder, translate_part
from tfformer.corpora.workers import Outcomes
from tfformer.data.sources import read_lines


def backwards(sentences):
    return [sentence[::-1] for sentence in sentences]


ENGINE = ScriptedEngine(backwards, 5)


def translated(tmp_path, content, name="part", engine=ENGINE):
    source = tmp_path / name
    source.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (tmp_path / "out").mkdir(exist_ok=True)
    part = Part(source, tmp_path / "out" / name)
    reports = []
    counts = translate_part(engine, part, reports.append)
    sums = Counts()
    for report in reports:
        sums = sums.plus(report)
    assert sums == counts
    return part, counts


def test_an_address_is_no_folder_of_translations(tmp_path):
    (tmp_path / "part").write_text("a\n")
    with pytest.raises(ValueError, match="s3://bucket/out is an address, not a path; write"):
        find_parts(str(tmp_path / "part"), "s3://bucket/out")


@pytest.mark.parametrize("name", ["part", "part.gz"])
def test_every_line_has_its_translation_in_its_place(tmp_path, name, monkeypatch):
    monkeypatch.setattr(parts, "CHUNK", 100)
    draw = random.Random(1)
    lines = ["ab cd ef gh"[: draw.randrange(12)].strip() for _ in range(350)]
    content = "".join(f"{line}\n" for line in lines).encode()
    part, counts = translated(tmp_path, content, name)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(part.output, "rt", encoding="utf-8") as file:
        assert file.read() == "".join(f"{line[::-1]}\n" for line in lines)
    assert (counts.lines, counts.bad) == (350, 0)
    assert counts.tokens == sum(map(len, lines))
    assert counts.truncated == sum(len(line) > 5 for line in lines)
    assert counts.size == part.source.stat().st_size


def test_sentences_of_like_length_are_translated_together(tmp_path):
    sizes = []

    def noting(sentences):
        sizes.append([len(sentence) for sentence in sentences])
        return sentences

    lines = ["a" * (1 + n % 7) for n in range(500)]
    content = "".join(f"{line}\n" for line in lines).encode()
    translated(tmp_path, content, engine=ScriptedEngine(noting, 9))
    flat = [size for batch in sizes for size in batch]
    assert flat == sorted(flat)
    assert max(map(len, sizes)) == parts.PORTION


def test_bad_lines_are_set_aside_with_their_numbers(tmp_path):
    content = b"\xef\xbb\xbfab\n\xff\n\nc\0d\nef\r\n \ngh"
    part, counts = translated(tmp_path, content)
    assert part.output.read_text() == "ba\n\n\n\nfe\n\nhg\n"
    assert part.bad_lines.read_text() == "2\tnot UTF-8 at byte 1\n4\ta NUL character\n"
    assert (counts.lines, counts.bad) == (7, 2)


class Codes(ScriptedEngine):
    """An engine that refuses language codes."""

    def count_tokens(self, texts):
        for sentence in texts:
            if sentence.startswith(">>"):
                raise ValueError(f"there is no language {sentence[:7]}")
        return super().count_tokens(texts)


def test_lines_that_the_tokenizer_refuses_are_set_aside(tmp_path):
    content = b"ab\n>>Anna<< wrote\ncd\n\xff\n>>Otto<< wrote\nef\n"
    part, counts = translated(tmp_path, content, engine=Codes(backwards, 5))
    assert part.output.read_text() == "ba\n\ndc\n\n\nfe\n"
    assert part.bad_lines.read_text().splitlines() == [
        "2\tthere is no language >>Anna<",
        "4\tnot UTF-8 at byte 1",
        "5\tthere is no language >>Otto<",
    ]
    assert (counts.lines, counts.bad) == (6, 3)


def test_the_list_of_bad_lines_goes_with_the_last_of_them(tmp_path):
    part, _ = translated(tmp_path, b"\xff\n")
    assert part.bad_lines.exists()
    translated(tmp_path, b"ab\n")
    assert not part.bad_lines.exists()


def test_an_empty_file_is_no_whole_gzip_file(tmp_path):
    (tmp_path / "part.gz").touch()
    part = Part(tmp_path / "part.gz", tmp_path / "out.gz")
    with pytest.raises(ValueError, match=r"part\.gz is not a complete gzip file.*it is empty"):
        translate_part(ENGINE, part, lambda counts: None)
    assert not part.output.exists()
    with pytest.raises(ValueError, match="it is empty"):
        list(read_lines(part.source))


def test_faults_are_named_up_to_ten():
    files = [Part(Path(f"{number:02}"), Path("out")) for number in range(12)]
    outcomes = Outcomes(files)
    for part in files:
        outcomes.add(part, OSError("no disk"))
    with pytest.raises(
        ValueError, match=r"12 of 12 files were not translated: 00: no disk; .*09: no disk; \.\.\.$"
    ):
        outcomes.sums()


def test_the_bytes_of_a_packed_translation_are_always_the_same(tmp_path):
    first, _ = translated(tmp_path, b"ab\n", "a.gz")
    again, _ = translated(tmp_path, b"ab\n", "b.gz")
    assert first.output.read_bytes() == again.output.read_bytes()


def test_nothing_appears_of_a_part_that_fails(tmp_path):
    def failing(sentences):
        raise ValueError("the model fails")

    with pytest.raises(ValueError, match="the model fails"):
        translated(tmp_path, b"ab\n", engine=ScriptedEngine(failing, 9))
    assert not list((tmp_path / "out").iterdir())


def test_parts_come_in_the_order_of_their_names(tmp_path):
    for name in ("b.gz", "a.gz", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "d.gz").mkdir()
    parts = find_parts(f"{tmp_path}/*.gz", tmp_path / "out")
    assert [part.source.name for part in parts] == ["a.gz", "b.gz"]
    assert [part.output for part in parts] == [tmp_path / "out" / name for name in ("a.gz", "b.gz")]


def test_a_part_is_done_when_its_translation_is_there(tmp_path):
    (tmp_path / "a").touch()
    [part] = find_parts(f"{tmp_path}/a", tmp_path / "out")
    assert not part.is_done
    part.output.parent.mkdir()
    part.output.touch()
    assert part.is_done


def test_parts_of_one_name_are_refused(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").touch()
    with pytest.raises(ValueError, match="have the same name"):
        find_parts(f"{tmp_path}/*/a", tmp_path / "out")


def test_a_corpus_is_not_its_own_translation(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ValueError, match="is the folder of the corpus itself"):
        find_parts(f"{tmp_path}/a", tmp_path)
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "b").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").touch()
    with pytest.raises(ValueError, match="is the folder of the corpus itself"):
        find_parts(f"{tmp_path}/*/*", tmp_path / "out")


def test_devices_are_no_parts(tmp_path):
    with pytest.raises(ValueError, match="is a device or a pipe"):
        find_parts("/dev/zero", tmp_path)


def test_a_job_goes_on_in_its_folder_and_in_no_other(tmp_path):
    out = tmp_path / "out"
    assert held(out, {"model": "1"}) == {"model": "1"}
    (out / "a").touch()
    assert held(out, {"model": "1"}) == {"model": "1"}
    with pytest.raises(ValueError, match="with another model; restore it"):
        held(out, {"model": "2"})
    (tmp_path / LOCK).write_text("another program's")
    with pytest.raises(FileExistsError, match=r"has no translation\.json of an earlier job"):
        held(tmp_path, {})
    assert (tmp_path / LOCK).read_text() == "another program's"
    with pytest.raises(FileExistsError, match="is a file, not a folder"):
        held(out / "a", {})
    for damaged in ("", "[]"):
        (out / JOB).write_text(damaged)
        with pytest.raises(ValueError, match=r"translation\.json is damaged .*another folder"):
            held(out, {"model": "1"})


def held(folder, settings):
    """Lock a folder, and return the settings stored in it."""
    with job_folder(folder, settings):
        return json.loads((folder / JOB).read_text())


def test_settings_by_which_nothing_was_translated_are_replaced(tmp_path):
    held(tmp_path / "out", {"beam_size": 7})
    (tmp_path / "out" / LOCK).touch()  # of a command that was killed
    assert held(tmp_path / "out", {"beam_size": 4}) == {"beam_size": 4}


def test_two_commands_do_not_share_a_folder(tmp_path):
    with (
        job_folder(tmp_path / "out", {"model": "1"}),
        pytest.raises(BlockingIOError, match="another command is translating into"),
    ):
        held(tmp_path / "out", {"model": "1"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == [JOB]


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "a.gz").touch()
    (tmp_path / "b.gz").symlink_to("/nowhere/b.gz")
    with pytest.raises(FileNotFoundError, match=r"b\.gz does not exist, or its link"):
        find_parts(f"{tmp_path}/*.gz", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"is a folder; use a file name pattern"):
        find_parts(str(tmp_path), tmp_path / "out")


@pytest.mark.parametrize("name", ["translation.json", "a.bad.tsv", ".lock"])
def test_the_names_of_a_jobs_own_files_are_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match="has the name of a file that a job writes"):
        find_parts(str(tmp_path / name), tmp_path / "out")
