"""Compare served LiteRT exports with the translator of their run."""

import asyncio

import numpy as np
import pytest
from support.litert_samples import SENTENCES
from support.served_texts import client_of
from support.servers import save_scripted_model

from tfformer.serving.application import application
from tfformer.serving.served_models import ServedModel, ServedModels

pytestmark = pytest.mark.slow  # an export is read back in another process

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install -e '.[litert]'")


@pytest.fixture(scope="module")
def version(dynamic_litert):
    """A version with beam search."""
    return ServedModel("m", dynamic_litert).newest


@pytest.fixture(scope="module")
def greedy(static_litert):
    """A version with only greedy search."""
    return static_litert


def texts(sentences) -> dict[str, np.ndarray]:
    return {"text": np.array([sentence.encode() for sentence in sentences], object)}


@pytest.mark.filterwarnings("ignore:.*tokens:UserWarning")
def test_the_translations_are_the_translators_own(version, translator):
    greedy = version.run("serving_default", texts(SENTENCES))
    for row, (best,) in zip(
        zip(*greedy.values(), strict=True), translator.n_best(SENTENCES, 1), strict=True
    ):
        assert row == (best.text.encode(), pytest.approx(best.score, abs=1e-3))
    beam = version.run("translate_beam", texts(SENTENCES))
    n_best = translator.n_best(SENTENCES, 3)
    for served, scores, expected in zip(*beam.values(), n_best, strict=True):
        expected_texts, expected_scores = zip(*expected, strict=True)
        assert tuple(text.decode() for text in served[: len(expected)]) == expected_texts
        assert scores[: len(expected)] == pytest.approx(expected_scores, abs=1e-3)


def test_text_of_any_kind_is_answered(version):
    hostile = [b"The \xff dog \xcc", b"\x00", b"x" * 1_000_000, "漢".encode() * 200_000, b""]
    outputs = version.run("serving_default", {"text": np.array(hostile, object)})
    assert [isinstance(text, bytes) for text in outputs["translation"]] == [True] * 5
    assert (outputs["translation"][-1], outputs["score"][-1]) == (b"", 0.0)


def test_without_a_beam_search_the_beam_is_one_wide(greedy):
    version = ServedModel("m", greedy).newest
    best = version.run("serving_default", texts(SENTENCES[:3]))
    beam = version.run("translate_beam", texts(SENTENCES[:3]))
    assert beam["translations"].tolist() == [[text] for text in best["translation"]]
    assert beam["scores"].tolist() == [[score] for score in best["score"]]


def test_models_of_two_kinds_are_behind_one_server(greedy, translator, tmp_path):
    save_scripted_model(tmp_path / "1", "v1")
    models = ServedModels([ServedModel("en-de", greedy), ServedModel("de-en", tmp_path / "1")])
    sentence = SENTENCES[0]
    best = translator.n_best([sentence], 1)[0][0]
    request = {"q": sentence, "source": "en", "target": "de", "alternatives": 2}
    back = {"q": "Der Hund", "source": "de", "target": "en"}
    deepl = {"text": [sentence], "source_lang": "EN", "target_lang": "DE"}

    async def scenario():
        async with client_of(application(models)) as client:

            async def answer(path, body):
                return await (await client.post(path, json=body)).json()

            assert await answer("/translate", request) == {
                "translatedText": best.text,
                "alternatives": [],
            }
            assert await answer("/translate", back) == {"translatedText": "DER HUND"}
            assert (await answer("/v2/translate", deepl))["translations"][0]["text"] == best.text
            predicted = await answer("/v1/models/en-de:predict", {"instances": [sentence]})
            score = pytest.approx(best.score, abs=1e-3)
            assert predicted == {"predictions": [{"translation": best.text, "score": score}]}
            stream = await (await client.post("/translate/stream", data=request)).text()
            assert f'"translation": "{best.text}"' in stream
            align = {"q": sentence, "translation": "Der Hund.", "model": "en-de"}
            [aligned] = translator.aligned([sentence], ["Der Hund."])
            assert await answer("/align", align) == {
                "links": [list(link) for link in aligned.nearest_targets()],
                "confidence": pytest.approx(aligned.confidence, rel=1e-3),
                "word_confidences": pytest.approx(aligned.word_confidences(), rel=1e-3),
            }
            described = await (await client.get("/v1/models/en-de/metadata")).json()
            signatures = described["metadata"]["signature_def"]["signature_def"]
            assert signatures.keys() == {"serving_default", "translate_beam"}

    asyncio.run(scenario())
