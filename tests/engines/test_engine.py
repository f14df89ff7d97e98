"""Every engine translates an artifact as the run itself does."""

import json
import subprocess
import sys

import numpy as np
import pytest
from support.litert_samples import SENTENCES
from support.uncached_search import continuations_by_hand

from tfformer.engines import open_engine
from tfformer.engines.litert import IdSearch

GIVEN = [SENTENCES[0], "", *SENTENCES[1:], " ", "the " * 200]


@pytest.fixture(scope="module")
def engine(tiny_run, verbs_share_models):
    with open_engine(tiny_run) as opened:
        yield opened


def test_a_litert_export_has_the_runs_translations(engine, dynamic_litert):
    with open_engine(dynamic_litert.parent) as light:
        assert light.translate(GIVEN) == engine.translate(GIVEN)
        assert light.count_tokens(GIVEN) == engine.count_tokens(GIVEN)
        assert light.max_tokens == engine.max_tokens
        for expected, hypotheses in zip(engine.n_best(GIVEN), light.n_best(GIVEN), strict=True):
            texts, scores = zip(*hypotheses, strict=True)
            expected_texts, expected_scores = zip(*expected, strict=True)
            assert texts == expected_texts
            assert scores == pytest.approx(expected_scores, rel=1e-4)


def test_a_stream_has_the_translations_of_a_text_of_several_portions(dynamic_litert):
    """Portions contain sentences of similar length; the order is the text's."""
    sentences = [SENTENCES[number % len(SENTENCES)] for number in range(5)]
    with open_engine(dynamic_litert) as light:
        sizes = []
        search = light.n_best
        light.chunk, light.portion = 4, 3
        light.n_best = lambda portion, beams: sizes.append(len(portion)) or search(portion, beams)
        streamed = [n_best[0].text for chunk in light.stream(sentences, 1) for n_best in chunk]
        assert streamed == light.translate(sentences, beam_size=1)
        assert sizes == [3, 1, 1]


def test_one_sentence_at_a_time_keeps_to_one_interpreter(dynamic_litert, monkeypatch):
    """The first call of another would prepare its weights and tensors once more."""
    used = []
    run = IdSearch.run
    monkeypatch.setattr(
        IdSearch, "run", lambda search, *rows: used.append(search) or run(search, *rows)
    )
    with open_engine(dynamic_litert, threads=2) as light:
        for sentence in SENTENCES[:3]:
            light.translate([sentence], 1)
    assert len(used) == 4  # the engine's own first call is one of them
    assert len(set(map(id, used))) == 1


def test_signatures_over_text_give_what_the_methods_give(dynamic_litert):
    texts = encoded(GIVEN)
    with open_engine(dynamic_litert, threads=2) as light:
        greedy = light.run("serving_default", {"text": texts})["translation"]
        assert [text.decode() for text in greedy] == light.translate(GIVEN, beam_size=1)
        beams = light.run("translate_beam", {"text": texts})
        for row, scores, n_best in zip(*beams.values(), light.n_best(GIVEN), strict=True):
            filled = [text.decode() for text in row[scores > -1e8]]
            assert filled == [hypothesis.text for hypothesis in n_best]


@pytest.mark.parametrize(
    "artifact",
    [
        "tiny_run",
        "dynamic_litert",
        pytest.param("saved_model_export", marks=pytest.mark.slow),
    ],
)
def test_continuations_are_those_of_a_search_without_a_cache(
    artifact, translator, verbs_share_models, request
):
    sentences, prefixes = SENTENCES[:4], ["", "Der", "Die Katze", "Ein alter"]
    with open_engine(request.getfixturevalue(artifact)) as opened:
        found = opened.continuations(sentences, prefixes, count=3)
        for sentence, prefix, row in zip(sentences, prefixes, found, strict=True):
            texts, log_probs = continuations_by_hand(translator, sentence, prefix, 3)
            assert [continuation.text for continuation in row] == texts
            assert [continuation.score for continuation in row] == pytest.approx(
                log_probs, abs=1e-3
            )
        arrays = {"text": encoded(sentences), "prefix": encoded(prefixes)}
        outputs = opened.run("translate_prefix", arrays)
        for texts, chances, row in zip(
            outputs["translations"], outputs["probabilities"], found, strict=True
        ):
            assert [text.decode() for text in texts[:3]] == [
                translation.text for translation in row
            ]
            assert np.log(chances[:3]) == pytest.approx([t.score for t in row], abs=1e-3)
        assert opened.continuations([" "], ["Der"]) == [[("", 0.0)]]
        for prefix, message in (
            ("Der Ж", "vocabulary lacks a character of the prefix 'Der Ж'"),
            ("Hund" * 60, r"prefix 'Hund.*' has \d+ tokens, and a translation has at most 39; sho"),
        ):
            with pytest.raises(ValueError, match=message):
                opened.continuations(["The dog."], [prefix])


def test_an_artifact_that_cannot_continue_prefixes_is_refused(dynamic_litert):
    with open_engine(dynamic_litert) as light:
        light.signatures = {}
        message = "cannot continue the beginning of a translation; use its run, or export it again"
        with pytest.raises(ValueError, match=message):
            light.continuations(["The dog."], ["Der"])


def encoded(texts):
    return np.array([text.encode() for text in texts], object)


@pytest.mark.parametrize(
    "artifact", ["static_litert", pytest.param("saved_model_export", marks=pytest.mark.slow)]
)
def test_a_search_that_the_export_lacks_is_refused(artifact, request):
    message = "no search with 7 beams; export the run again with --beam-size 7"
    with open_engine(request.getfixturevalue(artifact)) as export:
        for search in (export.translate, export.n_best):
            with pytest.raises(ValueError, match=message):
                search(["a"], 7)


def test_a_fresh_process_answers_requests_without_tensorflow(dynamic_litert):
    requests = [["serving_default", {"text": SENTENCES[:2]}]]
    code = (
        "import sys, tfformer.engines.__main__ as program\n"
        "program.main(sys.argv[1])\n"
        "print('tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(dynamic_litert)]
    done = subprocess.run(
        command, input=json.dumps(requests), capture_output=True, text=True, check=True
    )
    answers, loaded = done.stdout.splitlines()[-2:]
    with open_engine(dynamic_litert) as light:
        assert json.loads(answers)[0][0]["translation"] == light.translate(SENTENCES[:2], 1)
    assert loaded == "False"
