"""Compare exports with their run: in new processes, in C++, in any batch, with hostile text."""

import hashlib
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from support.empty_batches import check_empty_batches
from support.marian_checkpoints import checkpoint, languages
from support.numpy_layers import target_log_probs
from support.untrained_models import letters_tokenizer
from tensorflow_serving.apis import prediction_log_pb2

import tfformer
from tfformer.checkpoints.import_model import import_model
from tfformer.data.sources import read_pairs
from tfformer.engines import open_engine
from tfformer.engines.engine import CONTINUATIONS
from tfformer.engines.saved_model import Session
from tfformer.explain.attention_maps import attention_weights
from tfformer.export.model_card import EXAMPLES, NO_LICENCE, model_card, right_examples
from tfformer.export.pipeline import export_model
from tfformer.export.saved_model import writer
from tfformer.special_ids import END_ID, START_ID

pytestmark = [
    pytest.mark.slow,  # an export is read back in another process
    pytest.mark.filterwarnings("ignore:.* had more than .* tokens:UserWarning"),
]

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 34)]
SENTENCES += ["", " \t ", "The dog " * 40, "the Ж 😀 dog", "e\u0301 ﬁne ½", "zero\x00byte"]
PREFIXES = ["", "Der", "Die Katze", "Ein alter"] * (len(SENTENCES) // 4)
HOSTILE = {
    "nothing": b"",
    "blank": b" " * 1_000_000,
    "words": b"The dog sees the cat. " * 50_000,
    "one word": b"x" * 1_000_000,
    "unknown": "漢".encode() * 330_000,
    "no UTF-8": b"\xff" * 1_000_000,
    "half characters": b"\x80" * 1_000_000,
    "zeros": b"\x00" * 1_000_000,
    "a surrogate": b"\xed\xa0\x80",
    "broken": b"The \xff dog is \xc3 tired.",
}
SERVE = """
import json, sys
import tensorflow as tf, tensorflow_text

def plain(values):
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values

model = tf.saved_model.load(sys.argv[1])
answers = {}
for name, (signature, inputs) in json.load(sys.stdin).items():
    inputs = {
        key: tf.constant([text.encode("utf-8", "surrogateescape") for text in values])
        if key in ("text", "prefix", "source", "target") else tf.constant(values, tf.int32)
        for key, values in inputs.items()
    }
    outputs = model.signatures[signature](**inputs)
    answers[name] = {key: plain(value.numpy().tolist()) for key, value in outputs.items()}
assert "tfformer" not in sys.modules
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def version(saved_model_export):
    return saved_model_export


@pytest.fixture(scope="module")
def answers(version, translator):
    """The answers of a new process to all questions below.

    The process has not imported tfformer.
    """
    greedy = [translation.text for translation in hypotheses_of_run(translator, 1)]
    pieces = translator.tokenizers.source.encode(SENTENCES)
    lengths = [len(row) for row in pieces]
    requests = {
        "greedy": ["serving_default", {"text": SENTENCES}],
        "beam": ["translate_beam", {"text": SENTENCES}],
        "reversed": ["serving_default", {"text": SENTENCES[::-1]}],
        "reversed beam": ["translate_beam", {"text": SENTENCES[::-1]}],
        "prefixes": ["translate_prefix", {"text": SENTENCES, "prefix": PREFIXES}],
        "ids": ["translate_ids", {"ids": padded(pieces, END_ID, 0), "lengths": lengths}],
        "ids and junk": ["translate_ids", {"ids": padded(pieces, 999_999, 7), "lengths": lengths}],
        "scores": ["score", {"source": SENTENCES, "target": greedy}],
        "aligned": ["translate_aligned", {"text": SENTENCES}],
        "blank aligned": ["translate_aligned", {"text": ["", "  "]}],
        "odd scores": [
            "score",
            {
                "source": ["", "The dog.", "The dog."],
                "target": ["Der Hund.", "", "Der Hund. " * 99],
            },
        ],
        "blank": ["serving_default", {"text": ["", "  "]}],
        "blank beam": ["translate_beam", {"text": ["", "  "]}],
        "hostile beam": [
            "translate_beam",
            {"text": [text.decode("utf-8", "surrogateescape") for text in HOSTILE.values()]},
        ],
    }
    requests |= {
        f"alone {n}": ["serving_default", {"text": [text]}] for n, text in enumerate(SENTENCES)
    }
    requests |= {
        f"hostile {name}": ["serving_default", {"text": [text.decode("utf-8", "surrogateescape")]}]
        for name, text in HOSTILE.items()
    }
    command = [sys.executable, "-c", SERVE, str(version)]
    done = subprocess.run(
        command,
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        cwd=version,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def hypotheses_of_run(translator, beam_size):
    """The run's best translations of the sentences."""
    return [best for best, *_ in translator.n_best(SENTENCES, beam_size)]


def padded(rows, fill, extra):
    longest = max(map(len, rows)) + extra
    return [row + [fill] * (longest - len(row)) for row in rows]


def test_greedy_is_the_runs_own(answers, translator):
    texts, scores = zip(*hypotheses_of_run(translator, 1), strict=True)
    assert answers["greedy"]["translation"] == list(texts)
    np.testing.assert_allclose(answers["greedy"]["score"], scores, atol=1e-4)


def test_every_beam_is_the_runs_own(answers, translator):
    expected = translator.n_best(SENTENCES)
    beams = zip(answers["beam"]["translations"], answers["beam"]["scores"], strict=True)
    for (texts, scores), hypotheses in zip(beams, expected, strict=True):
        used = [beam for beam, score in enumerate(scores) if score > -1e8]
        assert [texts[beam] for beam in used] == [hypothesis.text for hypothesis in hypotheses]
        np.testing.assert_allclose(
            [scores[p] for p in used], [h.score for h in hypotheses], atol=1e-4
        )


def test_continuations_of_prefixes_are_the_runs_own(answers, translator):
    expected = translator.continuations(translator.encode(SENTENCES), PREFIXES)
    assert answers["prefixes"]["translations"] == [
        [continuation.text for continuation in row] + [""] * (CONTINUATIONS - len(row))
        for row in expected
    ]
    for row, probabilities in zip(expected, answers["prefixes"]["probabilities"], strict=True):
        scores = [continuation.score for continuation in row]
        np.testing.assert_allclose(probabilities[: len(row)], np.exp(scores), atol=1e-4)


def test_ids_are_those_of_the_text(answers, translator):
    outputs = answers["ids"]
    texts = translator.tokenizers.target.decode(outputs["ids"])
    assert texts == answers["greedy"]["translation"]
    np.testing.assert_allclose(outputs["score"], answers["greedy"]["score"], atol=1e-4)
    for row, length in zip(outputs["ids"], outputs["lengths"], strict=True):
        assert all(row[:length])
        assert not any(row[length:])
        assert END_ID not in row[: max(0, length - 1)]
    assert max(outputs["lengths"]) == len(outputs["ids"][0])


def test_alignments_and_probabilities_are_those_of_the_model(answers, translator):
    """The maps come from the layers one by one, and the probabilities from NumPy's softmax."""
    outputs = answers["aligned"]
    assert outputs["translation"] == answers["greedy"]["translation"]
    rows = [[number for number in row if number] for row in answers["ids"]["ids"]]
    for n, (source, target) in enumerate(zip(SENTENCES, rows, strict=True)):
        pieces = translator.tokenizers.target.pieces(target)
        assert outputs["pieces"][n] == pieces + [""] * (len(outputs["pieces"][n]) - len(pieces))
        read = translator.encode([source]).ids[0]
        read = [*read, END_ID] if read else []
        assert [piece for piece in outputs["source_pieces"][n] if piece] == (
            translator.tokenizers.source.pieces(read)
        )
        if not read:
            assert outputs["confidence"][n] == 1
            continue
        ids = tf.constant([read]), tf.constant([[START_ID, *target[:-1]]])
        *_, weights = attention_weights(translator.model, *ids)
        weights = weights[0].numpy()[-2:][0].mean(axis=0)  # (T, S)
        found = outputs["source_index"][n][: len(target)]
        np.testing.assert_allclose(
            weights[np.arange(len(target)), found], weights.max(axis=1), atol=1e-4
        )
        for name, expected in (
            ("attention", weights.max(axis=1)),
            ("probability", token_probabilities(translator, ids, target)),
        ):
            np.testing.assert_allclose(outputs[name][n][: len(target)], expected, atol=1e-4)
            assert not any(outputs[name][n][len(target) :])
        confidence = expected.prod() ** (1 / len(target))
        assert outputs["confidence"][n] == pytest.approx(confidence, rel=1e-3)


def token_probabilities(translator, ids, target):
    """The calibrated probability of each target token, by NumPy's softmax."""
    logits = translator.model(dict(zip(("source", "target"), ids, strict=True)))[0].numpy()
    logits = logits / translator.temperature
    powers = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    return powers[np.arange(len(target)), target] / powers.sum(axis=1)


def test_the_engine_of_an_export_aligns_as_the_run_does(version, translator):
    translations = [translation.text for translation in hypotheses_of_run(translator, 1)]
    with open_engine(version) as engine:
        pairs = engine.aligned(SENTENCES, translations)
        assert engine.nearest_targets(SENTENCES, translations) == [
            pair.nearest_targets() for pair in pairs
        ]
    expected = translator.aligned(translator.encode(SENTENCES), translations)
    for pair, of_run in zip(pairs, expected, strict=True):
        assert pair[:2] == of_run[:2]
        assert pair.links() == of_run.links()
        np.testing.assert_allclose(pair.attention, of_run.attention, atol=1e-5)
        np.testing.assert_allclose(pair.log_probs, of_run.log_probs, atol=1e-3)


def test_what_stands_past_the_lengths_does_not_matter(answers):
    assert answers["ids and junk"] == answers["ids"]


def test_a_translation_is_the_same_alone_and_in_another_order(answers):
    greedy = answers["greedy"]["translation"]
    assert [answers[f"alone {n}"]["translation"][0] for n in range(len(SENTENCES))] == greedy
    assert answers["reversed"]["translation"][::-1] == greedy
    assert answers["reversed beam"]["translations"][::-1] == answers["beam"]["translations"]


def test_scores_are_the_log_probabilities_of_teacher_forcing(answers, translator):
    texts = [translation.text for translation in hypotheses_of_run(translator, 1)]
    scores = answers["scores"]
    rows = zip(SENTENCES, texts, scores["log_prob"], scores["num_tokens"], strict=True)
    for source, target, log_prob, num_tokens in rows:
        if not source.strip():
            assert (log_prob, num_tokens) == (0.0, 0)
            continue
        expected = target_log_probs(translator, source, target)
        np.testing.assert_allclose(log_prob, expected.sum(), rtol=1e-4, atol=1e-4)
        assert num_tokens == len(expected)


def test_scores_of_nothing_and_of_too_much(answers, translator):
    nothing, empty, long = zip(
        answers["odd scores"]["log_prob"], answers["odd scores"]["num_tokens"], strict=True
    )
    assert nothing == (0.0, 0)
    assert empty[0] < 0
    assert empty[1] == 1
    assert long[0] < 0
    assert long[1] == translator.max_length


def test_blank_text_is_translated_by_nothing(answers, translator):
    assert answers["blank"] == {"translation": ["", ""], "score": [0.0, 0.0]}
    assert answers["blank aligned"]["pieces"] == [[], []]
    assert answers["blank aligned"]["confidence"] == [1.0, 1.0]
    assert answers["blank beam"]["translations"] == [[""] * translator.decoding.beam_size] * 2
    assert [scores[0] for scores in answers["blank beam"]["scores"]] == [0.0, 0.0]
    assert all(score < -1e8 for scores in answers["blank beam"]["scores"] for score in scores[1:])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_translated_like_any_other(answers, name):
    (score,) = answers[f"hostile {name}"]["score"]
    assert score <= 0
    assert np.isfinite(score)
    if name in ("nothing", "blank"):
        assert answers[f"hostile {name}"]["translation"] == [""]
    assert len(answers["hostile beam"]["scores"]) == len(HOSTILE)


def test_text_beyond_what_the_model_takes_is_cut_as_the_run_cuts_it(answers, translator):
    expected = translator.translate([HOSTILE["words"].decode()], beam_size=1)
    assert answers["hostile words"]["translation"] == expected


def test_cpp_loader_translates_the_same(version, translator, cpp_loader):
    """TensorFlow Serving's loader, compiled against the installed wheel."""
    sentences = [sentence for sentence in SENTENCES if "\0" not in sentence]
    greedy = cpp_loader(version, "serving_default", sentences)
    assert greedy == translator.translate(sentences, beam_size=1)
    beams = cpp_loader(version, "translate_beam", sentences)
    assert beams[:: translator.decoding.beam_size] == translator.translate(sentences)


def test_the_check_refuses_what_the_cpp_loader_refuses(translator, tmp_path):
    """A tf.Module that contains a Keras model can be loaded only by TensorFlow 2."""
    module = tf.Module()
    module.model = translator.model
    signature = tf.function(
        lambda ids: {"memory": translator.model.encode(ids)[0]},
        input_signature=[tf.TensorSpec((None, None), tf.int32)],
    )
    tf.saved_model.save(module, str(tmp_path), signatures={"encode": signature})
    assert (
        tf.saved_model.load(str(tmp_path)).signatures["encode"](ids=tf.constant([[4, 3]]))
        is not None
    )
    session = Session(tmp_path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="ReadVariableOp"):
        session.run("encode", {"ids": np.array([[4, 3]], np.int32)})


def test_manifest_says_what_was_written(version, translator, tiny_run):
    manifest = json.loads((version / "manifest.json").read_text())
    files = {
        str(path.relative_to(version)): path.stat().st_size
        for path in version.rglob("*")
        if path.is_file()
    }
    assert manifest["files"] == {
        name: size for name, size in files.items() if name not in ("manifest.json", "README.md")
    }
    assert manifest["digests"] == {
        name: hashlib.sha256((version / name).read_bytes()).hexdigest()
        for name in manifest["files"]
    }
    digest = hashlib.sha256((version / "tokenizer.model").read_bytes()).hexdigest()
    assert manifest["tokenizers"] == {"tokenizer.model": digest}
    settings = json.loads((tiny_run / "config.json").read_text())
    longest = {"max_length": settings["data"]["max_length"]}
    form = translator.model.dialect.search()
    assert manifest["decoding"] == settings["decoding"] | longest | form
    assert manifest["versions"]["tensorflow"] == tf.__version__
    assert (manifest["format"], manifest["dtype"]) == ("saved_model", "float32")
    assert manifest["parameters"] == translator.model.count_params()
    weights = hashlib.sha256((tiny_run / "best.weights.h5").read_bytes()).hexdigest()
    result = json.loads((tiny_run / "result.json").read_text())
    measured = {name: result[name] for name in ("val_loss", "val_bleu", "val_chrf")}
    assert manifest["run"] == {"digest": weights} | measured
    assert manifest["calibration"] == result["calibration"] == translator.calibration._asdict()
    assert manifest["search"] == "greedy"  # of serving_default
    for measured in manifest["parity"].values():
        assert measured["identical"] == measured["sentences"] >= 30
        assert measured["largest_score_difference"] < 1e-3


def test_the_model_card_says_what_the_manifest_does(version):
    manifest = json.loads((version / "manifest.json").read_text())
    card = (version / "README.md").read_text()
    assert card == model_card(manifest)
    assert card.startswith("# Translation, one language to another\n")
    named = manifest | {"languages": ["en", "de"], "licence": "apache-2.0"}
    assert model_card(named).startswith("# Translation, en to de\n")
    assert "Licence: apache-2.0." in model_card(named)
    assert manifest["licence"] == NO_LICENCE
    assert f"{manifest['parameters']:,} parameters" in card
    assert manifest["run"]["digest"] in card
    assert f"val_bleu={manifest['run']['val_bleu']}" in card
    for name, digest in manifest["digests"].items():
        assert f"- `{name}`: {manifest['files'][name]:,} bytes, SHA-256 {digest}\n" in card
    for name in manifest["signatures"]:
        assert f"- `{name}`: " in card.partition("## Checked")[0]
        assert f"- `{name}`: " in card.partition("## Checked")[2]
    assert f"up to {manifest['decoding']['max_length']} tokens" in card


def test_only_examples_that_the_model_gets_right_are_offered():
    """The page of a run that learned other text must not offer nonsense."""
    answers = {"Good morning.": "Guten Morgen.", "Thank you.": "Löffel luden."}
    scripted = SimpleNamespace(
        encode=lambda sentences: sentences,
        translate=lambda sentences: [answers[sentence] for sentence in sentences],
    )
    known = {"Good morning.": "Guten Morgen.", "Thank you.": "Danke."}
    assert right_examples(scripted, known) == ["Good morning."]
    assert right_examples(scripted, {}) == []


def test_the_phrasebooks_short_examples_are_in_its_text():
    (long,) = (source for source in EXAMPLES["phrasebook:valid"] if len(source.split()) > 6)
    text = dict(read_pairs("phrasebook:train"))
    for source, target in EXAMPLES["phrasebook:valid"].items():
        assert source == long or text[source] == target


def test_signatures_have_the_batch_first_and_nothing_else_fixed(version, translator):
    string, number = ({"dtype": dtype, "shape": [None]} for dtype in ("string", "int32"))
    real, ids = {"dtype": "float32", "shape": [None]}, {"dtype": "int32", "shape": [None, None]}
    pieces, weights = ({"dtype": dtype, "shape": [None, None]} for dtype in ("string", "float32"))
    beam = {
        name: {"dtype": dtype, "shape": [None, translator.decoding.beam_size]}
        for name, dtype in (("translations", "string"), ("scores", "float32"))
    }
    assert writer.signatures(version) == {
        "score": {
            "inputs": {"source": string, "target": string},
            "outputs": {"log_prob": real, "num_tokens": number},
        },
        "serving_default": {
            "inputs": {"text": string},
            "outputs": {"translation": string, "score": real},
        },
        "translate_beam": {"inputs": {"text": string}, "outputs": beam},
        "translate_prefix": {
            "inputs": {"text": string, "prefix": string},
            "outputs": {
                "translations": {"dtype": "string", "shape": [None, CONTINUATIONS]},
                "probabilities": {"dtype": "float32", "shape": [None, CONTINUATIONS]},
            },
        },
        "translate_aligned": {
            "inputs": {"text": string},
            "outputs": {
                "translation": string,
                "score": real,
                "confidence": real,
                "pieces": pieces,
                "source_pieces": pieces,
                "source_index": ids,
                "attention": weights,
                "probability": weights,
            },
        },
        "translate_ids": {
            "inputs": {"ids": ids, "lengths": number},
            "outputs": {"ids": ids, "lengths": number, "score": real},
        },
        "align_ids": {
            "inputs": {
                **{"ids": ids, "lengths": number},
                **{"target_ids": ids, "target_lengths": number},
            },
            "outputs": {
                "log_probs": weights,
                "attention": {"dtype": "float32", "shape": [None, None, None]},
            },
        },
    }


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


def test_a_prefix_that_the_vocabulary_lacks_is_refused(signatures):
    texts = [tf.constant(["The dog.", "The cat."]), tf.constant(["Der", "Die Ж"])]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a prefix has a character that the"):
        signatures["translate_prefix"](text=texts[0], prefix=texts[1])


def test_no_sentence_gives_no_answer(signatures):
    check_empty_batches(signatures)


def test_the_warm_up_requests_are_such_as_tensorflow_serving_reads_and_can_be_run(
    version, signatures
):
    """tensorflow-serving-api parses the requests.

    A failing request would prevent the server from loading the model.
    """
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    warmed_up = []
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        warmed_up.append(request.model_spec.signature_name)
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()
        }
        outputs = signatures[request.model_spec.signature_name](**inputs)
        assert all(len(values) == 1 for values in outputs.values())
    assert sorted(warmed_up) == sorted(writer.signatures(version))


