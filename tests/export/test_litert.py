"""Compare LiteRT files with their run: without TensorFlow, in batches, quantised and misused."""

import dataclasses
import importlib.util
import itertools
import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from support.litert_samples import SENTENCES, run_signature

from tfformer.data.sources import read_pairs
from tfformer.engines import open_engine
from tfformer.export.litert import LiteRT
from tfformer.export.pipeline import export_model
from tfformer.run_directory import Run
from tfformer.runtime.progress_lines import Steps

pytestmark = [
    pytest.mark.slow,  # an export is read back in another process
    pytest.mark.filterwarnings("ignore:.* had more than .* tokens:UserWarning"),
]

missing = "LiteRT is not installed: pip install -e '.[litert]'"
flatbuffer_utils = pytest.importorskip("ai_edge_litert.tools.flatbuffer_utils", reason=missing)
quantization = pytest.importorskip("tfformer.export.litert.quantization")
litert_writer = pytest.importorskip("tfformer.export.litert.writer")
converter = pytest.importorskip("tfformer.export.litert.converter")
schema = quantization.schema

SAMPLE = Path(__file__).parents[2] / "export" / "on_device" / "sample.py"


def translated(folder, beam_size=1, sentences=SENTENCES):
    """Translate with the engine, as the light install does."""
    with open_engine(folder) as engine:
        return engine.translate(sentences, beam_size)


def tensors_of(model):
    return [tensor for graph in model.subgraphs for tensor in graph.tensors]


def test_each_file_translates_as_the_run_does(dynamic_litert, static_litert, translator):
    lengths = map(len, translator.tokenizers.source.encode(SENTENCES))
    assert max(lengths) > 32  # the static file needs its widest signature
    expected = translator.translate(SENTENCES, 1)
    assert translated(dynamic_litert) == translated(static_litert) == expected
    assert translated(dynamic_litert, 3) == translator.translate(SENTENCES, 3)


def test_each_file_aligns_as_the_run_does(dynamic_litert, static_litert, translator):
    sentences = [*SENTENCES[:20], "", "Yes"]
    translations = [*translator.translate(SENTENCES[:20], 1), "x", ""]
    expected = translator.aligned(sentences, translations)
    for folder in (dynamic_litert, static_litert):
        with open_engine(folder) as engine:
            pairs = engine.aligned(sentences, translations)
            with pytest.raises(ValueError, match="2 sources and 1 targets cannot be paired"):
                engine.aligned(["Yes", "No"], ["Ja"])
        for pair, of_run in zip(pairs, expected, strict=True):
            assert pair[:2] == of_run[:2]
            assert pair.links() == of_run.links()
            np.testing.assert_allclose(pair.attention, of_run.attention, atol=1e-5)
            np.testing.assert_allclose(pair.log_probs, of_run.log_probs, atol=1e-3)


