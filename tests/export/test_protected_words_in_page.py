"""The page in the browser protects the same words as the server."""

import json
import random
import shutil
import subprocess

import pytest
from protected_words_pattern import javascript
from support.nightly import sampled

from tfformer.export.web import SOURCES
from tfformer.text.protected_words import RULES, protected_words

PLACEHOLDERS = ["⟦1⟧", "⟦2⟧"]
EXAMPLES = [example for rule in RULES for example in rule.examples]
ORDINARY = [text for rule in RULES for text in rule.not_in]
SCRIPT = """
import {{ filled, marked, masked, protectedWords }} from '{folder}/copies.js';
import {{ halves, stretches }} from '{folder}/sentences.js';
import {{ text }} from 'node:stream/consumers';
const found = JSON.parse(await text(process.stdin)).map(([sentence, translation, ofSentence]) => {{
  const one = marked(sentence, {placeholders});
  const parts = [stretches(sentence, 'en'), halves(sentence)];
  const text = filled(one, translation, ofSentence);
  return [protectedWords(sentence), masked(sentence).length, one.text, text, ...parts];
}});
process.stdout.write(JSON.stringify(found));
"""


def page(rows: list[tuple[str, ...]]) -> list[list]:
    """Return the output of the page's program for sentences and their translations.

    A row contains a sentence, its translation with placeholders, and optionally the translation
    without them.
    """
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed")
    folder = SOURCES / "src"
    script = SCRIPT.format(folder=folder, placeholders=json.dumps(PLACEHOLDERS))
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(
        command, input=json.dumps(rows), capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_pages_pattern_is_written_from_the_servers():
    """If this fails, write src/protected_words.js with scripts/protected_words_pattern.py."""
    written = (SOURCES / "src" / "protected_words.js").read_text(encoding="utf-8")
    assert json.dumps(javascript(protected_words().pattern)) in written


def made_up(dice: random.Random) -> str:
    """Join protected and ordinary words, with or without spaces between them."""
    words = [
        *dice.sample(EXAMPLES, 6),
        *dice.choices(("the", "dog", "1,000", "ß", "犬", "5 km"), k=6),
    ]
    dice.shuffle(words)
    return "".join(word + dice.choice(("", " ", " ", " ", ".", ", ", "-")) for word in words)


@pytest.mark.parametrize("count", sampled([300, 2_000], by_day=[300]))
def test_the_page_finds_the_words_that_the_server_finds(count):
    dice = random.Random(3)
    texts = [f"The dog is {word} tired, {word}." for word in EXAMPLES]
    texts += [*ORDINARY, *(made_up(dice) for _ in range(count))]
    for text, answer in zip(texts, page([(text, "") for text in texts]), strict=True):
        assert answer[0] == protected_words().findall(text), text
        assert answer[1] == len(text.encode("utf-16-le")) // 2  # of JavaScript's units


def test_each_word_comes_back_once_however_the_model_treats_it():
    rows = []
    for word in EXAMPLES:
        source = f"The dog is {word} tired."
        rows += [(source, answer) for answer in ("Der Hund.", "Der ⟦1⟧ Hund.", "⟦2⟧ Hund ⟦1⟧ ⟦1⟧!")]
        rows.append((source, "Der Hund.", f"Der {word} Hund."))
    for (source, *answers), result in zip(rows, page(rows), strict=True):
        [word] = protected_words().findall(source)
        assert result[2] == source.replace(word, "⟦2⟧" if word == "⟦1⟧" else "⟦1⟧"), source
        assert result[3].count(word) == 1, (source, answers, result[3])
        assert "Hund" in result[3]
        assert "⟦" not in result[3].replace(word, "")


def test_numbers_dates_and_prices_are_the_models():
    rows = [
        ("It costs $2.50 or 50 % of 5 km/h.", "Es kostet 2,50 $ oder 50 % von 5 km/h."),
        ("He arrives at 5:30 pm on 3/14.", "Er kommt um 17:30 Uhr am 14.3. an."),
    ]
    assert [answer[3] for answer in page(rows)] == [translation for _, translation in rows]


def test_the_page_ends_a_sentence_with_its_line_and_keeps_what_cannot_be_seen():
    ends = "\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    edges = "\xa0\xad\u200b\u200e\u202e\u2060\u2066\ufeff"
    texts = [f"The old dog{end}- He is here{end}{end}" for end in ends]
    texts += [f"{edge}The old dog{edge}\n{edge}- He is here{edge}" for edge in edges]
    texts += ["The old dog" + " " * 200_000 + "\nHe is here"]
    for text, answer in zip(texts, page([(text, "") for text in texts]), strict=True):
        assert "".join(segment["text"] for segment in answer[4]) == text
        sentences = [segment["text"] for segment in answer[4] if segment["isSentence"]]
        assert sentences[0] == "The old dog"
        assert sentences[1].endswith("He is here")


def test_the_page_divides_no_word_that_stays():
    """The segmenter ends a sentence after any question mark.

    Long sentences are divided at colons.
    """
    address = "https://a.de/x?b=1:2,3"
    text = f"See {address} today.\t{{a.b? C}} is not. {address}\n- {{a.B}} sleeps."
    (answer,) = page([(text, "")])
    sentences = [segment["text"] for segment in answer[4] if segment["isSentence"]]
    assert sentences[0] == f"See {address} today."
    assert sentences[-1] == "{a.B} sleeps."
    assert "".join(segment["text"] for segment in answer[4]) == text
    for sentence in (f"one {address} two", f"猫は{address}"):
        (answer,) = page([(sentence, "")])
        assert any(address in clause for clause in answer[5])
        assert all(answer[5])