def test_readme_names_every_signature_and_key(version):
    readme = (Path(__file__).parents[2] / "export" / "README.md").read_text(encoding="utf-8")
    manifest = json.loads((version / "manifest.json").read_text())
    signatures = manifest["signatures"]
    names = [
        *manifest,
        *signatures,
        *(n for s in signatures.values() for tensors in s.values() for n in tensors),
    ]
    assert [name for name in names if f"`{name}`" not in readme] == []


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_two_bytes_a_weight_are_measured_and_half_the_size(tiny_run, version, tmp_path, dtype):
    two_bytes = export_model(tiny_run, tmp_path, dtype=dtype, samples=SENTENCES)
    manifest = json.loads((two_bytes / "manifest.json").read_text())
    assert manifest["dtype"] == dtype
    for measured in manifest["parity"].values():
        assert measured["sentences"] in (len(SENTENCES), len(list(filter(str.strip, SENTENCES))))
        assert measured["identical"] > len(SENTENCES) / 4
    weights = "variables/variables.data-00000-of-00001"
    assert (two_bytes / weights).stat().st_size < 0.6 * (version / weights).stat().st_size


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_no_step_of_half_precision_converts_weights(tmp_path, dtype):
    """Only activations are converted, for the sums of a normalisation."""
    tokenizer = letters_tokenizer()
    size = tokenizer.vocab_size
    model = tfformer.Transformer(size, size, 1, d_model=8, num_heads=2, d_ff=8, norm="pre")
    (tmp_path / "export").mkdir()
    writer.write(tmp_path / "export", tfformer.Translator(model, tokenizer), dtype, with_text=False)
    signature = tf.saved_model.load(str(tmp_path / "export")).signatures["translate_ids"]
    converted = set()
    for function in signature.graph.as_graph_def().library.function:
        operations = {node.name: node.op for node in function.node_def}
        inputs = [node.input[0].split(":")[0] for node in function.node_def if node.op == "Cast"]
        converted |= {operations.get(name) for name in inputs}
    assert "AddV2" in converted  # a residual, or the result of a normalisation
    assert "ReadVariableOp" not in converted


