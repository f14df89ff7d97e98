"""Sentences and kept words as the programs of export/ have them, with Python alone."""

import io
import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ON_DEVICE = Path(__file__).parents[2] / "export" / "on_device"


def program(name: str) -> ModuleType:
    spec = spec_from_file_location(f"on_device_{name}", ON_DEVICE / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sentences, copies = program("sentences"), program("copies")


def of_20_words(sentence: str) -> bool:
    return len(sentence.split()) <= 20


class Reader(io.RawIOBase):
    """A file that counts the bytes that were read of it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.done = 0

    def read(self, size: int = -1) -> bytes:
        part = self.content[self.done : self.done + size]
        self.done += len(part)
        return part


@pytest.mark.parametrize("space", [" ", "\n", "\r\n\r\n\t", " \n \n"])
def test_a_long_text_comes_back_while_little_of_it_is_held(space):
    draw = random.Random(1)
    words = ("The dog sleeps.", "Ärger, é und ß!", "Mr. A. goes", "12.5", "--", "犬です。")
    text = "".join(draw.choice(words) + space for _ in range(60_000))
    reader, result, most_held = Reader(text.encode()), [], 0
    returned = 0
    for piece in sentences.translated(sentences.blocks(reader), list, of_20_words):
        result.append(piece)
        returned += len(piece.encode())
        most_held = max(most_held, reader.done - returned)
    assert "".join(result) == text
    assert most_held < 3 * sentences.BLOCK < len(text) / 2


@pytest.mark.parametrize("word", ["word ", "word, ", "w"])
def test_a_megabyte_without_a_stop_is_divided(word):
    heard = []
    text = word * (1_000_000 // len(word))

    def fits(sentence: str) -> bool:
        return len(sentence) <= 100

    blocks = sentences.blocks(io.BytesIO(text.encode()))
    found = "".join(sentences.translated(blocks, lambda one: heard.extend(one) or one, fits))
    assert found == text
    assert all(map(fits, heard))
    assert len(heard) < 3 * len(text) / 100


def test_a_byte_that_is_no_utf_8_is_named_by_its_place():
    for before in (0, 1, sentences.BLOCK - 1, sentences.BLOCK, 200_000):
        content = io.BytesIO(b"a" * before + b"\xc3" + b"a")
        with pytest.raises(ValueError, match=f"is not UTF-8 at byte {before + 1}; convert"):
            list(sentences.blocks(content))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- One.\n  * Two? Three!", ["One.", "Two?", "Three!"]),
        ("> # Head\n(a) first\n12) twelfth\n1. number", ["Head", "first", "twelfth", "number"]),
        ("\t- a-b - c.\tNext", ["a-b - c.", "Next"]),
        ("a) - b", ["b"]),
        ("- [ ] Do it.\n* [x] Done.", ["Do it.", "Done."]),
        ("-5 is cold. - so", ["-5 is cold.", "- so"]),
    ],
)
def test_the_marker_of_a_line_is_no_part_of_its_sentence(text, found):
    stretches = list(sentences.split(text))
    assert [stretch for stretch, is_sentence in stretches if is_sentence] == found
    assert "".join(stretch for stretch, _ in stretches) == text


# Words that stay


def shouting(sentence: str) -> str:
    """A model that knows placeholders: they have no small letters."""
    return sentence.upper()


def deaf(sentence: str) -> str:
    return "Bla bla bla bla."


def without_placeholders(sentence: str) -> str:
    """A model that copies words, but has no placeholder in its vocabulary."""
    return sentence.replace("⟦", "").replace("⟧", "")


@pytest.mark.parametrize(
    ("model", "sentence", "translation"),
    [
        (shouting, "Foo Inc and Bar see Foo Inc.", "Foo Inc AND Bar SEE Foo Inc."),
        (shouting, "Foobar, Barter.", "FOOBAR, BARTER."),
        (shouting, "Nothing here.", "NOTHING HERE."),
        (shouting, "Foo Incx", "Foo INCX"),
        (without_placeholders, "See Bar and Foo.", "See Bar and Foo."),
        (deaf, "Here is one Bar there.", "Bla bla Bar bla bla."),
        (deaf, "Bar Bar", "Bar Bla bla Bar bla bla."),
    ],
)
def test_words_stay_as_they_are(model, sentence, translation):
    keep = copies.keeping(["Foo", "Foo Inc", "Bar"], lambda batch: list(map(model, batch)))
    assert keep([sentence]) == [translation]
    assert keep(["A.", sentence, "B."])[1] == translation
    assert keep([]) == []


def test_a_file_of_words_is_read_or_refused(tmp_path):
    (tmp_path / "keep").write_text("  Foo Inc \n\n\tBär\n", encoding="utf-8")
    assert copies.read_phrases(tmp_path / "keep") == ["Foo Inc", "Bär"]
    (tmp_path / "other").write_bytes(b"a\xff")
    with pytest.raises(ValueError, match="other is not UTF-8; convert it first"):
        copies.read_phrases(tmp_path / "other")
    with pytest.raises(ValueError, match=r"none cannot be read .*No such file or directory"):
        copies.read_phrases(tmp_path / "none")
