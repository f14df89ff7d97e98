"""A SavedModel whose source and target have a vocabulary each, in every loader that users have."""

import itertools

import pytest
from support.marian_checkpoints import checkpoint
from support.untrained import SHAPE, scrambled

from tfformer.checkpoints.import_model import import_model
from tfformer.data.sources import read_pairs
from tfformer.data.tokenizers import Tokenizer
from tfformer.export import parity, saved_model_requests, saved_model_writer
from tfformer.export.tasks import TASKS
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Tokenizers

pytestmark = pytest.mark.slow  # the SavedModel is read in another process

PAIRS = list(itertools.islice(read_pairs("phrasebook:train"), 400))
SENTENCES = [source for source, _ in PAIRS[:24]]
KINDS = {
    "unigram": {},
    "bpe": {"model_type": "bpe"},
    "nfkc": {"normalization": "nfkc"},
    "identity": {"normalization": "identity"},
    "byte_fallback": {"byte_fallback": True},
}


def trained_on(pairs, **settings) -> Tokenizers:
    sources, targets = zip(*pairs, strict=True)
    return Tokenizers(
        Tokenizer.train(sources, 450, **settings), Tokenizer.train(targets, 420, **settings)
    )


def translator_of(tokenizers: Tokenizers) -> Translator:
    model = scrambled(Transformer(450, 420, **SHAPE))
    return Translator(model, tokenizers.source, tokenizers.target, beam_size=3, max_length=40)


def assert_same_in_every_loader(translator, folder):
    task = TASKS["encoder-decoder"]
    saved_model_writer.write(folder, translator, task, with_text=True)
    requests = task.requests(translator, SENTENCES)
    by_loader = saved_model_requests.run(folder, requests, with_text=True)
    measured = parity.compare(
        lambda name, beam_size: task.texts(translator, name, SENTENCES, beam_size), *by_loader
    )
    assert set(measured) == {"translate_ids", "serving_default", "translate_beam", "score"}
    parity.check(measured)


@pytest.mark.parametrize("kind", KINDS)
def test_each_language_is_cut_and_joined_by_its_own_vocabulary(kind, tmp_path):
    translator = translator_of(trained_on(PAIRS, **KINDS[kind]))
    assert len(set(translator.translate(SENTENCES))) > 1
    assert_same_in_every_loader(translator, tmp_path)


def test_the_cpp_loader_agrees(cpp_loader, tmp_path):
    translator = translator_of(trained_on(PAIRS, **KINDS["bpe"]))
    saved_model_writer.write(tmp_path, translator, TASKS["encoder-decoder"], with_text=True)
    greedy = translator.translate(SENTENCES, beam_size=1)
    assert cpp_loader(tmp_path, "serving_default", SENTENCES) == greedy


def test_an_imported_checkpoint_with_two_models_scores_targets_by_the_second(tmp_path):
    import_model(checkpoint("A", tmp_path), tmp_path / "run")
    translator = Translator.load(tmp_path / "run")
    assert_same_in_every_loader(translator, tmp_path / "saved")