@pytest.mark.nightly
def test_float16_begins_with_the_token_of_a_language(tmp_path):
    """A logit of -1e9 is infinite in float16; every beam must still begin with the token."""
    run = import_model(checkpoint("M2M", tmp_path), tmp_path / "run", **languages("M2M"))
    version = export_model(run, tmp_path / "models", dtype="float16", max_length=48)
    for measured in json.loads((version / "manifest.json").read_text())["parity"].values():
        assert measured["identical"] > measured["sentences"] / 2


def test_an_unfinished_run_is_not_exported(tiny_run, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    for format in ("saved_model", "ctranslate2", "hugging_face", "marian"):
        with pytest.raises(ValueError, match=r"not finished: it has no result\.json; continue"):
            export_model(tmp_path / "run", tmp_path / "models", format)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float64"}, "dtype='float64' is not known; choose one of 'float32'"),
        ({"beam_size": 0}, "beam_size=0 must be at least 1"),
        ({"length_penalty": -1.0}, "length_penalty=-1.0 must be at least 0"),
        ({"max_length": 1}, "max_length=1 must be at least 2"),
    ],
)
def test_settings_are_checked_before_anything_is_written(tiny_run, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        export_model(tiny_run, tmp_path / "models", **arguments)
    assert not (tmp_path / "models").exists()
