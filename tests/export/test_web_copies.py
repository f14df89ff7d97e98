"""The words that stay on the page in the browser are those of the programs in Python."""

import json
import random
import shutil
import subprocess

import pytest
from support.kept_words import KEPT, ORDINARY, SENTENCES, WHOLE, copies

from tfformer.export import web_page

PLACEHOLDERS = copies.PLACEHOLDERS[:2]
SCRIPT = """
import {{ filled, keptWords, lacks, marked, masked }} from '{folder}/copies.js';
import {{ halves, stretches }} from '{folder}/sentences.js';
import {{ text }} from 'node:stream/consumers';
const found = JSON.parse(await text(process.stdin)).map(([sentence, translation, ofSentence]) => {{
  const one = marked(sentence, {placeholders});
  const whole = [filled(one, translation), filled(one, translation, ofSentence)];
  const words = [keptWords(sentence), masked(sentence).length - sentence.length];
  const parts = [stretches(sentence, 'en'), halves(sentence)];
  return [...words, one.text, one.hasText, lacks(one, translation), ...whole, ...parts];
}});
process.stdout.write(JSON.stringify(found));
"""


def page(rows: list[tuple[str, str, str]]) -> list[list]:
    """What the page's program makes of sentences and their translations."""
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed")
    folder = web_page.SOURCES / "src"
    script = SCRIPT.format(folder=folder, placeholders=json.dumps(PLACEHOLDERS))
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(
        command, input=json.dumps(rows), capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def python(sentence: str, translation: str, of_sentence: str) -> list:
    """The same of the programs in Python, but for the division into sentences."""
    keeper = copies.Keeper(placeholders=PLACEHOLDERS)
    one = keeper.marked(sentence)
    words = [word[0] for word in one.words]
    whole = [one.filled(translation), one.filled(translation, of_sentence)]
    difference = len(keeper.masked(sentence)) - len(sentence)
    return [words, difference, one.text, one.has_text, one.lacks(translation), *whole]


def made_up(dice: random.Random) -> tuple[str, str, str]:
    """A sentence with words that stay, and two translations by a model that knows no better."""
    words = [
        *dice.sample(KEPT, dice.randrange(6)),
        *dice.choices(("the", "dog", "1,000", "ß"), k=4),
    ]
    dice.shuffle(words)
    ends = ("", ".", " …", "!")
    translations = []
    for _ in range(2):
        some = [
            *dice.sample(words, dice.randrange(len(words))),
            *dice.choices(["⟦1⟧", "⟦2⟧", "⟦3⟧", "1.000"], k=3),
        ]
        translations.append(
            "".join(word + dice.choice((" ", " ", "")) for word in some) + dice.choice(ends)
        )
    return " ".join(words) + dice.choice(ends), translations[0], translations[1]


@pytest.mark.slow
def test_the_page_keeps_words_as_python_does():
    dice = random.Random(3)
    rows = [(sentence, sentence.upper(), "x") for sentence in SENTENCES]
    rows += [made_up(dice) for _ in range(300)]
    for row, found in zip(rows, page(rows), strict=True):
        assert found[:7] == python(*row), row


def test_the_page_keeps_each_word_as_a_whole():
    rows = [(f"The dog is {word} tired.", [word]) for word in WHOLE]
    rows += ORDINARY
    found = page([(sentence, "", "") for sentence, _ in rows])
    assert [one[0] for one in found] == [kept for _, kept in rows]


def test_the_page_ends_a_sentence_with_its_line_and_keeps_what_cannot_be_seen():
    ends = "\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    edges = "\xa0\xad\u200b\u200e\u202e\u2060\u2066\ufeff"
    texts = [f"The old dog{end}- He is here{end}{end}" for end in ends]
    texts += [f"{edge}The old dog{edge}\n{edge}- He is here{edge}" for edge in edges]
    texts += ["The old dog" + " " * 200_000 + "\nHe is here"]
    for text, found in zip(texts, page([(text, "", "") for text in texts]), strict=True):
        assert "".join(one["text"] for one in found[7]) == text
        sentences = [one["text"] for one in found[7] if one["isSentence"]]
        assert sentences[0] == "The old dog"
        assert sentences[1].endswith("He is here")


def test_the_page_divides_no_word_that_stays():
    """The segmenter ends a sentence behind any question mark; long ones are cut at colons."""
    address = "https://a.de/x?b=1:2,3"
    text = f"See {address} today.\t{{a.b? C}} is not. {address}\n- {{a.B}} sleeps."
    (found,) = page([(text, "", "")])
    sentences = [one["text"] for one in found[7] if one["isSentence"]]
    assert sentences[0] == f"See {address} today."
    assert sentences[-1] == "{a.B} sleeps."
    assert "".join(one["text"] for one in found[7]) == text
    for sentence in (f"one {address} two", f"猫は{address}"):
        (found,) = page([(sentence, "", "")])
        assert any(address in half for half in found[8])
        assert all(found[8])
