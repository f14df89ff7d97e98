"""Pictures of attention, and the command that draws them."""

import re
import sys
import xml.etree.ElementTree

import matplotlib.image
import pytest
from support.made_up_attention import EXAMPLE, made_up

from tfformer.cli.main import main
from tfformer.explain.attention_maps import WORD_START, Attention, AttentionMaps
from tfformer.explain.pictures import draw_attention as draw

PNG_SIGNATURE, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"


def svg_texts(path) -> list[str]:
    """Return the texts in an SVG. Matplotlib writes each as a comment beside its outlines."""
    xml.etree.ElementTree.parse(path)
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))


def of_words(maps: AttentionMaps) -> Attention:
    """Return an attention in which each kind has these maps, between words of one piece."""
    rows, columns = ([WORD_START + word for word in words] for words in (maps.rows, maps.columns))
    return Attention(*[maps._replace(rows=tuple(rows), columns=tuple(columns))] * 3)


@pytest.mark.parametrize("word", [None, "it"])
def test_a_png_is_whole_and_alone(tmp_path, word):
    path = tmp_path / "picture.png"
    draw(EXAMPLE, path, word=word)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes().startswith(PNG_SIGNATURE)
    assert path.read_bytes().endswith(PNG_END)
    pixels = matplotlib.image.imread(path)
    assert min(pixels.shape[:2]) > 200
    assert pixels.min() < 0.2 < 1.0 == pixels.max()


@pytest.mark.parametrize("word", [None, "it"])
def test_an_svg_is_whole_and_alone(tmp_path, word):
    draw(EXAMPLE, tmp_path / "picture.svg", word=word)
    assert [file.name for file in tmp_path.iterdir()] == ["picture.svg"]
    assert {"The", "animal", "it", "was."} <= set(svg_texts(tmp_path / "picture.svg"))


def test_heat_maps_name_every_head_and_word(tmp_path):
    draw(EXAMPLE, tmp_path / "heads.svg", "cross")
    texts = svg_texts(tmp_path / "heads.svg")
    assert {f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2)} < set(texts)
    assert texts.count("animal") == 2
    assert texts.count("Tier") == 2
    assert "Cross-attention" in texts


def test_the_heat_maps_of_a_word_have_its_row_alone(tmp_path):
    draw(EXAMPLE, tmp_path / "word.svg", "cross", word="es")
    texts = svg_texts(tmp_path / "word.svg")
    assert texts.count("es.") == 2  # once per layer
    assert "Tier" not in texts
    assert texts.count("animal") == 2


def test_words_are_found_with_or_without_punctuation_and_capitals(tmp_path):
    maps = made_up("The cat, it was. It", "u v")
    for word, expected in {
        "it": "it",
        "It": "It",
        "cat": "cat",
        "cat,": "cat",
        "WAS": "was",
    }.items():
        draw(of_words(maps), tmp_path / "word.svg", word=word)
        rows = [text for text in svg_texts(tmp_path / "word.svg") if text in maps.rows]
        assert [row.strip(",.") for row in rows] == [expected]


def test_dollar_signs_are_text_and_not_mathematics(tmp_path):
    maps = made_up(r"$5 $\alpha", r"$5 $\alpha")
    for word in (None, "$5"):
        draw(of_words(maps), tmp_path / f"{word}.svg", word=word)
        assert "$5" in svg_texts(tmp_path / f"{word}.svg")


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_a_word_that_does_not_occur_is_refused_with_those_that_do(tmp_path, suffix):
    message = "word='street' is not in the sentence; choose one of Das Tier es. </s>"
    with pytest.raises(ValueError, match=re.escape(message)):
        draw(EXAMPLE, tmp_path / f"picture{suffix}", kind="cross", word="street")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pictures need matplotlib; pip install -e '\.\[plot\]'"):
        draw(EXAMPLE, tmp_path / "picture.png")
    draw(EXAMPLE, tmp_path / "page.html")


@pytest.mark.usefixtures("verbs_share_models")
def test_the_verb_draws(tiny_run, tmp_path, capsys):
    output = tmp_path / "it.svg"
    sentence = "The cat saw the dog because it was big."
    words = ["attention", str(tiny_run), sentence, "--word", "it", "--output", str(output)]
    assert main(words) == 0
    drawn_words = svg_texts(output)
    assert drawn_words.count("it") > drawn_words.count("saw")  # all have a column, "it" also a row
    assert capsys.readouterr().out == f"{output}\n"
