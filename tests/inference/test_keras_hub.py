"""Compare translators made from keras-hub's models with keras-hub."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support.documentation import block_with
from support.nightly import sampled

import tfformer
from tfformer.data.encoding import pad
from tfformer.data.imported_tokenizers import load_tokenizer
from tfformer.engines import open_engine
from tfformer.export.saved_model import writer
from tfformer.inference.beam_search import length_penalty
from tfformer.inference.graphs import translate_ids
from tfformer.inference.search import Hypotheses
from tfformer.special_ids import END_ID, PAD_ID

keras_hub = pytest.importorskip("keras_hub")
from support.keras_hub_models import LENGTH, bart, greedy_pieces, t5, texts  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:Layer .* was passed an input with a mask"  # by keras-hub's own T5
)
FAMILIES = {"t5": t5, "bart": bart}


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request):
    """A keras-hub model, and its translator."""
    lm = FAMILIES[request.param]()
    return lm, tfformer.from_keras_hub(lm, beam_size=3, max_length=LENGTH)


def searched(translator, sentences: list[str], beam_size: int) -> Hypotheses:
    """Return the hypotheses of one batch, found by the graph that `translate` uses."""
    graph = translator._graph(
        translate_ids,
        max_length=translator.max_length,
        decoding=translator.decoding.replace(beam_size=beam_size),
        first_token=translator.tokenizers.target.prefix_id,
    )
    source = pad([[*ids, END_ID] for ids in translator.encode(sentences).ids])
    return Hypotheses(*(tensor.numpy() for tensor in graph(source)))


def check_greedy(lm, translator, sentences: list[str]) -> None:
    expected = greedy_pieces(lm, sentences)
    hypotheses = searched(translator, sentences, beam_size=1)
    tokenizer = translator.tokenizers.target
    rows = zip(hypotheses.ids[:, 0], hypotheses.lengths[:, 0], strict=True)
    assert [tokenizer.pieces(ids[:length]) for ids, length in rows] == expected
    assert len(set(map(tuple, expected))) > len(sentences) / 20  # they depend on their sources


def test_greedy_search_finds_the_tokens_of_keras_hub(pair):
    check_greedy(*pair, texts()[:40])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("new", [t5, bart, lambda seed: t5(seed, tie_embedding_weights=True)])
def test_greedy_search_finds_the_tokens_of_keras_hub_for_500_sentences(new, seed):
    lm = new(seed)
    translator = tfformer.from_keras_hub(lm, max_length=LENGTH)
    check_greedy(lm, translator, texts()[:500])


def test_attention_and_alignments_are_refused(pair):
    _, translator = pair
    message = "a model from keras-hub does not return its attention; use another"
    with pytest.raises(ValueError, match=message):
        tfformer.attention(translator, texts()[0])
    with pytest.raises(ValueError, match=message):
        tfformer.alignments(translator, texts()[:1], texts()[:1])


def test_a_translation_is_the_same_alone_and_in_any_batch(pair):
    _, translator = pair
    sentences = texts()[:6]
    together = translator.n_best(sentences)
    for sentence, batched in zip(sentences, together, strict=True):
        (alone,) = translator.n_best([sentence])
        assert [h.text for h in alone] == [h.text for h in batched]
        np.testing.assert_allclose([h.score for h in alone], [h.score for h in batched], 1e-4)
    assert translator.translate([""]) == [""]


def test_the_score_of_a_beam_is_that_of_the_whole_forward_pass_of_keras_hub(pair):
    lm, translator = pair
    tokenizer, ours = lm.preprocessor.tokenizer, translator.tokenizers.target
    sentence = texts()[0]
    inputs = lm.preprocessor.generate_preprocess([sentence], sequence_length=LENGTH + 1)
    prompt = int(np.sum(inputs["decoder_padding_mask"]))
    beam = searched(translator, [sentence], beam_size=3)
    for row, length, score in zip(beam.ids[0], beam.lengths[0], beam.scores[0], strict=True):
        theirs = [tokenizer.token_to_id(piece) for piece in ours.pieces(row[:length])]
        ids = np.array(inputs["decoder_token_ids"])
        ids[0, 1 : 1 + len(theirs)] = theirs
        mask = np.arange(LENGTH + 1)[np.newaxis] < 1 + len(theirs)
        both = inputs | {"decoder_token_ids": ids, "decoder_padding_mask": mask}
        log_probs = tf.nn.log_softmax(lm(tf.nest.map_structure(tf.constant, both))[0])
        generated = range(prompt - 1, len(theirs))
        expected = sum(float(log_probs[step, theirs[step]]) for step in generated)
        expected /= float(length_penalty(length, translator.decoding.length_penalty))
        assert score == pytest.approx(expected, abs=1e-3)


@pytest.mark.nightly
def test_samples_follow_the_seed(pair):
    _, translator = pair
    first, again, of_seed_2 = (translator.sample(texts()[:4], seed=seed) for seed in (1, 1, 2))
    assert first == again != of_seed_2


@pytest.mark.parametrize("pair", sampled(FAMILIES, by_day=["bart"]), indirect=True)
def test_an_instruction_stands_before_each_source(pair):
    lm, plain = pair
    german = tfformer.from_keras_hub(lm, max_length=LENGTH, instruction="To German: ")
    assert german.encode(["A cat."]).ids == plain.encode(["To German: A cat."]).ids
    assert german.encode([" "]).ids == [[]]
    assert german.encode_targets(["Ein x."]).ids == plain.encode_targets(["Ein x."]).ids


def test_the_name_of_a_special_token_is_text(pair):
    _, translator = pair
    [ids] = translator.encode(["a </s> <pad> b"]).ids
    assert PAD_ID not in ids
    assert END_ID not in ids


@pytest.mark.nightly
def test_the_example_of_the_page_writes_artifacts_that_take_text(tmp_path, monkeypatch):
    """A small model replaces the one that the example downloads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keras_hub.models.Seq2SeqLM, "from_preset", lambda name: t5())
    names = {}
    exec(block_with("docs/keras_hub.md", "python", "from_preset").text, names)
    expected = names["translator"].translate(texts()[:3], beam_size=1)
    for version in ("models/t5/1", "models/t5/2"):
        with open_engine(version) as engine:
            assert engine.translate(texts()[:3], beam_size=1) == expected
    assert b"Xla" not in Path("models/t5/1/saved_model.pb").read_bytes()


