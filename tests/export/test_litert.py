"""LiteRT files against the run they come from.

They run in processes without TensorFlow, in batches, quantised and misused.
"""

import functools
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from flatbuffers import number_types
from support.litert_samples import SENTENCES
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from tfformer.cli.main import main
from tfformer.data.sources import read_pairs
from tfformer.export import formats as export
from tfformer.export.litert import metadata, quantizer
from tfformer.export.litert import requests as litert_requests
from tfformer.export.litert import writer as litert_writer
from tfformer.export.other_process import ask
from tfformer.export.parity import Hypotheses
from tfformer.inference.translator import Translator
from tfformer.storage.manifest import write_manifest

pytestmark = pytest.mark.slow  # an export is read back in another process

pytest.importorskip(
    "ai_edge_litert", reason="LiteRT is not installed: pip install 'tfformer[litert]'"
)

CLIENT = Path(__file__).parents[2] / "export" / "on_device" / "translate.py"


@pytest.fixture(scope="module")
def translator(tiny_run):
    return Translator.load(tiny_run)


@pytest.fixture(scope="module")
def dynamic(dynamic_litert):
    return dynamic_litert


@pytest.fixture(scope="module")
def static(static_litert):
    return static_litert


@pytest.fixture(scope="module")
def with_text(tiny_run, tmp_path_factory):
    return export.tflite(tiny_run, tmp_path_factory.mktemp("with_text"), with_text=True)


@pytest.fixture(scope="module")
def int8(tiny_run, tmp_path_factory):
    return export.tflite(tiny_run, tmp_path_factory.mktemp("int8"), quantize="int8", static=True)


