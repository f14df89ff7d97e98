"""A document is preserved if each translation is its sentence, or its sentence in capitals."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st
from support.whole_texts import translate_text

from tfformer.text import TextTranslator

KINDS = (
    "dog Dog n = 1 , . ( ) - * ' “ ” x.org/a a@b.org {x} %s {} $x a.txt 5:30 😀 北京 我在 東京 ด้วย "
    "Straße won't it? No."
)
WORDS = st.sampled_from([*KINDS.split(" "), " ", " "])
NAMES = st.sampled_from(["b", "i", "a", "span", "sup", "code", "p", "li", "ruby", "rt", "x"])
POINTS = st.sampled_from(["<img>", "<wbr>", "<!-- c -->", "<br>", "<svg><g/></svg>"])
HTML_TEXT = st.lists(WORDS, min_size=1, max_size=4).map("".join)
HTML = st.recursive(
    HTML_TEXT | POINTS,
    lambda inside: st.lists(
        st.tuples(NAMES, inside).map(lambda one: f"<{one[0]}>{one[1]}</{one[0]}>") | inside,
        max_size=4,
    ).map("".join),
    max_leaves=12,
)
SPAN = st.tuples(st.sampled_from(["**{}**", "*{}*", "`{}`", "[{}](u)", "{}"]), WORDS).map(
    lambda one: one[0].format(one[1].strip() or "w")
)
MARKDOWN = st.lists(SPAN, min_size=1, max_size=8).map(lambda spans: "A " + " ".join(spans) + " z\n")
CUE = st.lists(st.sampled_from(["<i>a b</i>", "c d.", "{\\an8}e", "- f", "[g h]", "♪ i ♪", "j, k"]),
               min_size=1, max_size=3).map("\n".join)  # fmt: skip
SUBTITLES = st.lists(CUE, min_size=1, max_size=4).map(
    lambda cues: "".join(
        f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{cue}\n\n" for n, cue in enumerate(cues, 1)
    )
)


def as_xml(text: str) -> str:
    return re.sub(r"<(img|wbr|br)>", r"<\1/>", f"<doc>{text}</doc>")


def in_capitals(sentences: list[str]) -> list[str]:
    return [sentence.upper() for sentence in sentences]


def without_spaces(text: str) -> str:
    return re.sub(r"\s+", "", text)


def without_tags(text: str) -> str:
    return re.sub(r"<svg>.*?</svg>|<!--.*?-->|<[^<>]*>", "", text)


@given(
    st.one_of(
        st.tuples(st.just("html"), HTML),
        st.tuples(st.just("xml"), HTML.map(as_xml)),
        st.tuples(st.just("markdown"), MARKDOWN),
        st.tuples(st.just("srt"), SUBTITLES),
        st.tuples(st.just("text"), HTML_TEXT),
    )
)
@example(("html", "dog<b><img><b>it?Dog</b></b>"))  # the tags end in another sentence
@example(("html", "<b>it?Dog</b><b><img></b>"))
@example(("text", "a@b.orga@b.orga@b.orga@b.org"))  # addresses without a space between them
def test_a_document_comes_back(document):
    format, text = document
    assert translate_text(text, list, format) == text
    found = translate_text(text, in_capitals, format)
    assert without_spaces(found).casefold() == without_spaces(text).casefold()


@given(st.tuples(st.sampled_from(["html", "xml"]), HTML), st.permutations(range(6)))
def test_with_any_translation_no_letter_is_lost_and_no_tag(document, order):
    """The translation shares no words with the sentence."""
    format, text = document
    text = as_xml(text) if format == "xml" else text
    said: list[str] = []

    def translate(sentences: list[str]) -> list[str]:
        for sentence in sentences:
            words = [f"wörd{number}" for number in order[: 1 + len(sentence) % 6]]
            said.append(" ".join(words))
        return said[-len(sentences) :]

    found = translate_text(text, translate, format)
    tags = r"</?[a-z]+/?>|<!--.*?-->"
    assert Counter(re.findall(tags, found)) == Counter(re.findall(tags, text))
    assert re.findall(r"wörd\d", found) == re.findall(r"wörd\d", " ".join(said))


TOKENS = "dog n don't = , ( ) ' → &lt; &gt; %s {x} a.txt 5:30 北京 我在 ด้วย"
SENTENCE = st.sampled_from([*TOKENS.split(), *[" "] * 9])
TREES = st.recursive(SENTENCE, lambda inside: st.lists(inside, min_size=1, max_size=5))


def as_elements(tree: str | list, names: Iterator[str]) -> str:
    if isinstance(tree, str):
        return tree
    name = next(names)
    return f"<{name}>{''.join(as_elements(one, names) for one in tree)}</{name}>"


def with_words(element: ElementTree.Element) -> set[str]:
    """Return the names of the elements in which a reader sees a letter or a digit."""
    return {one.tag for one in element.iter() if re.search(r"[^\W_]", "".join(one.itertext()))}


@given(st.lists(TREES, max_size=6), st.integers(0, 2**32), st.booleans())
@example(["dog", ["dog", ["dog", " ", "=", " "]], ["dog"]], 1, True)
def test_no_element_that_had_words_is_empty_while_there_are_words(tree, seed, is_linked):
    draw = random.Random(seed)
    text = as_elements(tree, (f"e{number}" for number in itertools.count()))
    source = ElementTree.fromstring(text)
    said: list[str] = []

    def translate(sentences: list[str]) -> list[str]:
        """Shuffle the words, of which many are new."""
        for sentence in sentences:
            words = sentence.split() + ["wörd"] * len(with_words(source))
            words = [draw.choice([one, "wörd"]) if one.isalpha() else one for one in words]
            said.append(" ".join(draw.sample(words, len(words))))
        return said[-len(sentences) :]

    def align(sources: list[str], targets: list[str]) -> list[list[tuple[int, int]]]:
        pairs = zip(sources, targets, strict=True)
        sizes = [(len(source.split()), len(target.split())) for source, target in pairs]
        return [[(n, draw.randrange(size)) for n in range(words)] for words, size in sizes]

    found = TextTranslator(translate, align if is_linked else None).translate(text, "xml")
    result = ElementTree.fromstring(found)
    text = "".join(result.itertext())
    assert text.count("wörd") == "".join(said).count("wörd")
    letters = iter(text)
    assert all(letter in letters for letter in without_spaces("".join(said)))  # in order
    assert with_words(result) >= with_words(source)