@pytest.mark.parametrize("pair", ["t5"], indirect=True)
def test_an_export_contains_all_weights_that_share_a_path(pair, tmp_path):
    lm, translator = pair
    assert len({weight.path for weight in lm.weights}) < len(lm.weights)
    writer.write(tmp_path, translator, "float32", with_text=False)
    rows = translator.encode(texts()[:3]).ids
    outputs = tf.saved_model.load(str(tmp_path)).signatures["translate_ids"](
        ids=tf.constant(pad(rows)), lengths=tf.constant([len(ids) for ids in rows])
    )
    translations = translator.tokenizers.target.decode(outputs["ids"].numpy())
    assert translations == translator.translate(texts()[:3], beam_size=1)


@pytest.mark.nightly
def test_artifacts_of_bart_take_ids(tmp_path):
    translator = tfformer.from_keras_hub(bart(), max_length=LENGTH)
    with pytest.raises(ValueError, match="with_text=False"):
        translator.export(tmp_path)
    version = translator.export(tmp_path, with_text=False)
    with open_engine(translator.export(tmp_path, "litert")) as engine:
        assert engine.translate(texts()[:3]) == translator.translate(texts()[:3], beam_size=1)
    ids = translator.encode(texts()[:1]).ids
    outputs = tf.saved_model.load(str(version)).signatures["translate_ids"](
        ids=tf.constant(ids), lengths=tf.constant([len(ids[0])])
    )
    translations = translator.tokenizers.target.decode(outputs["ids"].numpy())
    assert translations == translator.translate(texts()[:1], beam_size=1)


@pytest.mark.parametrize("name", ["T5GemmaSeq2SeqLM", "T5Gemma2Seq2SeqLM", "EdRecSeq2SeqLM"])
def test_a_model_with_another_interface_is_refused_by_name(name):
    task = getattr(keras_hub.models, name)
    with pytest.raises(ValueError, match=rf"{name}\.call_\w+ is missing or takes different"):
        tfformer.from_keras_hub(object.__new__(task))


def test_what_is_no_model_or_has_too_few_positions_is_refused():
    with pytest.raises(ValueError, match=r"'t5' is not a keras_hub\.models\.Seq2SeqLM"):
        tfformer.from_keras_hub("t5")
    lm = bart()
    with pytest.raises(ValueError, match="max_length=21 exceeds the 20 positions of Bart"):
        tfformer.from_keras_hub(lm, max_length=21)
    lm.preprocessor = None
    with pytest.raises(ValueError, match="no preprocessor"):
        tfformer.from_keras_hub(lm)


def test_a_translator_of_keras_hub_is_no_run_and_no_checkpoint(pair, tmp_path):
    _, translator = pair
    with pytest.raises(ValueError, match="choose saved_model or litert"):
        translator.export(tmp_path, "ctranslate2")
    with pytest.raises(ValueError, match="save_to_preset"):
        translator.save(tmp_path / "run")


def test_a_damaged_byte_pair_vocabulary_is_refused_by_its_path(tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_text('{"model"')
    with pytest.raises(ValueError, match=r"tokenizer\.model: not a vocabulary of the library"):
        load_tokenizer(path)


def test_without_keras_hub_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '\.\[keras-hub\]'"):
        tfformer.from_keras_hub(None)