def own(translator, beam_size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return translator.translate(SENTENCES, beam_size)


def client(folder, *options, text=SENTENCES):
    """The output of the client that needs no TensorFlow.

    It is standard output's lines, the errors and the exit code.
    """
    lines = "".join(sentence + "\n" for sentence in text)
    command = [sys.executable, str(CLIENT), str(folder), *options]
    done = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8")
    messages = [
        line for line in done.stderr.splitlines() if not line.startswith(("INFO", "WARNING"))
    ]
    return done.stdout.splitlines(), messages, done.returncode


def test_the_client_translates_as_the_run_does(dynamic, translator):
    assert client(dynamic)[0] == own(translator, 1)
    assert client(dynamic, "--beam", "--threads", "2")[0] == own(translator, 3)


def test_a_batch_translates_like_its_sentences_alone(dynamic, translator):
    assert client(dynamic, "--batch-size", "7")[0] == own(translator, 1)


def test_a_static_file_translates_as_the_run_does(static, translator):
    assert (
        max(map(len, translator.tokenizers.source.encode(SENTENCES))) > 32
    )  # needs the widest signature
    assert client(static)[0] == own(translator, 1)
    assert client(static, "--beam")[0] == own(translator, 3)


def test_a_compiled_model_translates_as_the_run_does_and_keeps_its_weights(
    static, translator, tmp_path
):
    """The second time it has the packed weights of the first.

    A damaged file of them is made anew.
    """
    cache = tmp_path / "cache"
    assert client(static, "--weight-cache", cache)[0] == own(translator, 1)
    (packed,) = cache.iterdir()
    written, when = packed.read_bytes(), packed.stat().st_mtime_ns
    assert client(static, "--weight-cache", cache, "--beam")[0] == own(translator, 3)
    assert list(cache.iterdir()) == [packed]
    assert packed.stat().st_mtime_ns == when
    packed.write_bytes(written[:1000])
    assert client(static, "--weight-cache", cache, text=["The dog."])[0] == translator.translate(
        ["The dog."], 1
    )
    assert packed.read_bytes() == written


def test_the_client_brings_no_tensorflow(dynamic):
    code = (
        f"import sys; sys.path.insert(0, {str(CLIENT.parent)!r}); import translate\n"
        f"translator = translate.Translator({str(dynamic)!r})\n"
        "translator.translate([translator.pieces('The dog.')])\n"
        "assert not {'tensorflow', 'tfformer', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CLIENT.parent)


def test_a_long_sentence_is_cut_with_a_warning_and_a_blank_one_stays_blank(dynamic):
    found, messages, code = client(dynamic, text=["The dog " * 60, "", "The dog."])
    assert code == 0
    assert found[1] == ""
    assert found[0]
    assert found[2]
    assert len(messages) == 1
    assert messages[0].startswith("warning: line 1 has ")
    assert messages[0].endswith("cut to 39")


def test_a_text_keeps_its_paragraphs(dynamic):
    """Each sentence as on a line of its own, and all whitespace as it was."""
    sentences = ["The dog.", "I am here.", "The cat is old!", "Thank you."]
    text = "The dog.  I am here.\r\n\n\tThe cat is old! Thank you."
    alone, _, _ = client(dynamic, text=sentences)
    command = [sys.executable, str(CLIENT), str(dynamic), "--format", "text", "--batch-size", "3"]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    expected = "{}  {}\r\n\n\t{} {}".format(*alone)
    assert done.stdout.decode() == expected


def test_addresses_numbers_and_the_like_stay(dynamic):
    """By a model without placeholders, and one that has learned nothing of them."""
    text = (
        "The dog is at https://a.de/x?b=1, 3.50 € {name}.\nWrite to a@b.de 😀!\n\n12:30 – a_b.txt"
    )
    (*lines, last), _, code = client(dynamic, "--format", "text", text=[text])
    assert code == 0
    first, second, _ = lines
    assert all(first.count(word) == 1 for word in ("https://a.de/x?b=1", "3.50 €", "{name}"))
    assert all(second.count(word) == 1 for word in ("a@b.de", "😀"))
    assert last == "12:30 – a_b.txt"


def test_a_wrong_argument_is_one_line(dynamic):
    assert client(dynamic, "--format", "zz") == (
        [],
        [
            "translate.py: argument --format: invalid choice: 'zz' (choose from 'lines', 'text'); "
            "see translate.py --help"
        ],
        2,
    )


@pytest.fixture
def copied(dynamic, tmp_path):
    return Path(shutil.copytree(dynamic, tmp_path / "copied"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda folder: (folder / "model.tflite").unlink(),
            "model.tflite cannot be read (No such file",
        ),
        (
            lambda folder: (folder / "model.tflite").write_bytes(b"TFL3"),
            "model.tflite is not the file that was exported",
        ),
        (
            lambda folder: (folder / "tokenizer.model").write_bytes(b"x"),
            "tokenizer.model is not the file that was",
        ),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json cannot be read"),
        (
            lambda folder: (folder / "manifest.json").write_text("[1, 2]"),
            "does not describe a LiteRT model",
        ),
        (
            lambda folder: write_manifest(folder, {"format": "litert"}),
            "manifest.json: tokenizers must be a table; it is None; copy the whole exported folder",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text('{"format": "saved_model"}'),
            "export with --format litert",
        ),
    ],
)
def test_the_client_says_in_one_line_what_is_wrong(copied, spoil, message):
    spoil(copied)
    found, messages, code = client(copied)
    assert (found, code, len(messages)) == ([], 2, 1)
    assert message in messages[0]


@pytest.mark.parametrize("name", ["manifest.json", "tokenizer.model", "model.tflite"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_the_client_reads_no_file_that_may_never_end(copied, name, make):
    (copied / name).unlink()
    make(copied / name)
    found, messages, code = client(copied)
    assert (found, code, len(messages)) == ([], 2, 1)
    assert f"{name} cannot be read (" in messages[0]
    assert "not a regular file" in messages[0]


def test_the_client_reads_a_manifest_of_at_most_a_mebibyte(copied, translator):
    """Blanks at its end do not change what it says."""
    path = copied / "manifest.json"
    path.write_text(path.read_text().ljust(2**20))
    assert client(copied, text=["The dog."])[0] == translator.translate(["The dog."], 1)
    path.write_text(path.read_text() + " ")
    found, messages, code = client(copied)
    assert (found, code, len(messages)) == ([], 2, 1)
    assert "manifest.json cannot be read (it has more than 1 MiB" in messages[0]


def change(folder, path, value) -> None:
    """Write a value into the manifest, and the digest that it then has."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["manifest_digest"]
    *tables, name = path
    table = functools.reduce(dict.__getitem__, tables, manifest)
    table[name] = value
    write_manifest(folder, manifest)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("decoding", "max_length"), -5, "decoding.max_length must be a whole number from 2 on"),
        (("decoding", "max_length"), "40", "it is '40'"),
        (("decoding", "max_length"), True, "it is True"),
        (("decoding", "max_length"), 2, " ids, but max_length is 2"),
        (("decoding",), [], "it is None"),
        (("static",), 1, "static must be true or false; it is 1"),
        (("tokenizers",), [], "tokenizers must be a table; it is []"),
        (("tokenizers",), {"tokenizer.model": 7}, "tokenizers has 7, which must be a text"),
        (("tokenizers",), {"other.model": ""}, "digests lacks other.model"),
        (("digests", "model.tflite"), 7, "digests has 7, which must be a text"),
        (("digests",), {"tokenizer.model": ""}, "digests lacks model.tflite"),
        (("files",), 7, "files must be a table; it is 7"),
        (("files", "model.tflite"), "7", "files has '7', which must be a whole number"),
        (("signatures",), ["translate"], "signatures must be a table"),
        (("signatures", "translate"), 7, "signatures has 7, which must be a table"),
        (("signatures", "translate"), {"inputs": []}, "signatures.translate has no shape of ids"),
    ],
)
def test_the_client_names_a_value_that_no_export_writes(static, tmp_path, path, value, message):
    copied = shutil.copytree(static, tmp_path / "copied")
    change(copied, path, value)
    found, messages, code = client(copied)
    assert (found, code, len(messages)) == ([], 2, 1)
    assert message in messages[0]
    assert "copy the whole exported folder again" in messages[0]


def test_the_client_knows_a_manifest_that_was_changed(copied):
    """A changed length is refused by the manifest's digest.

    Without it 2 would be a possible length, and every sentence be cut to one token.
    """
    path = copied / "manifest.json"
    path.write_text(path.read_text().replace('"max_length": 40', '"max_length": 2'))
    found, messages, code = client(copied)
    assert (found, code, len(messages)) == ([], 2, 1)
    assert "manifest.json: it was changed after the export" in messages[0]


def test_the_client_misses_the_manifests_digest(copied):
    path = copied / "manifest.json"
    path.write_text(path.read_text().replace("manifest_digest", "manifest_digesT"))
    assert "manifest.json: it was changed after the export" in client(copied)[1][0]


def test_the_client_takes_the_newest_of_a_folder_of_versions(copied, translator):
    """By number and not by name; the older ones here could not be read at all."""
    versions = copied.parent / "versions"
    versions.mkdir()
    for number in ("1", "9"):
        (versions / number).mkdir()
        (versions / number / "manifest.json").write_text("damaged")
    copied.rename(versions / "10")
    assert client(versions, text=["The dog."])[0] == translator.translate(["The dog."], 1)


def test_the_client_names_a_line_that_is_no_text(dynamic):
    command = [sys.executable, str(CLIENT), str(dynamic)]
    done = subprocess.run(command, input=b"The dog.\n\xff\xfe\n", capture_output=True)
    assert done.returncode == 2
    assert b"line 2 is not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_packed_weights_need_a_static_file(dynamic, tmp_path):
    assert client(dynamic, "--weight-cache", tmp_path / "cache")[1:] == (
        [
            f"translate.py: --weight-cache needs fixed shapes, which {dynamic} has not; export "
            "with --static"
        ],
        2,
    )
    assert not (tmp_path / "cache").exists()


def test_packed_weights_need_a_folder(static, tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("a file")
    message = f"translate.py: --weight-cache {cache} cannot be made (File exists); name a folder"
    assert client(static, "--weight-cache", cache)[1:] == ([message], 2)
    assert cache.read_text() == "a file"


def test_the_client_asks_for_a_beam_that_is_there(int8):
    assert "has no beam search" in client(int8, "--beam")[1][0]


def answers(folder, requests):
    return ask("litert", [folder / "model.tflite"], requests)


def test_what_stands_past_the_length_does_not_matter(static, dynamic):
    for folder, width in ((static, 16), (dynamic, 9)):
        name = "translate_16" if folder == static else "translate"
        rows = [[[50, 60, 70, *[fill] * (width - 3)]] for fill in (0, 3, 99)]
        found = answers(folder, [[name, {"ids": ids, "lengths": [3]}] for ids in rows])
        assert found[0] == found[1] == found[2]
        assert found[0]["lengths"][0] > 0


def test_every_shape_of_a_static_file_is_fixed(static):
    model = flatbuffer_utils.read_model(str(static / "model.tflite"))
    free = [
        t
        for graph in model.subgraphs
        for t in graph.tensors
        if t.shapeSignature is not None and -1 in t.shapeSignature
    ]
    assert free == []


def test_a_static_file_has_each_search_in_each_width(static):
    names = {
        f"{search}{width}"
        for search in ("translate", "translate_beam")
        for width in ("", "_16", "_32")
    }
    assert set(litert_writer.signatures(static / "model.tflite")) == names


def test_only_builtin_operators(dynamic, static, int8):
    for folder in (dynamic, static, int8):
        model = flatbuffer_utils.read_model(str(folder / "model.tflite"))
        assert all(found.customCode is None for found in model.operatorCodes)


def test_signatures(dynamic):
    ids, lengths = {"dtype": "int32", "shape": [None, None]}, {"dtype": "int32", "shape": [None]}
    found = json.loads((dynamic / "manifest.json").read_text())["signatures"]
    assert found["translate"]["inputs"] == {"ids": ids, "lengths": lengths}
    assert set(found["translate"]["outputs"]) == {"ids", "lengths", "score"}
    assert found["translate_beam"]["inputs"] == found["translate"]["inputs"]
    assert set(found["translate_beam"]["outputs"]) == {"ids", "lengths", "scores"}


def test_widths_double_up_to_the_longest():
    assert litert_writer.widths(100) == [16, 32, 64, 100]
    assert litert_writer.widths(64) == [16, 32, 64]
    assert litert_writer.widths(10) == [10]


def test_int8_weights_are_the_weights_to_half_a_step(int8, translator):
    model = flatbuffer_utils.read_model(str(int8 / "model.tflite"))
    weights = {np.asarray(w).shape: np.asarray(w) for w in translator.model.weights}
    embedding = weights[(500, 64)]
    tensors = {
        t.buffer: t
        for graph in model.subgraphs
        for t in graph.tensors
        if np.array_equal(t.shape, [500, 64])
    }
    (tensor,) = tensors.values()  # stored once, for both ends
    scales = tensor.quantization.scale[:, np.newaxis]
    rounded = model.buffers[tensor.buffer].data.view(np.int8).reshape(500, 64) * scales
    assert (np.abs(rounded - embedding) < 0.5001 * scales).all()
    np.testing.assert_allclose(
        tensor.quantization.scale, np.abs(embedding).max(axis=1) / 127, rtol=1e-6
    )


def test_int8_stores_a_byte_for_each_weight(int8, translator):
    model = flatbuffer_utils.read_model(str(int8 / "model.tflite"))
    stored = {
        t.buffer: t
        for graph in model.subgraphs
        for t in graph.tensors
        if t.type == schema.TensorType.INT8
    }
    matrices = [np.asarray(weight) for weight in translator.model.weights if len(weight.shape) > 1]
    wide = sum(matrix.size for matrix in matrices)
    assert sum(len(model.buffers[number].data) for number in stored) == wide
    assert (
        max(
            len(b.data)
            for n, b in enumerate(model.buffers)
            if n not in stored and b.data is not None
        )
        < 0.1 * wide
    )


def test_what_int8_costs_is_measured(int8, translator):
    pairs = list(itertools.islice(read_pairs("phrasebook:valid"), 50))
    sources, references = map(list, zip(*pairs, strict=True))
    bleu = json.loads((int8 / "manifest.json").read_text())["bleu"]
    exported = sacrebleu.corpus_bleu(client(int8, text=sources)[0], [references]).score
    run = sacrebleu.corpus_bleu(translator.translate(sources, 1), [references]).score
    assert bleu["sentences"] == 50
    assert bleu["exported"] == pytest.approx(exported, abs=0.01)
    assert bleu["run"] == pytest.approx(run, abs=0.01)
    assert bleu["loss"] == pytest.approx(run - exported, abs=0.02)


def test_a_matrix_that_something_else_reads_stays_as_it_is():
    @tf.function(input_signature=[tf.TensorSpec((1, 8), tf.float32)])
    def both(x):
        return {"y": tf.matmul(x, weights) + tf.reduce_sum(weights * x[0, :, tf.newaxis])}

    weights = tf.constant(np.random.default_rng(1).normal(size=(8, 8)), tf.float32)
    model = flatbuffer_utils.convert_bytearray_to_object(
        tf.lite.TFLiteConverter.from_concrete_functions([both.get_concrete_function()]).convert()
    )
    quantizer.quantize(model)
    read = {
        int(number)
        for operator in model.subgraphs[0].operators
        if not isinstance(operator.builtinOptions, schema.FullyConnectedOptionsT)
        for number in operator.inputs
    }
    types = {model.subgraphs[0].tensors[number].type for number in read}
    assert schema.TensorType.INT8 not in types


def test_metadata_is_read_by_the_format_alone():
    """Read by the fields' places in TensorFlow Lite's schema.

    They are name 0, description 1, version 2, subgraphs 3, licence 5.
    """
    content = metadata.encode_metadata(
        "A", "B", "1", "C", [("ids", "in")], [("score", "out"), ("ids", "")]
    )
    assert content[4:8] == b"M001"
    root = flatbuffers.table.Table(
        content, flatbuffers.encode.Get(number_types.UOffsetTFlags.packer_type, content, 0)
    )

    def text(table, place):
        return table.String(table.Offset(4 + 2 * place) + table.Pos).decode()

    def tables(table, place):
        start = table.Vector(table.Offset(4 + 2 * place))
        count = table.VectorLen(table.Offset(4 + 2 * place))
        return [
            flatbuffers.table.Table(content, table.Indirect(start + 4 * n)) for n in range(count)
        ]

    assert [text(root, place) for place in (0, 1, 2, 5)] == ["A", "B", "1", "C"]
    (subgraph,) = tables(root, 3)
    assert [(text(t, 0), text(t, 1)) for t in tables(subgraph, 2)] == [("ids", "in")]
    assert [(text(t, 0), text(t, 1)) for t in tables(subgraph, 3)] == [
        ("score", "out"),
        ("ids", ""),
    ]


def test_an_exported_file_holds_its_metadata(dynamic):
    model = flatbuffer_utils.read_model(str(dynamic / "model.tflite"))
    (entry,) = [entry for entry in model.metadata if entry.name == b"TFLITE_METADATA"]
    assert bytes(model.buffers[entry.buffer].data)[4:8] == b"M001"


def test_what_lies_beside_the_model(dynamic, tiny_run):
    manifest = json.loads((dynamic / "manifest.json").read_text())
    assert (manifest["format"], manifest["quantize"], manifest["static"]) == (
        "litert",
        "none",
        False,
    )
    assert all(
        found["identical"] == found["sentences"] == len(SENTENCES)
        for found in manifest["parity"].values()
    )
    assert (
        sorted(manifest["digests"])
        == sorted(manifest["files"])
        == ["model.tflite", "tokenizer.model"]
    )
    card = (dynamic / "README.md").read_text()
    assert manifest["digests"]["model.tflite"] in card
    assert "`translate_beam`" in card
    assert "TF Text" not in card
    assert list(dynamic.parent.iterdir()) == [dynamic]


def test_text_goes_in_and_comes_out(with_text, translator):
    assert "`translate_text` needs TF Text's operators" in (with_text / "README.md").read_text()
    requests = [["translate_text", {"text": [sentence]}] for sentence in SENTENCES[:40]]
    found = ask("litert", [with_text / "model.tflite", "tensorflow_text"], requests)
    assert [answer["translation"][0] for answer in found] == own(translator, 1)[:40]


def test_text_of_random_pieces_comes_out_as_by_ids(with_text):
    """Some of their translations begin with blanks alone.

    TF Text by itself would write these.
    """
    manifest = json.loads((with_text / "manifest.json").read_text())
    found = manifest["parity"]["translate_text"]
    assert found["identical"] == found["sentences"] >= 30


def test_a_tokenizer_that_reads_otherwise_is_refused():
    found = {
        "translate": Hypotheses(1, [("a", 0.0), ("b", 0.0)]),
        "translate_text": Hypotheses(1, [("a", 0.0), ("c", 0.0)]),
    }
    with pytest.raises(
        ValueError, match=r"1 of 2 samples come out otherwise with TF Text.*leave out --text"
    ):
        litert_requests.check_text(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantize": "int4"}, "quantize='int4' is not known; choose one of none, int8, float16"),
        (
            {"static": True, "with_text": True},
            "text has no fixed shape; choose --static or --text, not both",
        ),
        ({"max_length": 1}, "max_length=1 must be at least 2"),
    ],
)
def test_settings_are_checked_before_anything_is_written(tiny_run, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        export.tflite(tiny_run, tmp_path / "models", **arguments)
    assert not (tmp_path / "models").exists()


def test_without_litert_the_error_names_the_extra(tiny_run, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ai_edge_litert" else found(name)
    )
    with pytest.raises(ValueError, match=r"pip install 'tfformer\[litert\]'"):
        export.tflite(tiny_run, tmp_path / "models")


def test_an_option_of_another_format(tiny_run, tmp_path, capsys):
    code = main(
        [
            "export",
            str(tiny_run),
            "--format",
            "saved_model",
            "--output",
            str(tmp_path),
            "--quantize",
            "int8",
        ]
    )
    assert code == 2
    assert (
        "--format saved_model has no choice of --quantize; leave it out" in capsys.readouterr().err
    )
