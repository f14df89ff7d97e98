"""Word alignments of artificial attention and of a small run; error rates computed by hand."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from alignment_error_rate import alignment_error_rate

from tfformer.cli.main import main
from tfformer.data import phrasebook
from tfformer.explain import alignment
from tfformer.explain.alignment import (
    alignments,
    compiled_aligner,
    nearest_targets,
    pharaoh,
)
from tfformer.explain.attention_maps import AttentionMaps, attention


def test_words_are_aligned_to_what_looks_at_them_most_in_the_mean_of_the_heads(
    translator, monkeypatch
):
    """The weights from word to word, by hand.

    Tier has 0.325 0.55 0.125 0, schläft has 0.05 0 0.55 0.4. The first head alone would align Tier
    with The.
    """
    rows, columns = ("▁Ti", "er", "▁schläft", "</s>"), ("▁The", "▁ani", "mal", "▁sleeps", "</s>")
    head1 = [
        [0.4, 0.3, 0.3, 0.0, 0.0],
        [0.6, 0.2, 0.0, 0.2, 0.0],
        [0.0, 0.0, 0.0, 0.4, 0.6],
        [0.0, 0.0, 0.0, 0.9, 0.1],
    ]
    head2 = [
        [0.0, 0.4, 0.3, 0.3, 0.0],
        [0.3, 0.2, 0.5, 0.0, 0.0],
        [0.1, 0.0, 0.0, 0.7, 0.2],
        [0.0, 0.0, 0.0, 1.0, 0.0],
    ]
    maps = SimpleNamespace(
        cross=AttentionMaps("cross", rows, columns, np.array([[head1, head2]], np.float32))
    )
    monkeypatch.setattr(alignment, "each_attention", lambda *_, **__: [maps])
    assert alignments(translator, ["The animal sleeps"], ["Tier schläft"]) == [
        ((0, 0), (1, 0), (2, 1))
    ]


def test_the_nearest_target_looks_most_in_the_mean_of_all_layers_and_heads():
    """The second layer alone would link both words the other way round."""
    head1 = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]]
    head2 = [[0.4, 0.6, 0.0], [0.5, 0.4, 0.1], [0.9, 0.1, 0.0]]
    maps = AttentionMaps(
        "cross",
        ("Ja", "doch", "</s>"),
        ("Yes", "!", "</s>"),
        np.array([[head1], [head2]], np.float32),
    )
    assert alignment.nearest(maps) == ((0, 0), (1, 1))


def test_a_word_that_looks_at_the_end_is_aligned_only_by_the_source(translator, monkeypatch):
    weights = np.array([[[[0.2, 0.8], [0.1, 0.9], [0.9, 0.1]]]], np.float32)
    maps = SimpleNamespace(
        cross=AttentionMaps("cross", ("▁Ja", "▁doch", "</s>"), ("▁Yes", "</s>"), weights)
    )
    monkeypatch.setattr(alignment, "each_attention", lambda *_, **__: [maps])
    assert alignments(translator, ["Yes"], ["Ja doch"]) == [((0, 0),)]


def test_alignments_come_in_the_order_of_the_sentences(translator):
    pairs = phrasebook.pairs("test")[:12]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    together = alignments(translator, [*sources, " ", "Yes"], [*targets, "Ja", ""])
    assert together[-2:] == [(), ()]
    for source, target, links in zip(sources, targets, together[:-2], strict=True):
        weights = attention(translator, source, target).cross.words().weights[0].mean(axis=0)
        words = [(s, t) for s in range(len(source.split())) for t in range(len(target.split()))]
        is_linked = [weights[t, s] in (weights[t].max(), weights[:-1, s].max()) for s, t in words]
        assert links == tuple(itertools.compress(words, is_linked))


def test_the_links_of_a_graph_are_those_of_the_layers(translator):
    """For any number of pairs of any lengths in any order."""
    pairs = phrasebook.pairs("test")[:20]
    sources = [pair.source for pair in pairs] + ["", "The dog."]
    targets = [pair.target for pair in pairs] + ["Der Hund.", "Der Hund."]
    align = compiled_aligner(translator)
    links = nearest_targets(translator, sources, targets)
    assert links[-2] == ()
    assert align(sources, targets) == links
    assert align(sources[:3], targets[:3]) == links[:3]


@pytest.mark.parametrize("targets", [[], ["Ja", "Nein"]])
def test_sources_and_targets_that_make_no_pairs(translator, targets):
    message = f"1 sources and {len(targets)} targets cannot be paired; pass one"
    with pytest.raises(ValueError, match=message):
        alignments(translator, ["Yes"], targets)


def test_a_layer_that_does_not_exist(translator):
    with pytest.raises(ValueError, match="layer=2 does not exist; the decoder has the layers 1"):
        alignments(translator, ["Yes"], ["Ja"], layer=2)


def test_pharaoh_and_the_error_rate_by_hand():
    assert pharaoh(((0, 0), (2, 1))) == "0-0 2-1"
    assert pharaoh(()) == ""
    alignments = [((0, 0), (1, 1)), ((0, 0),)]
    known = [((0, 0), (1, 2), (2, 2)), ((0, 0),)]
    assert alignment_error_rate(alignments, known) == pytest.approx(1 - (2 + 2) / (3 + 4))
    assert alignment_error_rate(known, known) == 0
    assert alignment_error_rate([((0, 1),)], [((1, 0),)]) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("verbs_share_models")
def test_translate_prints_alignments_of_its_own_words(tiny_run, translator, tmp_path, capsys):
    source = tmp_path / "in.en"
    lines = [phrasebook.pairs("test")[0].source, "", phrasebook.pairs("test")[1].source]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (
        main(["translate", str(tiny_run), "--input", str(source), "--alignments", "--scores"]) == 0
    )
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert printed[1] == ["0.0000", "", ""]
    texts = translator.translate(lines)
    expected = [pharaoh(links) for links in alignments(translator, lines, texts)]
    assert [row[1:] for row in printed] == [list(row) for row in zip(texts, expected, strict=True)]
    for line, (_, text, links) in zip(lines, printed, strict=True):
        for link in links.split():
            source_word, word = map(int, link.split("-"))
            assert source_word < len(line.split())
            assert word < len(text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("verbs_share_models")
def test_the_alignments_of_cut_sentences_are_counted_once(tiny_run, tmp_path, capsys):
    (tmp_path / "in.en").write_text("the animal " * 500 + "\n")
    arguments = [
        "translate",
        str(tiny_run),
        "--input",
        str(tmp_path / "in.en"),
        "--alignments",
        "--n-best",
        "2",
    ]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err.count("warning: ") == 1
    assert "warning: 1 of 1 sentences had more than 39" in captured.err
    assert len(captured.out.splitlines()) == 2
