"""Attention maps against NumPy and hand-made examples; pictures and page against what a reader needs of them."""

import base64
import json
import re
import sys
import xml.etree.ElementTree
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf

import tfformer
from tfformer import attention_maps, attention_pictures, tokenizers
from tfformer.attention_maps import (
    Attention,
    AttentionMaps,
    attention,
    attentions,
    decoder_weights,
    encoder_weights,
    find_coreference_head,
    head_scores,
    print_head_scores,
)
from tfformer.attention_pictures import draw, draw_heads, draw_page, draw_word
from tfformer.checkpoints import RunDirectory, Tokenizers, new_model
from tfformer.cli import main
from tfformer.config import Config, DecodingConfig
from tfformer.masks import padding_mask
from tfformer.phrasebook import Pair
from tfformer.tokenizers import Tokenizer
from tfformer.transformer import Transformer
from tfformer.translator import Translator

SENTENCES = [
    "The cat saw the dog because it was big.",
    "The dog saw the cat.",
    "Der Hund sah die Katze, weil sie alt war.",
]
SOURCE = np.array([[5, 9, 4, 7, 3], [8, 3, 0, 0, 0]], np.int32)
TARGET = np.array([[2, 7, 12, 5, 5, 9], [2, 4, 0, 0, 0, 0]], np.int32)
SIZES = {"num_layers": 2, "num_decoder_layers": 3, "d_model": 16, "num_heads": 2, "d_ff": 24}
PNG_SIGNATURE, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"


def small_model(vocab_size=13, **changes) -> Transformer:
    """Every weight random, so that no bias is zero and no scale is one."""
    model = Transformer(vocab_size, vocab_size, **(SIZES | changes))
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.4, size=w.shape) + (w.ndim == 1) for w in model.get_weights()])
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(tokenizers.train(SENTENCES, 60, "bpe"))


@pytest.fixture(scope="module")
def translator(tokenizer) -> Translator:
    model = small_model(tokenizer.vocab_size, tie_embeddings="all")
    return Translator(model, Tokenizers(tokenizer, tokenizer), DecodingConfig(beam_size=2), max_length=40)


def made_up(rows: str, columns: str, layers=1, heads=2, kind="encoder") -> AttentionMaps:
    """Random maps between words: each row sums to 1."""
    rows, columns = tuple(rows.split(" ")), tuple(columns.split(" "))
    rng = np.random.default_rng(7)
    return AttentionMaps(kind, rows, columns, rng.dirichlet(np.ones(len(columns)), (layers, heads, len(rows))))


def made_up_attention(source: str, target: str, layers=2, heads=2) -> Attention:
    return Attention(
        made_up(source, source, layers, heads, "encoder"),
        made_up(target, target, layers, heads, "decoder"),
        made_up(target, source, layers, heads, "cross"),
    )


EXAMPLE = made_up_attention("▁The ▁a nimal ▁it ▁was . </s>", "▁Das ▁Ti er ▁es . </s>")


# --- The walk through the model -------------------------------------------------------------------------------------


def numpy_attention(layer, query, memory, allowed, num_heads=2):
    """softmax(Q K^T / sqrt(d_k)) and the output for one sentence (T, D), (S, D), from the layer's kernels alone."""
    kernels = {dense.name: [w.numpy() for w in dense.weights] for dense in (layer.query, layer.key_value)}
    q = query @ kernels["query"][0] + kernels["query"][1]
    k, v = np.split(memory @ kernels["key_value"][0] + kernels["key_value"][1], 2, axis=-1)
    d_k = q.shape[-1] // num_heads
    weights, outputs = [], []
    for head in range(num_heads):
        part = slice(head * d_k, (head + 1) * d_k)
        scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(d_k)) * allowed
        weights.append(scores / scores.sum(axis=-1, keepdims=True))
        outputs.append(weights[-1] @ v[:, part])
    kernel, bias = (w.numpy() for w in layer.output_projection.weights)
    return np.stack(weights), np.concatenate(outputs, axis=-1) @ kernel + bias


