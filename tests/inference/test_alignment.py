"""Word alignments of artificial attention and of a small run; error rates computed by hand."""

import itertools

import numpy as np
import pytest
from alignment_error_rate import alignment_error_rate

from tfformer.cli.main import main
from tfformer.data import phrasebook
from tfformer.explain.attention_maps import attention
from tfformer.inference.alignment import Aligned, alignments, pharaoh


def aligned(source: str, target: str, attention: list[list[float]], probabilities=None) -> Aligned:
    """A pair of pieces between spaces, without their end tokens."""
    sides = ((*side.split(), "</s>") for side in (source, target))
    return Aligned(*sides, np.array(attention), np.log(probabilities or [1] * len(attention)))


def test_words_are_linked_to_what_attends_to_them_most():
    """The weights from word to word, by hand.

    Tier has 0.325 0.55 0.125 0, schläft has 0.05 0 0.55 0.4.
    """
    weights = [
        [0.2, 0.35, 0.3, 0.15, 0.0],
        [0.45, 0.1, 0.35, 0.1, 0.0],
        [0.05, 0.0, 0.0, 0.55, 0.4],
        [0.0, 0.0, 0.0, 0.95, 0.05],
    ]
    pair = aligned("▁The ▁ani mal ▁sleeps", "▁Ti er ▁schläft", weights)
    assert pair.links() == ((0, 0), (1, 0), (2, 1))
    assert pair.nearest_targets() == ((0, 0), (1, 0), (2, 1))


def test_a_target_word_needs_most_of_its_attention_for_a_link_and_a_source_word_some():
    """The target's second word attends to source words 0 and 1; nothing attends to 2 and to 3."""
    weights = [
        [0.70, 0.2, 0.04, 0.01, 0.05],
        [0.55, 0.4, 0.03, 0.01, 0.01],
        [0.65, 0.2, 0.05, 0.05, 0.05],
        [0.00, 0.0, 0.05, 0.04, 0.91],
        [0.00, 0.0, 0.00, 0.00, 1.00],
    ]
    pair = aligned("▁a ▁b ▁c ▁d", "▁A ▁B ▁C ▁D", weights)
    assert pair.links() == ((0, 0), (0, 2), (1, 1))
    assert pair.nearest_targets() == ((0, 0), (1, 1), (2, 2), (3, 2))


def test_a_word_that_attends_to_the_end_is_linked_only_by_the_source():
    pair = aligned("▁Yes", "▁Ja ▁doch", [[0.2, 0.8], [0.1, 0.9], [0.9, 0.1]])
    assert pair.links() == pair.nearest_targets() == ((0, 0),)


def test_confidences_by_hand():
    """A word has the product of its pieces, a sentence the geometric mean of all its tokens."""
    weights = [[1.0, 0.0]] * 4
    pair = aligned("▁Yes", "▁Ja ▁do ch", weights, probabilities=[0.9, 0.5, 0.4, 0.8])
    np.testing.assert_allclose(pair.word_confidences(), [0.9, 0.2])
    assert pair.confidence == pytest.approx((0.9 * 0.5 * 0.4 * 0.8) ** 0.25)


def test_a_pair_with_a_blank_side(translator):
    """A blank translation of a sentence is as sure as its end token."""
    blank, unsure, full = translator.aligned(["", "Yes", "Yes"], ["Ja", " ", "Ja"])
    assert (blank.source, blank.target, blank.confidence) == ((), (), 1)
    assert (unsure.source, unsure.target) == (full.source, ("</s>",))
    source = np.array([[*translator.encode(["Yes"]).ids[0], 3]])
    logits = translator.model({"source": source, "target": np.array([[2]])})[0, 0].numpy()
    logits /= translator.temperature
    expected = np.exp(logits[3] - np.logaddexp.reduce(logits))
    assert unsure.confidence == pytest.approx(expected, rel=1e-3)
    for pair in (blank, unsure):
        assert (pair.links(), pair.nearest_targets()) == ((), ())
        assert pair.word_confidences().tolist() == []


def test_probabilities_are_those_of_the_score_and_weights_those_of_the_map(translator):
    """For pairs of any lengths in any order, which share batches."""
    pairs = phrasebook.pairs("test")[:12]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    scores = translator.score(sources, targets)
    plain = translator.with_search(translator.decoding)
    plain.calibration = None
    for source, target, score, pair in zip(
        sources, targets, scores, plain.aligned(sources, targets), strict=True
    ):
        assert pair.target == score.tokens
        np.testing.assert_allclose(pair.log_probs, score.log_probs, atol=1e-4)
        cross = attention(translator, source, target).cross
        assert (pair.source, pair.target) == (cross.columns, cross.rows)
        np.testing.assert_allclose(pair.attention, cross.weights[-2:][0].mean(axis=0), atol=1e-5)


def test_alignments_come_in_the_order_of_the_sentences(translator):
    pairs = phrasebook.pairs("test")[:12]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    together = alignments(translator, [*sources, " ", "Yes"], [*targets, "Ja", ""])
    assert together[-2:] == [(), ()]
    for source, target, links in zip(sources, targets, together[:-2], strict=True):
        weights = attention(translator, source, target).cross.words().weights[0].mean(axis=0)
        words = [(s, t) for s in range(len(source.split())) for t in range(len(target.split()))]
        is_linked = [
            weights[t, s] >= 0.6 or max(weights[:-1, s].max(), 0.1) <= weights[t, s]
            for s, t in words
        ]
        assert links == tuple(itertools.compress(words, is_linked))


@pytest.mark.parametrize("targets", [[], ["Ja", "Nein"]])
def test_sources_and_targets_that_make_no_pairs(translator, targets):
    message = f"1 sources and {len(targets)} targets cannot be paired; pass one"
    with pytest.raises(ValueError, match=message):
        alignments(translator, ["Yes"], targets)


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
    columns = ["--alignments", "--confidence", "--scores"]
    assert main(["translate", str(tiny_run), "--input", str(source), *columns]) == 0
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert printed[1] == ["0.0000", "", "1.000", ""]
    texts = translator.translate(lines)
    pairs = translator.aligned(lines, texts)
    expected = [[f"{pair.confidence:.3f}", pharaoh(pair.links())] for pair in pairs]
    assert [row[1:] for row in printed] == [
        [t, *row] for t, row in zip(texts, expected, strict=True)
    ]
    for line, (_, text, _, links) in zip(lines, printed, strict=True):
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