@pytest.mark.nightly
def test_a_static_file_has_each_search_in_each_width(tiny_run, translator, tmp_path):
    options = {"static": True, "beam_size": 3, "samples": SENTENCES}
    version = export_model(tiny_run, tmp_path, "litert", **options)
    names = {
        f"{search}{width}"
        for search in ("translate", "translate_beam", "translate_prefix")
        for width in ("", "_16", "_32")
    }
    assert set(litert_writer.signatures(version / "model.tflite")) == names | {"align_ids"}
    assert translated(version, 3) == translator.translate(SENTENCES, 3)
    with open_engine(version) as engine:
        prefixes = ["Der", "", "Die Katze", "Ein"] * (len(SENTENCES) // 4)
        expected = translator.continuations(SENTENCES, prefixes)
        for row, best in zip(engine.continuations(SENTENCES, prefixes), expected, strict=True):
            assert [text for text, _ in row] == [text for text, _ in best]


def test_a_sentence_translates_alone_as_in_a_batch(dynamic_litert, translator):
    with open_engine(dynamic_litert, threads=1) as engine:
        alone = [engine.translate([sentence], 1)[0] for sentence in SENTENCES[:40]]
    assert alone == translator.translate(SENTENCES, 1)[:40]


def test_every_new_interpreter_translates_long_sentences_right(dynamic_litert, translator):
    """With a cache that grew from 16 to 64 positions, 6 % of the interpreters went wrong."""
    source, target = translator.tokenizers.source, translator.tokenizers.target
    sentences = [text for text in SENTENCES if len(text) < 80]
    translations = translator.translate(sentences, 1)
    pairs = zip(source.encode(sentences), target.encode(translations), translations, strict=True)
    long = [(ids, text) for ids, translated, text in pairs if len(translated) > 32]
    assert long
    for ids, text in long * (200 // len(long)):  # with LiteRT's settings, unlike the engine's
        inputs = {"ids": [ids], "lengths": [len(ids)]}
        outputs = run_signature(dynamic_litert, "translate", **inputs)
        assert target.decode(outputs["ids"].tolist()) == [text]


def test_the_sample_translates_as_the_run_does(dynamic_litert, static_litert, translator):
    """export/on_device/sample.py shows the raw calls and does not import tfformer."""
    assert "tfformer" not in re.findall(r"^(?:import|from) (\w+)", SAMPLE.read_text(), re.MULTILINE)
    lines = "".join(sentence + "\n" for sentence in SENTENCES)
    for folder in (dynamic_litert, static_litert):
        command = [sys.executable, str(SAMPLE), str(folder)]
        done = subprocess.run(
            command, input=lines, capture_output=True, encoding="utf-8", check=True
        )
        assert done.stdout.splitlines() == translator.translate(SENTENCES, 1)


def test_the_c_plus_plus_sample_translates_as_the_run_does(static_litert, translator, tmp_path):
    """export/on_device/native, linked with the library in LiteRT's Python package."""
    if shutil.which("g++") is None or not Path("/usr/include/sentencepiece_processor.h").exists():
        pytest.skip("g++ and libsentencepiece-dev are not both installed")
    (library,) = Path(str(files("ai_edge_litert"))).glob("libLiteRt.so")
    program = tmp_path / "translate"
    command = ["g++", "-std=c++17", *map(str, SAMPLE.parent.glob("native/*.cpp")), "-o", program]
    link = ["-lsentencepiece", library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, *link], check=True)
    lines = "".join(sentence + "\n" for sentence in SENTENCES)
    done = subprocess.run(
        [program, static_litert], input=lines, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines() == translator.translate(SENTENCES, 1)
    done = subprocess.run([program, tmp_path], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (1, "")
    assert "source.model cannot be read" in done.stderr


def test_what_stands_past_the_length_does_not_matter(static_litert, dynamic_litert, translator):
    (pieces,) = translator.tokenizers.source.encode(["The dog."])
    lengths = [len(pieces)]
    for folder, width in ((static_litert, 16), (dynamic_litert, 9)):
        name = "translate_16" if folder == static_litert else "translate"
        rows = [[[*pieces, *[fill] * (width - len(pieces))]] for fill in (0, 3, 99)]
        first, *padded = [run_signature(folder, name, ids=ids, lengths=lengths) for ids in rows]
        assert first["lengths"][0] > 0
        for outputs in padded:
            for output, values in outputs.items():
                np.testing.assert_array_equal(values, first[output])


def test_every_shape_of_a_static_file_is_fixed(static_litert):
    model = flatbuffer_utils.read_model(str(static_litert / "model.tflite"))
    for tensor in tensors_of(model):
        assert tensor.shapeSignature is None or -1 not in tensor.shapeSignature


def test_only_builtin_operators(dynamic_litert, static_litert, litert_int8):
    for folder in (dynamic_litert, static_litert, litert_int8):
        model = flatbuffer_utils.read_model(str(folder / "model.tflite"))
        assert all(code.customCode is None for code in model.operatorCodes)


def test_signatures(dynamic_litert):
    ids, lengths = {"dtype": "int32", "shape": [None, None]}, {"dtype": "int32", "shape": [None]}
    signatures = json.loads((dynamic_litert / "manifest.json").read_text())["signatures"]
    assert signatures["translate"]["inputs"] == {"ids": ids, "lengths": lengths}
    assert set(signatures["translate"]["outputs"]) == {"ids", "lengths", "score"}
    assert signatures["translate_beam"]["inputs"] == signatures["translate"]["inputs"]
    assert set(signatures["translate_beam"]["outputs"]) == {"ids", "lengths", "scores"}
    assert signatures["translate_prefix"]["inputs"] == {
        "ids": ids,
        "lengths": lengths,
        "prefix": ids,
    }
    assert set(signatures["translate_prefix"]["outputs"]) == {"ids", "lengths", "scores"}
    assert set(signatures["align_ids"]["outputs"]) == {"log_probs", "attention"}


def test_widths_double_up_to_the_longest():
    assert litert_writer.widths(100) == [16, 32, 64, 100]
    assert litert_writer.widths(64) == [16, 32, 64]
    assert litert_writer.widths(10) == [10]


def test_int8_weights_are_the_weights_to_half_a_step(litert_int8, translator):
    model = flatbuffer_utils.read_model(str(litert_int8 / "model.tflite"))
    weights = {np.asarray(w).shape: np.asarray(w) for w in translator.model.weights}
    embedding = weights[(500, 64)]
    tensors = {t.buffer: t for t in tensors_of(model) if np.array_equal(t.shape, [500, 64])}
    (tensor,) = tensors.values()  # stored once, for both ends
    scales = tensor.quantization.scale[:, np.newaxis]
    rounded = model.buffers[tensor.buffer].data.view(np.int8).reshape(500, 64) * scales
    assert (np.abs(rounded - embedding) < 0.5001 * scales).all()
    np.testing.assert_allclose(
        tensor.quantization.scale, np.abs(embedding).max(axis=1) / 127, rtol=1e-6
    )


def test_int8_stores_a_byte_for_each_weight(litert_int8, translator):
    model = flatbuffer_utils.read_model(str(litert_int8 / "model.tflite"))
    stored = {t.buffer for t in tensors_of(model) if t.type == schema.TensorType.INT8}
    matrices = [np.asarray(weight) for weight in translator.model.weights if len(weight.shape) > 1]
    wide = sum(matrix.size for matrix in matrices)
    assert sum(len(model.buffers[number].data) for number in stored) == wide
    for number, buffer in enumerate(model.buffers):
        if number not in stored and buffer.data is not None:
            assert len(buffer.data) < 0.1 * wide


def validation_text():
    """The validation text of the tiny run."""
    pairs = itertools.islice(read_pairs("phrasebook:valid"), 50)
    sources, references = zip(*pairs, strict=True)
    return list(sources), list(references)


def test_what_int8_costs_is_measured(litert_int8, translator):
    sources, references = validation_text()
    bleu = json.loads((litert_int8 / "manifest.json").read_text())["bleu"]
    exported = sacrebleu.corpus_bleu(translated(litert_int8, sentences=sources), [references]).score
    run = sacrebleu.corpus_bleu(translator.translate(sources, 1), [references]).score
    assert bleu["sentences"] == 50
    assert bleu["exported"] == pytest.approx(exported, abs=0.01)
    assert bleu["run"] == pytest.approx(run, abs=0.01)
    assert bleu["loss"] == pytest.approx(run - exported, abs=0.02)
    assert "|tok:13a|" in bleu["signature"]


def test_what_int8_costs_is_measured_with_the_recipes_tokenizer(litert_int8, tiny_run, translator):
    sources, references = validation_text()
    run = Run.open(tiny_run)
    training = run.config.training.replace(bleu_tokenizer="char")
    run = dataclasses.replace(run, config=run.config.replace(training=training))
    bleu = LiteRT(quantize="int8").measured(litert_int8, run, translator, Steps(None))["bleu"]
    translations = translator.translate(sources, 1)
    expected = sacrebleu.corpus_bleu(translations, [references], tokenize="char").score
    assert bleu["run"] == pytest.approx(expected, abs=0.01)


def test_a_matrix_that_something_else_reads_stays_as_it_is():
    @tf.function(input_signature=[tf.TensorSpec((1, 8), tf.float32)])
    def both(x):
        return {"y": tf.matmul(x, weights) + tf.reduce_sum(weights * x[0, :, tf.newaxis])}

    weights = tf.constant(np.random.default_rng(1).normal(size=(8, 8)), tf.float32)
    model = flatbuffer_utils.convert_bytearray_to_object(
        tf.lite.TFLiteConverter.from_concrete_functions([both.get_concrete_function()]).convert()
    )
    quantization.quantize_weights(model)
    read = {
        int(number)
        for operator in model.subgraphs[0].operators
        if not isinstance(operator.builtinOptions, schema.FullyConnectedOptionsT)
        for number in operator.inputs
    }
    types = {model.subgraphs[0].tensors[number].type for number in read}
    assert schema.TensorType.INT8 not in types


def test_what_lies_beside_the_model(dynamic_litert, tiny_run):
    manifest = json.loads((dynamic_litert / "manifest.json").read_text())
    assert (manifest["format"], manifest["quantize"], manifest["static"]) == (
        "litert",
        "none",
        False,
    )
    assert all(
        check["identical"] == check["sentences"] == len(SENTENCES)
        for check in manifest["parity"].values()
    )
    assert (
        sorted(manifest["digests"])
        == sorted(manifest["files"])
        == ["model.tflite", "tokenizer.model"]
    )
    card = (dynamic_litert / "README.md").read_text()
    assert manifest["digests"]["model.tflite"] in card
    assert "`translate_beam`" in card
    assert list(dynamic_litert.parent.iterdir()) == [dynamic_litert]


def test_without_litert_the_error_names_the_extra(tiny_run, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "ai_edge_litert" else find(name),
    )
    with pytest.raises(ValueError, match=r"pip install -e '\.\[litert\]'"):
        export_model(tiny_run, tmp_path / "models", "litert")


def test_the_other_process_gets_every_argument_of_the_conversion(tmp_path, monkeypatch):
    received = tmp_path / "received"
    monkeypatch.setattr(converter, "PROGRAM", ["sh", "-c", f"cat > {received}"])
    saved = []
    converter.convert(saved.append, ["translate"], "int8", tmp_path / "file")
    arguments = [*saved, ["translate"], "int8", str(tmp_path / "file")]
    assert json.loads(received.read_text()) == arguments


@pytest.mark.parametrize(
    ("program", "reason"),
    [("kill -SEGV $$", "SIGSEGV"), ("echo 'KeyError: x' >&2; exit 1", "KeyError: x")],
)
def test_a_converter_that_fails_is_one_line(program, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(converter, "PROGRAM", ["sh", "-c", program])
    with pytest.raises(ValueError, match=f"LiteRT's converter failed: {reason}; "):
        converter.convert(lambda folder: None, [], "none", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