def numpy_embedding(embedding, ids, d_model=16):
    angles = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    positions = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(ids), d_model)
    return embedding.embeddings.numpy()[ids] * np.sqrt(d_model) + positions


def numpy_normalization(layer, x):
    x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)
    gamma, beta = (w.numpy() for w in layer.weights)
    return x * gamma + beta


def test_encoder_weights_equal_numpy():
    model = small_model()
    _, weights = encoder_weights(model, tf.constant(SOURCE[:1]))
    x = numpy_embedding(model.source_embedding, SOURCE[0])
    expected, _ = numpy_attention(model.encoder.layers[0].self_attention, x, x, allowed=1)
    np.testing.assert_allclose(weights[0, 0], expected, atol=1e-5)


def test_decoder_weights_equal_numpy():
    model, memory = small_model(), np.random.default_rng(3).normal(size=(5, 16))
    _, self_weights, cross_weights = decoder_weights(
        model, tf.constant(TARGET[:1]), tf.constant(memory[None], tf.float32), padding_mask(tf.constant(SOURCE[:1]))
    )
    layer, x = model.decoder.layers[0], numpy_embedding(model.target_embedding, TARGET[0])
    expected, attended = numpy_attention(layer.self_attention, x, x, allowed=np.tri(6))
    np.testing.assert_allclose(self_weights[0, 0], expected, atol=1e-5)
    x = numpy_normalization(layer.self_attention_residual.normalization, x + attended)
    expected, _ = numpy_attention(layer.cross_attention, x, memory, allowed=1)
    np.testing.assert_allclose(cross_weights[0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_walk_ends_where_the_model_ends(norm):
    model, source, target = small_model(norm=norm), tf.constant(SOURCE), tf.constant(TARGET)
    expected_memory, mask = model.encode(source)
    memory, _ = encoder_weights(model, source)
    np.testing.assert_allclose(memory, expected_memory, atol=1e-5)
    output, _, _ = decoder_weights(model, target, memory, mask)
    logits = model.decode(target, expected_memory, mask)
    np.testing.assert_allclose(model.output_embedding.logits(output), logits, atol=1e-4)


def test_rows_sum_to_one_and_nothing_looks_at_padding_or_ahead():
    model, source, target = small_model(), tf.constant(SOURCE), tf.constant(TARGET)
    memory, encoder = encoder_weights(model, source)
    _, decoder, cross = decoder_weights(model, target, memory, padding_mask(source))
    assert encoder.shape == (2, 2, 2, 5, 5) and decoder.shape == (2, 3, 2, 6, 6) and cross.shape == (2, 3, 2, 6, 5)
    for weights in (encoder, decoder, cross):
        np.testing.assert_allclose(tf.reduce_sum(weights, axis=-1), np.ones(weights.shape[:-1]), atol=1e-5)
    assert not encoder[1, ..., 2:].numpy().any() and not cross[1, ..., 2:].numpy().any()
    assert not (decoder.numpy() * (1 - np.tri(6))).any()


def test_alone_equals_in_a_batch(translator):
    together = attentions(translator, SENTENCES[:2], SENTENCES[2:] + SENTENCES[:1])
    for found, sentence, target in zip(together, SENTENCES, SENTENCES[2:] + SENTENCES[:1], strict=False):
        for one, other in zip(found, attention(translator, sentence, target), strict=True):
            assert (one.rows, one.columns) == (other.rows, other.columns)
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_batches_follow_each_other(translator):
    whole, split = (attentions(translator, SENTENCES, SENTENCES, batch_size=size) for size in (64, 2))
    assert [one.source_tokens for one in whole] == [one.source_tokens for one in split]


def test_tokens_stand_where_the_decoder_reads_and_writes_them(translator, tokenizer):
    found = attention(translator, SENTENCES[0], SENTENCES[1])
    source, target = (tuple(tokenizer.pieces(ids)) for ids in tokenizer.encode(SENTENCES[:2]))
    assert found.source_tokens == (*source, "</s>") == found.encoder.rows == found.encoder.columns
    assert found.decoder.rows == found.decoder.columns == ("<s>", *target)
    assert found.target_tokens == (*target, "</s>")
    assert found.cross.weights.shape == (3, 2, len(target) + 1, len(source) + 1)
    assert found.cross.weights.dtype == np.float32


def test_without_a_target_it_is_the_models_own_translation(translator, monkeypatch):
    monkeypatch.setattr(translator, "translate", lambda sentences: [SENTENCES[2]])
    own, given = attention(translator, SENTENCES[0]), attention(translator, SENTENCES[0], SENTENCES[2])
    assert own.target_tokens == given.target_tokens
    np.testing.assert_array_equal(own.cross.weights, given.cross.weights)


def test_an_empty_translation_has_attention_too(translator, monkeypatch):
    monkeypatch.setattr(translator, "translate", lambda sentences: [""])
    found = attention(translator, SENTENCES[0])
    assert found.decoder.words().rows == ("<s>",) and found.cross.words().rows == ("</s>",)
    assert found.decoder.weights.shape == (3, 2, 1, 1)


def test_the_package_offers_the_function():
    assert tfformer.attention is attention_maps.attention


def test_blank_sentences_are_refused(translator):
    with pytest.raises(ValueError, match="a sentence is blank, and there is no attention in it"):
        attention(translator, " ")
    with pytest.raises(ValueError, match="a sentence is blank"):
        attention(translator, SENTENCES[0], "")


def test_overlong_sentences_are_cut_with_one_warning(translator, tokenizer):
    long = " ".join(SENTENCES * 2)
    expected = tuple(tokenizer.pieces(tokenizer.encode([long])[0][:39]))
    with pytest.warns(
        UserWarning, match="1 of 1 sentences had more than 39 tokens, the model's most, and were"
    ) as caught:
        found = attention(translator, long)
    assert len(caught) == 1 and found.source_tokens == (*expected, "</s>")
    with pytest.warns(UserWarning, match="more than 39 tokens"):
        found = attention(translator, SENTENCES[0], long)
    assert found.target_tokens == (*expected, "</s>")


# --- Words ----------------------------------------------------------------------------------------------------------


def test_words_sum_columns_and_average_rows():
    weights = [
        [0.1, 0.2, 0.3, 0.4],
        [0.5, 0.1, 0.3, 0.1],
        [0.0, 0.6, 0.0, 0.4],
        [1.0, 0.0, 0.0, 0.0],
    ]
    pieces = ("▁un", "der", "▁it", "</s>")
    words = AttentionMaps("encoder", pieces, pieces, np.array([[weights]], np.float32)).words()
    assert words.rows == words.columns == ("under", "it", "</s>")
    expected = [[0.45, 0.3, 0.25], [0.6, 0.0, 0.4], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(words.weights[0, 0], expected, atol=1e-6)


def test_words_are_what_stands_between_spaces(translator):
    found = attention(translator, SENTENCES[0], SENTENCES[2])
    assert found.encoder.words().rows == (*SENTENCES[0].split(), "</s>")
    assert found.cross.words().rows == (*SENTENCES[2].split(), "</s>")
    assert found.decoder.words().rows == ("<s>", *SENTENCES[2].split())
    for maps in found:
        words = maps.words().weights
        np.testing.assert_allclose(words.sum(axis=-1), np.ones(words.shape[:-1]), atol=1e-5)


def test_unknown_characters_belong_to_their_word(translator):
    assert attention(translator, "The 漢 dog.", "漢").encoder.words().rows == ("The", "<unk>", "dog.", "</s>")


# --- Coreference ----------------------------------------------------------------------------------------------------


def pair(antecedent: int, distractor: int) -> Pair:
    return Pair("a cat saw a dog because it slept", "x", "coreference", "", (), antecedent, distractor, (6, 0))


def test_head_scores_of_made_up_heads():
    pairs, words = [pair(1, 4), pair(1, 4), pair(4, 1)], ("a", "cat", "saw", "a", "dog", "because", "it", "slept")
    resolves, first, neither = 0, 1, 2
    maps = []
    for one in pairs:
        weights = np.zeros((1, 3, 8, 8), np.float32)
        weights[0, resolves, 6, [one.antecedent, one.distractor]] = 0.75, 0.25
        weights[0, first, 6, [1, 2]] = 0.5
        weights[0, neither, 6, 6] = 1.0
        maps.append(AttentionMaps("encoder", words, words, weights))
    scores = head_scores(maps, [6, 6, 6], pairs)
    assert [(score.kind, score.layer, score.head) for score in scores] == [("encoder", 1, n) for n in (1, 2, 3)]
    assert scores[resolves][3:] == pytest.approx((0.75, 0.25, 1, 1, 1)) and scores[resolves].balanced == 1
    assert scores[first][3:] == pytest.approx((1 / 3, 1 / 6, 2 / 3, 1, 0)) and scores[first].balanced == 0.5
    assert scores[neither][3:] == (0, 0, 0, 0, 0)


def test_scores_without_one_of_the_orders_say_so():
    (score, _) = head_scores([made_up("1 2 3 4 5 6 it", "1 2 3 4 5")], [6], [pair(1, 4)])
    assert np.isnan(score.second) and score.balanced == score.first == score.accuracy


def test_find_coreference_head_reads_the_pronouns_of_both_sides(translator):
    source, target = "The cat saw the dog because it was big.", "Die Katze sah den Hund, weil sie alt war."
    one = Pair(source, target, "coreference", "", (), 1, 4, (6, 6))
    scores = find_coreference_head(translator, [one, Pair("The dog.", "Der Hund.", "statement", "", ())])
    assert len(scores) == 2 * 2 + 3 * 2
    assert [score.balanced for score in scores] == sorted((score.balanced for score in scores), reverse=True)
    found = attention(translator, source, target)
    for score in scores:
        words = getattr(found, score.kind).words()
        assert words.rows[6] == {"encoder": "it", "cross": "sie"}[score.kind]
        cat, dog = words.weights[score.layer - 1, score.head - 1, 6, [1, 4]]
        assert (score.antecedent, score.distractor, score.accuracy) == (cat, dog, float(cat > dog))


def test_find_coreference_head_needs_coreference(translator):
    with pytest.raises(ValueError, match="none of the pairs is a coreference sentence"):
        find_coreference_head(translator, [Pair("The dog.", "Der Hund.", "statement", "", ())])


def test_the_table_has_a_line_a_head(capsys):
    print_head_scores([attention_maps.HeadScore("cross", 2, 11, 0.6071, 0.0322, 0.663, 1.0, 0.25)])
    title, line = capsys.readouterr().out.splitlines()
    assert line.split() == ["cross", "2", "11", "0.607", "0.032", "66.3%", "100.0%", "25.0%", "62.5%"]
    assert len(title) == len(line)


# --- Pictures -------------------------------------------------------------------------------------------------------


def svg_texts(path) -> list[str]:
    """The texts of an SVG: matplotlib notes each in a comment beside its outlines."""
    xml.etree.ElementTree.parse(path)
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("choice", [{}, {"layer": 2}, {"layer": 1, "head": 2}, {"layer": 1, "head": "mean"}])
@pytest.mark.parametrize("word", [None, "it"])
def test_a_png_is_whole_and_alone(tmp_path, choice, word):
    path = tmp_path / "picture.png"
    draw(EXAMPLE, path, word=word, **choice)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes().startswith(PNG_SIGNATURE) and path.read_bytes().endswith(PNG_END)
    pixels = matplotlib.image.imread(path)
    assert min(pixels.shape[:2]) > 200 and pixels.min() < 0.2 < 1.0 == pixels.max()


@pytest.mark.parametrize("word", [None, "it"])
def test_an_svg_is_whole_and_alone(tmp_path, word):
    draw(EXAMPLE, tmp_path / "picture.svg", word=word)
    assert [file.name for file in tmp_path.iterdir()] == ["picture.svg"]
    assert {"The", "animal", "it", "was."} <= set(svg_texts(tmp_path / "picture.svg"))


def test_heat_maps_name_every_head_and_word(tmp_path):
    draw_heads(EXAMPLE.cross.words(), tmp_path / "heads.svg")
    texts = svg_texts(tmp_path / "heads.svg")
    assert {f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2)} < set(texts)
    assert texts.count("animal") == 2 and texts.count("Tier") == 2  # below two columns, beside two rows
    assert "Cross-attention" in texts


def test_one_heat_map_has_the_percentages(tmp_path):
    weights = np.array([[[[0.98, 0.02], [0.25, 0.75]]]])
    draw_heads(AttentionMaps("cross", ("x", "y"), ("u", "v"), weights), tmp_path / "head.svg", layer=1, head=1)
    texts = svg_texts(tmp_path / "head.svg")
    assert {"98", "25", "75"} <= set(texts) and "2" not in texts


def test_the_picture_of_a_word_has_its_percentages(tmp_path):
    weights = np.array([[[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.09, 0.91]]]])
    maps = AttentionMaps("cross", ("x", "es,"), ("u", "v"), weights)
    draw_word(maps, "es", tmp_path / "one.svg", layer=1, head=1)
    assert {"What “es” looks at", "Cross-attention, layer 1 of 1,", "head 1", "30%", "70%"} <= set(
        svg_texts(tmp_path / "one.svg")
    )
    draw_word(maps, 0, tmp_path / "all.svg")
    assert {"What “x” looks at", "Cross-attention, layer 1 of 1, heads", "1", "2", "70%", "30%"} <= set(
        svg_texts(tmp_path / "all.svg")
    )


def test_words_are_found_with_or_without_punctuation_and_capitals(tmp_path):
    maps = made_up("The cat, it was. It", "u v")
    for word, expected in {"it": "it", "It": "It", "cat": "cat", "cat,": "cat", "WAS": "was", 3: "was"}.items():
        draw_word(maps, word, tmp_path / "word.svg")
        assert f"What “{expected}” looks at" in svg_texts(tmp_path / "word.svg")


def test_dollar_signs_are_text_and_not_mathematics(tmp_path):
    maps = made_up(r"$5 $\alpha", r"$5 $\alpha")
    for name, picture in {
        "word.svg": lambda path: draw_word(maps, 1, path),
        "map.svg": lambda path: draw_heads(maps, path),
    }.items():
        picture(tmp_path / name)
        assert "$5" in svg_texts(tmp_path / name)


def test_many_heads_have_colours_of_their_own(tmp_path):
    for heads in (1, 8, 9, 16):
        assert len(set(attention_pictures._colours(heads))) == heads
    draw_word(made_up("x y", "u v", heads=16), "x", tmp_path / "word.png")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer": 3}, "layer=3 does not exist; cross-attention has the layers 1 to 2"),
        ({"layer": 0}, "layer=0 does not exist"),
        ({"head": 3}, "head=3 does not exist; cross-attention has the heads 1 to 2 and 'mean'"),
        ({"head": "first"}, "head='first' does not exist"),
        ({"word": "street"}, "word='street' is not in the sentence; choose one of Das Tier es. </s>"),
        ({"kind": "memory"}, "kind='memory' does not exist; choose one of encoder, decoder, cross"),
    ],
)
@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_what_does_not_exist_is_refused_with_what_does(tmp_path, choice, message, suffix):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw(EXAMPLE, tmp_path / f"picture{suffix}", **({"kind": "cross"} | choice))
    assert not list(tmp_path.iterdir())


