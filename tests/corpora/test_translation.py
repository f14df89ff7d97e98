"""Translate a part of a corpus with a scripted engine: order, blank and bad lines, whole files."""

import gzip
import random
from pathlib import Path

import pytest
from support.scripted_engine import ScriptedEngine

from tfformer.corpora import parts
from tfformer.corpora.parts import Counts, Part, summed, translate_part
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
    outcomes = {Path(f"{number:02}"): "no disk" for number in range(12)}
    with pytest.raises(
        ValueError, match=r"12 of 12 files were not translated: 00: no disk; .*09: no disk; \.\.\.$"
    ):
        summed(outcomes)


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
