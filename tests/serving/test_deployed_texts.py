"""Sentences and kept words as the programs of export/ have them, with Python alone."""

import io
import random
import time
from collections.abc import Callable, Sequence

import pytest
from support.kept_words import KEPT, ORDINARY, WHOLE, copies, sentences

Model = Callable[[str], str]


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


@pytest.mark.parametrize("end", "\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
def test_a_sentence_ends_with_its_line(end):
    """The line may have no stop, be the speech before a small letter, or a list's."""
    text = f'The old dog{end}- He said "Go!"{end}then left.{end}{end}'
    stretches = list(sentences.split(text))
    assert "".join(stretch for stretch, _ in stretches) == text
    assert [stretch for stretch, is_sentence in stretches if is_sentence] == (
        ["The old dog", 'He said "Go!"', "then left."]
    )


@pytest.mark.parametrize("edge", "\xa0\xad\u200b\u200e\u202e\u2060\u2066\ufeff")
def test_what_cannot_be_seen_around_a_sentence_stays(edge):
    text = f"{edge}The dog.{edge} {edge}\n{edge}"
    stretches = list(sentences.split(text))
    assert "".join(stretch for stretch, _ in stretches) == text
    assert [stretch for stretch, is_sentence in stretches if is_sentence] == ["The dog."]


# Words that stay


def shouting(sentence: str) -> str:
    """A model that knows placeholders: they have no small letters."""
    return sentence.upper()


def deaf(sentence: str) -> str:
    return "Bla bla bla bla."


def without_placeholders(sentence: str) -> str:
    """A model that copies words, but has no placeholder in its vocabulary."""
    return sentence.replace("⟦", "").replace("⟧", "")


def keep(model: Model, *phrases: str) -> Callable[[list[str]], list[str]]:
    return copies.Keeper(phrases).keeping(lambda batch: list(map(model, batch)))


@pytest.mark.parametrize(
    ("model", "sentence", "translation"),
    [
        (shouting, "Foo Inc and Bar see Foo Inc.", "Foo Inc AND Bar SEE Foo Inc."),
        (shouting, "Foobar, Barter.", "FOOBAR, BARTER."),
        (shouting, "Nothing here.", "NOTHING HERE."),
        (shouting, "Foo Incx", "Foo INCX"),
        (shouting, "See https://a.de/x?b=1 today.", "SEE https://a.de/x?b=1 TODAY."),
        (shouting, "It costs 3.50 € {name} 😀.", "IT COSTS 3.50 € {name} 😀."),
        (shouting, "of ⟦1⟧ and foo.txt", "OF ⟦1⟧ AND foo.txt"),
        (without_placeholders, "See Bar and Foo.", "See Bar and Foo."),
        (without_placeholders, "See a@b.de, 5 kg.", "See a@b.de, 5 kg."),
        (deaf, "Here is one Bar there.", "Bla bla Bar bla bla."),
        (deaf, "Bar said Bar", "Bar Bla bla bla Bar bla."),
        (deaf, "Write to a@b.de.", "Bla bla a@b.de bla bla."),
        (deaf, "It is at https://x.org/a.", "Bla https://x.org/a bla bla bla."),
        (deaf, "Bar.", "Bar."),
        (deaf, "12:30 – 5 kg, {x}!", "12:30 – 5 kg, {x}!"),
    ],
)
def test_words_stay_as_they_are(model, sentence, translation):
    kept = keep(model, "Foo", "Foo Inc", "Bar")
    assert kept([sentence]) == [translation]
    assert kept(["A.", sentence, "B."])[1] == translation
    assert kept([]) == []


def heard_by(sentence: str, placeholders: Sequence[str]) -> list[str]:
    heard = []
    keeper = copies.Keeper(placeholders=placeholders)
    keeper.keeping(lambda batch: heard.extend(batch) or batch)([sentence])
    return heard


def test_the_model_gets_as_many_placeholders_as_it_has():
    sentence = "See {a}, {b}, {c}, {d} and {e}."
    assert heard_by(sentence, copies.PLACEHOLDERS) == ["See ⟦1⟧, ⟦2⟧, ⟦3⟧, ⟦4⟧ and {e}."]
    assert heard_by(sentence, ["⟦1⟧"]) == ["See ⟦1⟧, {b}, {c}, {d} and {e}."]
    assert heard_by(sentence, []) == [sentence]
    assert heard_by("See ⟦1⟧ and {a}.", copies.PLACEHOLDERS) == ["See ⟦2⟧ and ⟦3⟧."]
    assert heard_by("https://a.de, {a}", copies.PLACEHOLDERS) == []


@pytest.mark.parametrize(
    ("sentence", "by_model", "translation"),
    [
        ("Hello {a} {b}.", "Hallo⟦2⟧⟦1⟧.", "Hallo {b} {a}."),
        ("{a}, please", "⟦1⟧bitte", "{a} bitte"),
        ("See {a}{b} now", "Jetzt ⟦1⟧⟦2⟧", "Jetzt {a}{b}"),
        ("See v2{x}s.", "Siehe v2⟦1⟧s.", "Siehe v2{x}s."),
        ("See ({a}), {b}", "(⟦1⟧)-⟦2⟧", "({a})-{b}"),
        ("See {a} here", "⟦1⟧を見る", "{a}を見る"),
        ("See {a} here", "⟦1⟧ ⟦1⟧ ⟦3⟧ hier ⟦2⟧.", "{a} hier."),
        ("the {a} is", "das ⟦7⟧ist ⟦1⟧", "das ist {a}"),
        ("x", "⟦2⟧", "x"),
        ("x.", "⟦2⟧ ⟦1⟧.", "x."),
        ("of 1,000 and 5.", "von 1.000 und 5.", "von 1,000 und 5."),
        ("of 10 dogs", "von 10.000 Hunden", "von 10 10.000 Hunden"),
    ],
)
def test_words_stand_apart_and_no_placeholder_is_left(sentence, by_model, translation):
    placeholders = copies.PLACEHOLDERS if "{" in sentence else []
    kept = copies.Keeper(placeholders=placeholders).keeping(lambda batch: [by_model] * len(batch))
    assert kept([sentence]) == [translation]


def test_a_line_has_no_placeholder_that_its_source_has_not():
    assert copies.without_strays("Der ⟦1⟧ ⟦2⟧.", "The ⟦2⟧.") == "Der ⟦2⟧."
    assert copies.without_strays("⟦2⟧", "x") == "x"
    assert copies.without_strays(" a  b ", "x") == " a  b "


@pytest.mark.parametrize("seed", range(3))
def test_made_up_words_survive_any_model(seed):
    """It changes the order, loses, doubles and makes up placeholders, and glues what it likes."""
    dice = random.Random(seed)

    def unreliable(sentence: str) -> str:
        words = [one for one in sentence.split(" ") if dice.random() < 0.8]
        words += [f"⟦{dice.randrange(9)}⟧" for _ in range(dice.randrange(3))]
        dice.shuffle(words)
        return "".join(word + dice.choice((" ", " ", "")) for word in words)

    for _ in range(300):
        kept = dice.sample(KEPT, dice.randrange(1, 8))
        words = [*kept, *dice.choices(("the", "dog", "sees", "one"), k=dice.randrange(1, 8))]
        dice.shuffle(words)
        (translation,) = keep(unreliable)([" ".join(words)])
        assert all(word in translation for word in kept), (words, translation)
        assert "⟦" not in translation


@pytest.mark.parametrize("word", WHOLE)
def test_a_word_is_whole_to_the_model_and_behind_it(word):
    sentence = f"The dog is {word} tired."
    assert heard_by(sentence, copies.PLACEHOLDERS) == ["The dog is ⟦1⟧ tired."]
    assert keep(deaf)([sentence])[0].count(word) == 1
    assert list(sentences.stretches(sentence, of_20_words, copies.Keeper().masked)) == (
        [(sentence, True)]
    )


@pytest.mark.parametrize(("sentence", "kept"), ORDINARY)
def test_of_ordinary_sentences_the_model_gets_the_words(sentence, kept):
    assert copies.Keeper().pattern.findall(sentence) == kept


@pytest.mark.parametrize(
    "text",
    ["1." * 60_000, "a." * 60_000, "/a" * 60_000, "a@" * 60_000, "{" * 99_000, "http://" * 15_000,
     "😀" * 60_000, "1,000 " * 20_000, "www." * 30_000, "-" * 99_000, "⟦1⟧ " * 30_000,
     "https://" + "()[]" * 20_000 + "!", "www.a.b/" + "[(" * 40_000, "aa/" * 40_000,
     "C:\\a" * 30_000, "%1" * 60_000, "1x" * 60_000, "a." * 60_000 + "!",
     "v1.1" * 30_000, "{{a " * 30_000, "{a, " * 30_000, "o'" * 60_000, "a@b.c:" * 20_000,
     "1'000" * 20_000, ".ab" * 40_000, "a.bc/" * 20_000, "a+b:" * 30_000, "1\ufe0f" * 60_000],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_no_text_takes_long_to_search(text):
    start = time.process_time()
    assert len(copies.Keeper(["a b"]).masked(text)) == len(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("space", [" ", ""])
def test_a_word_that_stays_is_never_divided(space):
    """Neither by a stop within it nor because the sentence or the word itself is long."""
    keeper = copies.Keeper(["Yahoo! Inc"])
    address = "https://a.de/" + "a,b;c:d." * 50 + "x"
    text = "".join(f"one, two {address}{space}, Yahoo! Inc 猫 {{a.b}}. Go! " for _ in range(9))

    def fits(sentence: str) -> bool:
        return len(keeper.marked(sentence).text) < 60

    shout = keeper.keeping(lambda batch: [one.upper() for one in batch])
    found = "".join(sentences.translated([text], shout, fits, mask=keeper.masked))
    assert found.count(address) == found.count("Yahoo! Inc") == found.count("{a.b}") == 9
    assert found.replace(address, "").count("GO!") == 9


def test_a_file_of_words_is_read_or_refused(tmp_path):
    (tmp_path / "keep").write_text("  Foo Inc \n\n\tBär\n", encoding="utf-8")
    assert copies.read_phrases(tmp_path / "keep") == ["Foo Inc", "Bär"]
    (tmp_path / "other").write_bytes(b"a\xff")
    with pytest.raises(ValueError, match="other is not UTF-8; convert it first"):
        copies.read_phrases(tmp_path / "other")
    with pytest.raises(ValueError, match=r"none cannot be read .*No such file or directory"):
        copies.read_phrases(tmp_path / "none")