def test_unknown_formats_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"picture.gif does not end in .*; choose .png or .svg or .html"):
        draw(EXAMPLE, tmp_path / "picture.gif")
    for function in (lambda path: draw_heads(EXAMPLE.encoder, path), lambda path: draw_word(EXAMPLE.encoder, 0, path)):
        with pytest.raises(ValueError, match=r"choose .png or .svg"):
            function(tmp_path / "picture.html")
    with pytest.raises(ValueError, match=r"choose .html"):
        draw_page(EXAMPLE, tmp_path / "page.png")


def test_a_failed_drawing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")

    def fail(figure, file, **_):
        file.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        draw(EXAMPLE, path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pictures need matplotlib; pip install 'tfformer\[plot\]' \(text and .html"):
        draw(EXAMPLE, tmp_path / "picture.png")
    draw(EXAMPLE, tmp_path / "page.html")


# --- The page -------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page, and its data."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.open, self.data = [], [], ""
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "input"):
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == ("script", {"id": "data", "type": "application/json"}):
            self.data += data


def decoded(view: dict, kind: dict) -> np.ndarray:
    shape = kind["layers"], kind["heads"], len(view["rows"]), len(view["columns"])
    return np.frombuffer(base64.b64decode(view["weights"]), np.uint8).reshape(shape) / 255


def test_the_page_holds_every_weight_by_words_and_by_pieces(tmp_path):
    draw_page(EXAMPLE, tmp_path / "page.html", "cross", "es", 1, 2)
    page = Page(tmp_path / "page.html")
    assert not page.open
    data = json.loads(page.data)
    assert data["start"] == {"kind": "cross", "layer": 1, "head": 2, "row": 2}
    for maps in EXAMPLE:
        kind = data["kinds"][maps.kind]
        for name, view in {"pieces": maps, "words": maps.words()}.items():
            assert (tuple(kind[name]["rows"]), tuple(kind[name]["columns"])) == (view.rows, view.columns)
            np.testing.assert_allclose(decoded(kind[name], kind), view.weights, atol=0.002)


def test_the_page_needs_nothing_else(tmp_path):
    draw_page(EXAMPLE, tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert not {tag for tag, _ in page.elements} & {"link", "img", "iframe", "object"}
    assert not [attributes for _, attributes in page.elements if {"src", "href"} & set(attributes)]
    assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch\(|import\(", page.text)


def test_what_the_user_typed_cannot_become_html(tmp_path):
    nasty = ["▁<script>alert(1)</script>", "▁{data}", "▁</script><!--", "▁\u2028\"'&amp;\\", "▁שלום"]
    draw_page(made_up_attention(" ".join(nasty), "x"), tmp_path / "nasty.html")
    draw_page(EXAMPLE, tmp_path / "plain.html")
    found, plain = Page(tmp_path / "nasty.html"), Page(tmp_path / "plain.html")
    assert found.elements == plain.elements and "alert" in found.data
    assert json.loads(found.data)["kinds"]["encoder"]["pieces"]["rows"] == nasty


def test_a_page_of_the_base_model_is_small(tmp_path):
    words = " ".join(f"▁word{n}" for n in range(31))
    draw_page(made_up_attention(words, words, layers=6, heads=8), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 500_000


# --- The command line -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory, tokenizer):
    directory = RunDirectory(tmp_path_factory.mktemp("runs") / "run")
    vocabulary = {"vocab_size": tokenizer.vocab_size}
    config = Config.from_dict({"model": SIZES, "tokenizer": vocabulary, "data": {"train": "phrasebook:train"}})
    directory.create(config, Tokenizers(tokenizer, tokenizer))
    directory.save_weights(new_model(config.model, Tokenizers(tokenizer, tokenizer)))
    return directory.path


def test_the_verb_draws_once(run, tmp_path, capsys):
    output = tmp_path / "sie.svg"
    arguments = ["attention", str(run), SENTENCES[0], "--target", SENTENCES[2], "--kind", "cross", "--word", "sie"]
    arguments += ["--layer", "2", "--head", "1", "--output", str(output)]
    assert main(arguments) == 0
    assert {"What “sie” looks at", "Cross-attention, layer 2 of 3,", "head 1"} <= set(svg_texts(output))
    drawn = output.read_bytes()
    assert main(arguments) == 2 and "sie.svg exists already; choose another --output" in capsys.readouterr().err
    assert output.read_bytes() == drawn


def test_the_verb_refuses_in_one_line(run, tmp_path, capsys):
    sentences = [SENTENCES[0], "--target", SENTENCES[2]]
    assert main(["attention", str(run), *sentences, "--head", "9", "--output", str(tmp_path / "f.html")]) == 2
    message = "tfformer: head=9 does not exist; encoder self-attention has the heads 1 to 2 and 'mean'\n"
    assert capsys.readouterr().err.endswith(message)
