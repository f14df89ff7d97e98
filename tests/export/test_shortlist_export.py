"""Exports of a run with a shortlist choose among the same candidates."""

import json
import random
import shutil

import pytest
from support.litert_samples import SENTENCES

from tfformer.cli.main import main
from tfformer.data import translation_table
from tfformer.engines import find_artifact, open_engine
from tfformer.engines.artifact import open_export
from tfformer.engines.engine import PREFIX
from tfformer.export.pipeline import export_model
from tfformer.inference.translator import Translator

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.* had more than:UserWarning")]


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """The tiny run with a shortlist so short that it changes translations."""
    folder = shutil.copytree(tiny_run, tmp_path_factory.mktemp("shortlist") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translation_table, "FREQUENT", 20)
        patch.setattr(translation_table, "BEST", 3)
        assert main(["shortlist", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def shortened(run):
    return Translator.load(run)


def check(version, shortened, beam_size):
    """An engine translates shuffled batches as the run translates every sentence alone."""
    alone = {text: shortened.translate([text], beam_size)[0] for text in SENTENCES[:30]}
    texts = random.Random(3).choices(list(alone), k=60)
    with open_engine(version) as engine:
        assert engine.translate(texts, beam_size) == [alone[text] for text in texts]
        assert engine.translate(texts[:1], beam_size) == [alone[texts[0]]]


def test_a_shortlist_changes_translations_and_the_artifact(
    run, tiny_run, shortened, translator, tmp_path
):
    assert shortened.translate(SENTENCES, 1) != translator.translate(SENTENCES, 1)
    assert find_artifact(run).digest != find_artifact(tiny_run).digest
    again = Translator.load(shortened.save(tmp_path / "again"))
    assert again.translate(SENTENCES[:20], 1) == shortened.translate(SENTENCES[:20], 1)


def test_a_saved_model_has_the_shortlist(run, shortened, tensorflow_text, one_process, tmp_path):
    version = export_model(run, tmp_path, samples=SENTENCES)
    check(version, shortened, 1)
    check(version, shortened, 3)


@pytest.mark.parametrize("static", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_litert_file_has_the_shortlist(run, shortened, static, one_process, tmp_path):
    pytest.importorskip("ai_edge_litert")
    options = {"beam_size": 3, "static": static, "samples": SENTENCES}
    version = export_model(run, tmp_path, "litert", **options)
    check(version, shortened, 1)
    check(version, shortened, 3)
    if not static:
        check_calls_of_several_shapes(version, shortened)


def check_calls_of_several_shapes(version, shortened):
    """An interpreter that frees memory between calls gives wrong answers in one of 20 rounds."""
    from tfformer.engines.litert import FILE, IdSearch

    manifest, tokenizers = open_export(version)
    texts, draw = SENTENCES[:30], random.Random(4)
    rows = tokenizers.source.encode(texts)
    expected = [
        [text for text, _ in best] for best in shortened.continuations(texts, [""] * len(texts))
    ]
    for _ in range(100):
        search = IdSearch(version / FILE, manifest)
        for size in draw.choices([1, 1, 2, 4], k=4):
            numbers = draw.sample(range(len(texts)), size)
            result = search.run([rows[n] for n in numbers], PREFIX, [[]] * size)
            for n, ids in zip(numbers, result.ids.tolist(), strict=True):
                assert tokenizers.target.decode(ids) == expected[n]


@pytest.mark.nightly
def test_an_int8_file_has_one_copy_of_each_table(run, shortened, one_process, tmp_path):
    pytest.importorskip("ai_edge_litert")
    version = export_model(run, tmp_path, "litert", quantize="int8", samples=SENTENCES)
    parameters = shortened.model.count_params()
    assert (version / "model.tflite").stat().st_size < 2 * parameters
    measured = json.loads((version / "manifest.json").read_text())["parity"]["translate"]
    assert measured["identical"] > 0.7 * measured["sentences"]


def test_ctranslate2_chooses_from_the_whole_vocabulary(run, translator, one_process, tmp_path):
    pytest.importorskip("ctranslate2")
    with pytest.warns(UserWarning, match=r"shortlist\.npz is left out: CTranslate2 exports cannot"):
        version = export_model(run, tmp_path, "ctranslate2", samples=SENTENCES)
    with open_engine(version) as engine:
        assert engine.translate(SENTENCES[:20], 1) == translator.translate(SENTENCES[:20], 1)


def test_a_damaged_shortlist_and_a_missing_text_are_one_line(run, counting_run, tmp_path, capsys):
    folder = shutil.copytree(run, tmp_path / "run")
    file = folder / "shortlist.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert main(["translate", str(folder), "--input", str(folder / "result.json")]) == 2
    assert "shortlist.npz is damaged (its digest does" in capsys.readouterr().err.splitlines()[-1]
    config = json.loads((folder / "config.json").read_text())
    config["data"]["valid"] = ["absent.en", "absent.de"]
    (folder / "config.json").write_text(json.dumps(config))
    before = file.read_bytes()
    assert main(["shortlist", str(folder)]) == 2
    assert "absent.en" in capsys.readouterr().err.splitlines()[-1]
    assert file.read_bytes() == before
    assert main(["shortlist", str(counting_run)]) == 2
    assert "contains a language model" in capsys.readouterr().err
