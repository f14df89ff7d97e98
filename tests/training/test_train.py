"""Train a small model of counting: learning, storing, resuming, stopping and refusing."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from support.number_corpus import write_number_corpus
from support.numpy_layers import log_softmax, smoothed_cross_entropy
from support.resume_state import state_of

from tfformer.config import AugmentConfig, Config
from tfformer.data import text_cache
from tfformer.data.batches import Batch
from tfformer.explain.attention_maps import attention, attention_weights
from tfformer.inference import evaluation, text_model
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.model import data_parallel
from tfformer.run_directory import Run
from tfformer.storage.whole_files import digest_of_values
from tfformer.training import callbacks, validation
from tfformer.training import train as training
from tfformer.training.callbacks import TrainingDiverged
from tfformer.training.early_stopping import best_epoch, validations_since_best
from tfformer.training.multi_worker import Workers
from tfformer.training.resume_or_initialise import Resumed, Start
from tfformer.training.train import train
from tfformer.training.training_data import TrainingData, train_tokenizers

EPOCH_STEPS = 7  # of `full_config`
WEIGHTS = "best.weights.h5"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """120 training lines and 20 validation lines of English numbers, in English and German."""
    folder = tmp_path_factory.mktemp("corpus")
    write_number_corpus(folder, {"train": 120, "valid": 20}, greatest=10)
    return folder


def config_for(corpus: Path, **training_values) -> Config:
    values = {"epochs": 2, "warmup_steps": 20, "learning_rate": 0.005, "schedule": "inverse_sqrt"}
    values |= {"dtype": "float32", "jit_compile": False}
    return Config.from_dict(
        {
            "model": {"num_layers": 1, "d_model": 32, "num_heads": 2, "d_ff": 64},
            "tokenizer": {"vocab_size": 40},
            "data": {
                "train": ["train.en", "train.de"],
                "valid": ["valid.en", "valid.de"],
                "folder": str(corpus),
                "max_length": 40,
                "batch_tokens": 200,
            },
            "training": values | training_values,
        }
    )


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def bits_per_byte(run: Path) -> list[float]:
    return [epoch["val_bits_per_byte"] for epoch in Run.open(run).history()]


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def weights_of_steps() -> list[list[np.ndarray]]:
    """The trainable weights of `trained` after each step."""
    return []


@pytest.fixture(scope="module")
def trained(corpus, weights_of_steps, tmp_path_factory) -> Path:
    """An uninterrupted run of three epochs, and beside it a copy from within the second, `killed`.

    Everything with a state is enabled.
    """
    run = tmp_path_factory.mktemp("runs") / "whole"

    def remember_and_copy(callback):
        weights_of_steps.append([np.array(one) for one in callback.model.trainable_variables])
        if callback.counter.step == EPOCH_STEPS + 3:
            shutil.copytree(run, run.with_name("killed"))

    with pytest.MonkeyPatch.context() as patch:
        after_steps(patch, remember_and_copy)
        train(full_config(corpus), run, report=silent)
    return run


@pytest.fixture
def killed(trained, tmp_path) -> Path:
    """A copy of the run that ended within the second epoch."""
    return Path(shutil.copytree(trained.with_name("killed"), tmp_path / "run"))


@pytest.fixture
def eagerly() -> Iterator[None]:
    """Run functions as they are, because tracing takes longer than a few steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def full_config(corpus: Path, **values) -> Config:
    """A recipe whose epochs end within a pass over the text."""
    stateful = {
        "epochs": 3,
        "epoch_steps": EPOCH_STEPS,
        "ema_momentum": 0.9,
        "accumulate_steps": 2,
        "clip_norm": 1.0,
    }
    config = config_for(corpus, **stateful | values)
    augment = AugmentConfig(upper=0.2, typos=0.2)
    data = config.data.replace(augment=augment)
    settings = config.tokenizer.replace(vocab_size=60)
    return config.replace(data=data, tokenizer=settings)


class Kill(BaseException):
    """Represents the end of the process; no handler catches it."""


def after_steps(patch: pytest.MonkeyPatch, act: Callable[[callbacks.StopOnNaN], None]) -> None:
    """Make each training call `act` after every step."""
    original = callbacks.StopOnNaN.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        original(self, batch, logs)
        act(self)

    patch.setattr(callbacks.StopOnNaN, "on_train_batch_end", on_train_batch_end)


def at_step(
    patch: pytest.MonkeyPatch, step: int, act: Callable[[callbacks.StopOnNaN], None]
) -> None:
    """Make each training call `act` after `step` steps."""
    after_steps(patch, lambda callback: act(callback) if callback.counter.step == step else None)


def model_before_the_first_step(config: Config, run: Path, **start) -> keras.Model:
    """Return the model with which a training begins, and end the training."""
    models = []

    def fit(model, *_):
        models.append(model)
        raise Kill

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_fit", fit)
        with pytest.raises(Kill):
            train(config, run, **{"report": silent} | start)
    return models[0]


def test_a_training_prints_and_stores_the_settings_that_it_chose(corpus, tmp_path):
    values, lines = config_for(corpus).to_dict(), []
    del values["training"]["dtype"], values["training"]["jit_compile"]
    del values["data"]["batch_tokens"]
    config, run = Config.from_dict(values), tmp_path / "run"
    model_before_the_first_step(config, run, report=lines.append)
    assert lines[0].endswith(": float32, not compiled, 4,096 tokens per batch, 1 shard")
    model_before_the_first_step(config, run, resume=True)
    stored = Run.open(run).config
    assert (stored.training.dtype, stored.training.jit_compile) == ("float32", False)
    assert stored.data.batch_tokens == 4096


def test_a_log_has_a_line_a_minute(monkeypatch):
    clock = iter([0.0, 30.0, 60.0, 90.0, 121.0])
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: next(clock))
    lines = []
    callback = callbacks.LinePerMinute(lines.append)
    callback.set_params({"steps": 1200})
    callback.on_epoch_begin(2)
    for batch in range(4):
        callback.on_train_batch_end(batch, {"loss": 4 - batch})
    assert lines == [
        "epoch 3, step 2 of 1,200: loss 3.0000, 599 min left",
        "epoch 3, step 4 of 1,200: loss 1.0000, 603 min left",
    ]


@pytest.mark.nightly
def test_a_killed_run_has_the_losses_and_weights_of_an_uninterrupted_one(corpus, trained, killed):
    """It is resumed within a pass over the text, with altered copies of the text.

    tests/faults kills the process, also before the first epoch.
    """
    config = full_config(corpus)
    assert TrainingData.read(config, Start(), silent).train.steps_per_epoch > EPOCH_STEPS
    assert len(losses(killed)) == 1
    train(config, killed, resume=True, report=silent)
    np.testing.assert_allclose(losses(killed), losses(trained), rtol=1e-6)
    resumed_state = state_of(killed)
    for name, expected in state_of(trained).items():
        np.testing.assert_allclose(resumed_state[name], expected, rtol=1e-5, atol=1e-6)
    kept = [Run.open(folder).load_model().get_weights() for folder in (killed, trained)]
    for resumed, expected in zip(*kept, strict=True):
        np.testing.assert_allclose(resumed, expected, rtol=1e-5, atol=1e-6)


def mixture(corpus: Path, cache: Path | None = None, **training_values) -> Config:
    """A recipe that takes two thirds of an epoch from one text, and averages the weights."""
    values = config_for(corpus, ema_momentum=0.8, **training_values).to_dict()
    texts = (["train.en", "train.de"], ["val*.en", "val*.de"])
    weighted = [
        {"text": text, "weight": weight} for text, weight in zip(texts, (2, 1), strict=True)
    ]
    values["data"] |= {"train": weighted, "cache": cache and str(cache)}
    return Config.from_dict(values)


@pytest.fixture(scope="module")
def mixed(corpus, tmp_path_factory) -> Path:
    """A run of two epochs."""
    run = tmp_path_factory.mktemp("mixed") / "run"
    train(mixture(corpus), run, report=silent)
    return run


@pytest.fixture(scope="module")
def first_epoch_in_cache(corpus, tmp_path_factory) -> Path:
    """A folder with a cache and a run that has ended after one epoch. Tests must copy it."""
    folder = tmp_path_factory.mktemp("cached")
    train(mixture(corpus, folder / "cache", epochs=1), folder / "run", report=silent)
    return folder


@pytest.fixture
def first_epoch(first_epoch_in_cache, tmp_path) -> Path:
    """A copy of the run that has ended after one epoch."""
    return Path(shutil.copytree(first_epoch_in_cache / "run", tmp_path / "run"))


def test_the_shares_of_a_mixture_are_reported(corpus):
    lines = []
    TrainingData.read(mixture(corpus), Start(), lines.append)
    assert "train: shares of an epoch 66.7%, 33.3%" in lines


@pytest.mark.nightly
def test_a_longer_recipe_resumes_a_finished_mixture_in_a_cache_as_one_in_memory(
    corpus, mixed, first_epoch, first_epoch_in_cache, monkeypatch
):
    monkeypatch.setattr(text_cache, "encode_corpora", None)  # nothing is encoded again
    longer = mixture(corpus, first_epoch_in_cache / "cache")
    assert train(longer, first_epoch, resume=True, report=silent)["epochs"] == 2
    assert Run.open(first_epoch).config.training.epochs == 2
    assert losses(first_epoch) == losses(mixed)
    np.testing.assert_equal(state_of(first_epoch), state_of(mixed))


@pytest.mark.nightly
def test_a_run_may_go_on_with_its_text_and_cache_elsewhere(corpus, mixed, first_epoch, tmp_path):
    moved = shutil.copytree(corpus, tmp_path / "moved")
    train(mixture(moved, tmp_path / "other"), first_epoch, resume=True, report=silent)
    assert losses(first_epoch) == losses(mixed)


@pytest.mark.nightly
def test_a_run_may_go_on_with_another_strategy_and_no_cache(corpus, mixed, first_epoch):
    """The update equals that on one device."""
    train(mixture(corpus, strategy="mirrored"), first_epoch, resume=True, report=silent)
    np.testing.assert_allclose(losses(first_epoch), losses(mixed), rtol=0.01)


def test_another_recipe_does_not_resume_a_run(corpus, trained):
    with pytest.raises(ValueError, match=r"--resume cannot change training.seed from 1 to 2"):
        train(full_config(corpus, seed=2), trained, resume=True, report=silent)


@pytest.mark.nightly
def test_another_seed_gives_another_run(corpus, mixed, tmp_path):
    train(mixture(corpus, seed=2, epochs=1), tmp_path / "other", report=silent)
    assert not np.allclose(losses(tmp_path / "other"), losses(mixed)[:1], rtol=1e-6)


def test_altered_copies_are_in_the_cache_with_their_shares(corpus, tmp_path):
    digests = []
    for share in (0.5, 0.6):
        values = config_for(corpus).to_dict()
        values["tokenizer"] |= {"vocab_size": 70}  # capitals, too
        for cache in (None, str(tmp_path / "cache")):
            values["data"] |= {"augment": {"upper": share}, "cache": cache}
            text = TrainingData.read(Config.from_dict(values), Start(), silent).train.text
            digests.append(text.digest)
    assert digests[0] == digests[1] != digests[2] == digests[3]


def one_batch_an_epoch(corpus: Path, **training_values) -> Config:
    """A recipe without dropout, whose losses do not depend on how they are computed."""
    linear = {"epochs": 4, "schedule": "linear", "warmup_steps": 1}
    values = config_for(corpus, **linear | training_values).to_dict()
    values["data"] |= {"batch_tokens": 3000}
    values["model"] |= {"dropout": 0.0}
    return Config.from_dict(values)


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory) -> Path:
    """A run of four steps without XLA or shards."""
    run = tmp_path_factory.mktemp("plain") / "run"
    train(one_batch_an_epoch(corpus), run, report=silent)
    return run


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "shards"), [({"jit_compile": True}, set()), ({"shards": 2}, {0, 1})]
)
def test_a_run_compiled_by_xla_or_in_shards_has_the_losses_of_a_plain_one(
    corpus, plain, tmp_path, monkeypatch, settings, shards
):
    """With XLA, the batches have more padding."""
    cut, shard = [], data_parallel._shard
    monkeypatch.setattr(
        data_parallel, "_shard", lambda *given: cut.append(given[1]) or shard(*given)
    )
    train(one_batch_an_epoch(corpus, **settings), tmp_path / "run", report=silent)
    assert set(cut) == shards
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(plain), rtol=1e-4)
    assert losses(plain)[-1] < losses(plain)[0]


def with_simcut(corpus: Path, **training_values) -> Config:
    values = {"simcut": {"alpha": 3.0, "cutoff": 0.3}, "schedule": "inverse_sqrt"}
    return one_batch_an_epoch(corpus, **values | training_values)


def model_and_first_batch(config: Config, run: Path) -> tuple[keras.Model, Batch]:
    """Return what the first step of a training gets."""
    batch = TrainingData.read(config, Start(), silent).train.batch(0)
    return model_before_the_first_step(config, run), batch


def test_the_first_loss_of_simcut_is_that_of_numpy(corpus, tmp_path):
    """Without dropout, and with the initial weights."""
    config = with_simcut(corpus)
    model, batch = model_and_first_batch(config, tmp_path / "run")
    inputs, labels, weights = batch
    original, cut = (np.array(logits, np.float64) for logits in model(inputs))
    alone = model({side: inputs[side] for side in ("source", "target")})
    np.testing.assert_allclose(original, alone, atol=1e-5)
    log_p, log_q = log_softmax(original), log_softmax(cut)
    nats = smoothed_cross_entropy(original, labels, 0.1)
    nats = nats + 3 * (np.exp(log_p) * (log_p - log_q)).sum(-1)
    expected = (nats * weights).sum() / weights.sum()
    assert model.train_on_batch(*batch) == pytest.approx(expected, rel=1e-5)


@pytest.fixture(scope="module")
def simcut(corpus, tmp_path_factory) -> Path:
    """A run of four steps with SimCut."""
    run = tmp_path_factory.mktemp("simcut") / "run"
    train(with_simcut(corpus), run, report=silent)
    return run


@pytest.mark.nightly
def test_a_run_with_simcut_resumes_to_the_bit(corpus, simcut, tmp_path):
    for epochs in (1, 4):
        config = with_simcut(corpus, epochs=epochs)
        train(config, tmp_path / "run", resume=epochs > 1, report=silent)
    assert losses(tmp_path / "run") == losses(simcut)
    np.testing.assert_equal(state_of(tmp_path / "run"), state_of(simcut))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "rtol"),
    [({"jit_compile": True}, 0.02), ({"shards": 3}, 1e-4), ({"dtype": "mixed_bfloat16"}, 0.02)],
)
def test_simcut_has_the_same_losses_with_xla_in_shards_and_in_half_precision(
    corpus, simcut, tmp_path, settings, rtol
):
    """With XLA, rows are packed, so other tokens are cut."""
    train(with_simcut(corpus, **settings), tmp_path / "run", report=silent)
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(simcut), rtol=rtol)


def guided(corpus: Path, **training_values) -> Config:
    values = {"guided_alignment": 0.5, "schedule": "inverse_sqrt"}
    return one_batch_an_epoch(corpus, **values | training_values)


def test_the_first_loss_of_guided_alignment_is_that_of_numpy(corpus, tmp_path):
    config = guided(corpus)
    model, batch = model_and_first_batch(config, tmp_path / "run")
    inputs, labels, weights = batch
    ids = [tf.constant(inputs[side]) for side in ("source", "target")]
    *_, weights_of_heads = attention_weights(model, *ids)
    head = np.array(weights_of_heads, np.float64)[:, -2:][:, 0, 0]  # (B, T, S)
    rows, positions = np.nonzero(inputs["links"])
    assert len(rows) > 0.3 * weights.sum()
    nats = smoothed_cross_entropy(np.array(model(ids)), labels, 0.1) * weights
    links = -np.log(head[rows, positions, inputs["links"][rows, positions] - 1])
    expected = (nats.sum() + 0.5 * links.sum()) / weights.sum()
    assert model.train_on_batch(*batch) == pytest.approx(expected, rel=1e-4)


def test_links_of_a_third_file_are_trained_in_place_of_learned_ones(corpus, tmp_path):
    source, target = ((corpus / f"train.{side}").read_text().splitlines() for side in ("en", "de"))
    (tmp_path / "links").write_text("0-0\n" * len(source))
    values = guided(corpus).to_dict()
    values["data"]["train"] = ["train.en", "train.de", str(tmp_path / "links")]
    read = []
    for cache in (None, str(tmp_path / "cache"), str(tmp_path / "cache")):
        values["data"]["cache"] = cache
        data = TrainingData.read(Config.from_dict(values), Start(), silent)
        read.append(data.train.links)
        assert read[-1].ids.tolist() == read[0].ids.tolist()
    tokenizer = data.tokenizers.source
    for texts, row in zip(zip(source, target, strict=True), read[0], strict=True):
        first, other = (len(tokenizer.encode([text.split()[0]])[0]) for text in texts)
        assert set(row[:other]) <= set(range(1, first + 1))
        assert set(row[other:]) == {len(tokenizer.encode([texts[0]])[0]) + 1}  # the end token
    assert not TrainingData.read(guided(corpus), Start(), silent).train.links.ids.all()


@pytest.mark.nightly
def test_a_run_with_guided_alignment_resumes_to_the_bit_and_knows_its_head(corpus, tmp_path):
    for epochs in (1, 3):
        train(guided(corpus, epochs=epochs), tmp_path / "run", resume=epochs > 1, report=silent)
    train(guided(corpus, epochs=3), tmp_path / "straight", report=silent)
    assert losses(tmp_path / "run") == losses(tmp_path / "straight")
    for settings, rtol in (({"shards": 3}, 1e-4), ({"jit_compile": True}, 1e-3)):
        other = tmp_path / "-".join(settings)
        train(guided(corpus, epochs=3, **settings), other, report=silent)
        np.testing.assert_allclose(losses(other), losses(tmp_path / "run"), rtol=rtol)
    translator = Translator.load(tmp_path / "run")
    source, target = (
        (corpus / f"valid.{side}").read_text().splitlines()[0] for side in ("en", "de")
    )
    [pair] = translator.aligned([source], [target])
    cross = attention(translator, source, target).cross
    np.testing.assert_allclose(pair.attention, cross.weights[-2:][0][0], atol=1e-5)


def test_a_run_directory_holds_what_its_contract_says(trained):
    assert {path.name for path in trained.iterdir()} == {
        *(
            "config.json",
            "tokenizer.model",
            "best.weights.h5",
            "resume.npz",
            "metrics.jsonl",
            "result.json",
        ),
        "tensorboard",
    }
    result, history = json.loads((trained / "result.json").read_text()), Run.open(trained).history()
    assert [epoch["epoch"] for epoch in history] == [1, 2, 3]
    assert result["steps"] == history[-1]["step"] == 3 * history[0]["step"]
    assert result["val_bleu"] == round(max(epoch["val_bleu"] for epoch in history), 4)


def test_the_validation_loss_is_that_of_the_kept_weights_in_numpy(corpus, trained):
    """The mean over real tokens, smoothed as in the recipe."""
    config, translator = Run.open(trained).config, Translator.load(trained)
    valid = TrainingData.read(config, Resumed(Run.open(trained)), silent).valid
    nats, tokens = 0.0, 0.0
    for step in range(valid.steps_per_epoch):
        inputs, labels, weights = valid.batch(step)
        smoothing = config.training.label_smoothing
        losses = smoothed_cross_entropy(translator.model(inputs), labels, smoothing)
        nats += (losses * weights).sum()
        tokens += weights.sum()
    kept = best_epoch(Run.open(trained).history())
    assert kept["val_loss"] == pytest.approx(nats / tokens, rel=1e-4)


def test_tensorboard_shows_bleu_and_sample_translations(corpus, trained):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def events(name: str) -> EventAccumulator:
        accumulator = EventAccumulator(str(trained / "tensorboard" / name))
        accumulator.Reload()
        return accumulator

    history = Run.open(trained).history()
    scalars = events("validation")
    bleus = [
        float(np.frombuffer(e.tensor_proto.tensor_content or b"", "f4")[0])
        for e in scalars.Tensors("epoch_bleu")
    ]
    np.testing.assert_allclose(bleus, [epoch["val_bleu"] for epoch in history], rtol=1e-5)
    sample = events("samples").Tensors("samples")[-1].tensor_proto.string_val
    sources = (corpus / "valid.en").read_text().splitlines()
    assert len(sample) == text_model.SAMPLES
    assert sample[0].decode().startswith(f"{sources[0]}\n\n> ")


def test_the_kept_weights_are_the_moving_average(trained, weights_of_steps):
    """NumPy recomputes it from the weights after each step; two steps make one update.

    The first update replaces the initial weights.
    """
    _, average, *later = weights_of_steps[: best_epoch(Run.open(trained).history())["step"]]
    assert len(later) > 4
    share = 0.9**0.5
    for weights in later:
        pairs = zip(average, weights, strict=True)
        average = [share * old + (1 - share) * new for old, new in pairs]
    kept = Translator.load(trained).model.trainable_variables
    for variable, expected in zip(kept, average, strict=True):
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though")  # tf.data always traces
@pytest.mark.parametrize(
    ("poisoned", "message"),
    [
        pytest.param(  # seen in the loss of the next step
            9, "the loss is nan at step 10; ", marks=pytest.mark.nightly
        ),
        (14, "a weight is NaN or infinite at step 14; "),  # by the last step of the epoch
    ],
)
def test_not_a_number_stops_with_the_step_and_keeps_the_last_good_checkpoint(
    corpus, killed, eagerly, monkeypatch, poisoned, message
):
    """The weights become NaN after a step of the second epoch."""

    def poison(callback):
        weights = callback.model.trainable_variables[0]
        weights.assign(weights * np.nan)

    at_step(monkeypatch, poisoned, poison)
    with pytest.raises(TrainingDiverged, match=message):
        train(full_config(corpus), killed, resume=True, report=silent)
    assert [epoch["step"] for epoch in Run.open(killed).history()] == [EPOCH_STEPS]
    assert all(np.isfinite(values).all() for values in state_of(killed).values())
    kept = Translator.load(killed).model
    assert all(np.isfinite(variable.numpy()).all() for variable in kept.trainable_variables)
    assert not (killed / "result.json").exists()


def test_a_resumed_run_counts_the_minutes_behind_it(monkeypatch):
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: 1000.0)
    new, resumed = (
        callbacks.HistoryAndResume(
            None, Config(), history, counter=callbacks.StepCounter(0), workers=Workers()
        )
        for history in ([], [{"minutes": 7.0}])
    )
    assert (new.start, resumed.start) == (1000.0, 1000.0 - 7 * 60)


def test_init_from_starts_with_the_other_runs_weights_and_vocabulary(corpus, trained, tmp_path):
    """Also if the recipe states another vocabulary, and after a kill before the first step."""
    values = config_for(corpus).to_dict()
    values["tokenizer"] = {"vocab_size": 30, "model_type": "bpe"}
    values["model"]["dropout"] = 0.3
    run = tmp_path / "tuned"
    begun = model_before_the_first_step(Config.from_dict(values), run, init_from=trained)
    tuned = Run.open(run)
    resumed = model_before_the_first_step(tuned.config, run, resume=True)
    before = Run.open(trained)
    assert tuned.tokenizers.digests == before.tokenizers.digests
    assert tuned.config.tokenizer == before.config.tokenizer
    assert tuned.config.model.dropout == 0.3
    for model in (begun, resumed):
        for new, old in zip(model.get_weights(), before.load_model().get_weights(), strict=True):
            np.testing.assert_array_equal(new, old)


def test_init_from_refuses_another_model(corpus, trained, tmp_path):
    values = full_config(corpus).to_dict()
    values["model"]["d_ff"] = 32
    with pytest.raises(ValueError, match=r"the recipe's model differs from the model of .*; omit"):
        train(Config.from_dict(values), tmp_path / "run", init_from=trained, report=silent)
    assert not (tmp_path / "run").exists()


def language_model(corpus: Path, **training_values) -> Config:
    """A recipe for a language model of the English side.

    It has the shape of `full_config`'s encoder.
    """
    values = full_config(corpus, epoch_steps=None, **training_values).to_dict()
    values["model"] |= {"architecture": "decoder"}
    values["data"] |= {"train": "train.en", "valid": "valid.en"}
    values["data"]["augment"] |= {"upper": 0.0, "typos": 0.0}
    values["tokenizer"] |= {"vocab_size": 25}
    return Config.from_dict(values)


@pytest.fixture(scope="module")
def language_runs(corpus, tmp_path_factory) -> Path:
    """A folder with a run, `whole`, and its copy from within the second epoch, `killed`."""
    folder, config = tmp_path_factory.mktemp("language"), language_model(corpus)
    within = TrainingData.read(config, Start(), silent).train.steps_per_epoch + 2
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, within, lambda _: shutil.copytree(folder / "whole", folder / "killed"))
        train(config, folder / "whole", report=silent)
    return folder


@pytest.mark.slow
def test_a_language_model_learns_and_keeps_its_best_weights(counting_run):
    result = json.loads((counting_run / "result.json").read_text())
    bits = {
        epoch["epoch"]: epoch["val_bits_per_byte"]
        for epoch in Run.open(counting_run).history()
        if "val_bits_per_byte" in epoch
    }
    assert list(bits) == [12, 24]
    assert bits[24] < bits[12]
    assert (result["best_epoch"], result["val_bits_per_byte"]) == (24, round(bits[24], 4))


@pytest.mark.nightly
def test_a_killed_language_model_resumes_like_a_translator(corpus, language_runs, tmp_path):
    run = Path(shutil.copytree(language_runs / "killed", tmp_path / "run"))
    assert len(losses(run)) == 1
    train(language_model(corpus), run, resume=True, report=silent)
    np.testing.assert_allclose(losses(run), losses(language_runs / "whole"), rtol=1e-6)
    expected = bits_per_byte(language_runs / "whole")
    np.testing.assert_allclose(bits_per_byte(run), expected, rtol=1e-5)


def test_the_fewest_bits_per_byte_are_kept_and_patience_counts_those_that_are_not_fewer():
    history = [
        {"val_bits_per_byte": bits} if bits else {} for bits in (2.0, None, 1.5, 1.7, None, 1.6)
    ]
    assert best_epoch(history) is history[2]
    assert validations_since_best(history) == 2
    assert validations_since_best([{}, {}]) == 0


@pytest.mark.slow
def test_a_translators_encoder_starts_from_a_language_model_of_the_source(
    corpus, counting_run, tmp_path
):
    """Embedding, layers and vocabulary.

    Layers that the language model lacks are initialised as in a new run.
    """
    values = config_for(corpus).to_dict()
    values["tokenizer"] |= {"shared": False, "vocab_size": 45, "model_type": "bpe"}
    values["model"] |= {"tie_embeddings": "output", "num_decoder_layers": 2, "dropout": 0.3}
    values["model"]["dialect"] = {"num_decoder_heads": 4, "decoder_d_ff": 48}
    config, run = Config.from_dict(values), tmp_path / "run"
    model = model_before_the_first_step(config, run, init_from=counting_run)
    origin, tokenizers = Generator.load(counting_run), Run.open(run).tokenizers
    assert tokenizers.source.digest == origin.tokenizer.digest != tokenizers.target.digest
    assert tokenizers.target.vocab_size == 45
    ours = [*model.source_embedding.weights, *model.encoder.weights]
    theirs = [*origin.model.embedding.weights, *origin.model.stack.weights]
    assert len(theirs) > 10
    for weight, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("tokenizer", {}, r"is a language model of .*; set tokenizer.shared=false"),
        (
            "model",
            {"d_ff": 32},
            r"the recipe's model differs from .* \(only dropout, architecture, num_decoder",
        ),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused(corpus, tmp_path, section, changes, message):
    origin = language_model(corpus)
    Run.create(tmp_path / "lm", origin, train_tokenizers(origin))
    values = full_config(corpus).to_dict()
    values[section] |= changes
    with pytest.raises(ValueError, match=message):
        train(Config.from_dict(values), tmp_path / "run", init_from=tmp_path / "lm", report=silent)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though")  # tf.data always traces
def test_minutes_end_a_run_of_separate_vocabularies_and_mixed_precision(corpus, tmp_path, eagerly):
    """The last epoch is validated, whichever it is."""
    settings = {"dtype": "mixed_bfloat16", "optimizer": "adamw", "weight_decay": 0.01}
    settings |= {"epochs": 9, "validate_every": 2, "max_minutes": 1e-6}
    values = config_for(corpus, **settings).to_dict()
    values["tokenizer"] |= {"shared": False, "vocab_size": 30, "model_type": "bpe"}
    values["model"]["tie_embeddings"] = "output"
    lines: list[str] = []
    timed = train(Config.from_dict(values), tmp_path / "run", report=lines.append)
    assert sum("is no better than predicting tokens by frequency" in line for line in lines) == 1
    assert (timed["epochs"], timed["steps"]) == (1, 1)
    assert {path.name for path in (tmp_path / "run").glob("*.model")} == {
        "source.model",
        "target.model",
    }
    assert Translator.load(tmp_path / "run").tokenizers.target.vocab_size == 30


@pytest.mark.nightly
def test_float16_learns_and_resumes_as_float32(corpus, tmp_path):
    """Keras scales the loss, with an optimizer around the recipe's."""

    def config(epochs: int, dtype: str) -> Config:
        settings = {"optimizer": "muon", "clip_norm": 1.0, "ema_momentum": 0.9, "epochs": epochs}
        values = config_for(corpus, dtype=dtype, validate_every=2, **settings).to_dict()
        values["tokenizer"] |= {"vocab_size": 45, "case_variants": True}
        return Config.from_dict(values)

    train(config(2, "float32"), tmp_path / "float32", report=silent)
    for epochs in (1, 2):
        train(config(epochs, "mixed_float16"), tmp_path / "run", resume=epochs > 1, report=silent)
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(tmp_path / "float32"), rtol=0.02)


def test_the_recipes_loss_precision_shards_and_devices_reach_the_model(corpus):
    text = TrainingData.read(config_for(corpus), Start(), silent)
    model = training._compiled_model(
        config_for(corpus, label_smoothing=0.2, dtype="mixed_bfloat16"), text, Workers()
    )
    assert model.loss.label_smoothing == 0.2
    assert model.dtype_policy.name == "mixed_bfloat16"
    model = training._compiled_model(
        config_for(corpus, shards=2, strategy="mirrored"), text, Workers(["GPU:0", "GPU:1"])
    )
    assert (model.shards, model.devices, model.workers) == (4, ("GPU:0", "GPU:1"), None)


def test_the_recipes_learning_rates_reach_the_training(corpus, trained):
    """Inverse square root with its peak at update 20 of two steps, warmup by equation 3."""
    rate = Run.open(trained).history()[0]["learning_rate"]
    assert rate == pytest.approx(0.005 * (EPOCH_STEPS + 1) / 40, rel=1e-5)
    paper = {"schedule": "warmup", "learning_rate": None}
    text = TrainingData.read(config_for(corpus), Start(), silent)
    optimizer = training._compiled_model(config_for(corpus, **paper), text, Workers()).optimizer
    optimizer.iterations.assign(8)
    expected = 32**-0.5 * 9 * 20**-1.5
    assert float(optimizer.learning_rate) == pytest.approx(expected, rel=1e-5)


def test_a_linear_schedule_falls_to_0_with_the_last_step(corpus):
    """Epochs of one step, the first at the full rate. The recipe states no number of steps."""
    config = one_batch_an_epoch(corpus)
    text = TrainingData.read(config, Start(), silent)
    optimizer = training._compiled_model(config, text, Workers()).optimizer
    rates = []
    for step in range(5):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    np.testing.assert_allclose(rates, [0.005, 0.005 * 2 / 3, 0.005 / 3, 0, 0], atol=1e-8)


def test_epoch_steps_end_an_epoch_within_a_pass_over_the_text(corpus, trained):
    config = Run.open(trained).config
    assert TrainingData.read(config, Start(), silent).train.steps_per_epoch > EPOCH_STEPS
    steps = [epoch["step"] for epoch in Run.open(trained).history()]
    assert steps == [EPOCH_STEPS, 2 * EPOCH_STEPS, 3 * EPOCH_STEPS]


def test_resume_refuses_another_text_and_an_end_without_validation(corpus, tmp_path):
    """The run has two epochs and no validation."""
    config = config_for(corpus, epochs=4, validate_every=4)
    text = TrainingData.read(config, Start(), silent)
    digests = {
        "text_digest": text.train.text.digest,
        "valid_digest": digest_of_values(text.valid_rows),
    }
    run = Run.new(tmp_path / "run", config, text.tokenizers, **digests)
    run.write(text.tokenizers)
    epochs = [{"epoch": n, "step": 8 * n, "minutes": 0.1 * n, "loss": 3.0} for n in (1, 2)]
    run.save_resume_state(training._compiled_model(config, text, Workers()), epochs)
    with pytest.raises(ValueError, match=r"with this recipe, .*run ends before its first"):
        train(
            config_for(corpus, epochs=2, validate_every=4),
            tmp_path / "run",
            resume=True,
            report=silent,
        )
    with pytest.raises(ValueError, match=r"leave out --init-from"):
        train(config, tmp_path / "run", resume=True, init_from=tmp_path / "run", report=silent)
    for digest, name in (("text_digest", "training"), ("valid_digest", "validation")):
        other = Run.new(run.path, config, text.tokenizers, **digests | {digest: "another text's"})
        other.write(text.tokenizers)
        with pytest.raises(ValueError, match=rf"the {name} text differs from the text that .*run"):
            train(config, tmp_path / "run", resume=True, report=silent)
        assert Run.open(run.path).digests == other.digests


@pytest.mark.slow
def test_patience_ends_a_run_and_keeps_its_best_weights(corpus, tmp_path, monkeypatch, capsys):
    """Its BLEU remains 0, so chrF decides: the fourth epoch is the best.

    It is validated every second epoch. Some rows of the text are dropped.
    """
    values = {"epochs": 9, "epoch_steps": 2, "validate_every": 2, "patience": 1}
    config, run, best = config_for(corpus, **values), tmp_path / "run", []
    config = config.replace(data=config.data.replace(max_length=8))
    chrf = iter([1.0, 3.0, 2.0])
    monkeypatch.setattr(evaluation, "scores", lambda *_, **__: {"bleu": 0.0, "chrf": next(chrf)})
    at_step(monkeypatch, 4 * 2 + 1, lambda _: best.append((run / WEIGHTS).read_bytes()))
    with pytest.warns(UserWarning, match="had more than 7 tokens"):
        train(config, run)
    found = [epoch.get("val_chrf") for epoch in Run.open(run).history()]
    assert found == [None, 1.0, None, 3.0, None, 2.0]
    assert best == [(run / WEIGHTS).read_bytes()]
    text = capsys.readouterr().out
    assert "because a side exceeds 8 tokens" in text
    assert "% padding" in text
    printed_once = r" - loss: .* - val_loss: .* - val_bleu: .* - val_chrf: "
    assert len(re.findall(printed_once, text)) == text.count("val_bleu: ") == 3
    last = text.splitlines()[-1]
    assert "warning: the best validation has BLEU 0" in last
    assert "set data.languages or training.bleu_tokenizer=char" in last


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            lambda run: (run / "config.json").write_text("{}"),
            r"already contains a run; .*resume=True",
        ),
        (
            lambda run: (run / "notes.txt").write_text("mine"),
            "is not an empty folder; choose another",
        ),
    ],
)
def test_an_occupied_folder_is_never_touched(corpus, tmp_path, prepare, message):
    prepare(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match=message):
        train(config_for(corpus), tmp_path, report=silent)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": ["train.en", "valid.de"]}, r"has 120 lines and .* 20"),
        ({"valid": ""}, r"the recipe has no data.valid; set it to a file per"),
        ({"train": ["/dev/zero", "train.de"]}, r"/dev/zero is a device or a pipe; use a regular"),
        (
            {"cache": "s3://bucket/cache"},
            r"data.cache=s3://bucket/cache is an address; set it",
        ),
    ],
)
def test_bad_text_is_refused_before_anything_is_written(corpus, tmp_path, data, message):
    values = config_for(corpus).to_dict()
    values["data"] |= data
    with pytest.raises(ValueError, match=message):
        train(Config.from_dict(values), tmp_path / "run", report=silent)
    assert not (tmp_path / "run").exists()


def test_the_recipes_normalization_reaches_each_vocabulary(corpus):
    """NFKC makes full-width letters narrow; identity keeps them."""
    values = config_for(corpus).to_dict()
    values["model"]["tie_embeddings"] = "output"
    values["tokenizer"] |= {"shared": False, "vocab_size": 30, "model_type": "bpe"}
    values["tokenizer"]["target_normalization"] = "identity"
    vocabularies = train_tokenizers(Config.from_dict(values))
    unknown = 1
    assert unknown not in vocabularies.source.encode(["\uff4f\uff4e\uff45"])[0]
    assert unknown in vocabularies.target.encode(["\uff45\uff49\uff4e\uff53"])[0]


def test_a_second_training_of_the_same_folder_is_refused(corpus, tmp_path):
    from tfformer.run_directory import locked_for_new_run

    with (
        locked_for_new_run(tmp_path / "run"),
        pytest.raises(BlockingIOError, match="by another training"),
    ):
        train(config_for(corpus), tmp_path / "run", report=silent)


@pytest.mark.parametrize("config", ["phrasebook", {"training": {"epochs": 1}}])
def test_a_recipe_that_was_not_read_is_refused(config, tmp_path):
    with pytest.raises(TypeError, match=r"^config is .*, but must be a Config; pass Config\.from"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_equal_bleu_is_decided_by_chrf():
    history = [{"val_bleu": 0.0, "val_chrf": chrf} for chrf in (20.0, 31.5, 25.0)]
    assert best_epoch(history) is history[1]
    assert validations_since_best(history) == 1


def test_a_tokenizer_of_bleu_that_is_missing_is_said_before_the_training(
    corpus, tmp_path, monkeypatch
):
    def missing(**_):
        raise RuntimeError("no such library")

    monkeypatch.setattr(sacrebleu, "BLEU", missing)
    with pytest.raises(ValueError, match="BLEU's tokenizer ja-mecab needs a library"):
        train(config_for(corpus, bleu_tokenizer="ja-mecab"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_no_constant_prediction_has_a_smaller_loss(smoothing):
    labels = np.array([[1, 2, 2, 4, 4, 4]])
    counts = np.bincount(labels[0], minlength=6)
    least = validation.frequency_loss(counts, smoothing)
    shares = (1 - smoothing) * counts / counts.sum() + smoothing / counts.size

    def loss(logits):
        logits = np.broadcast_to(logits, (*labels.shape, counts.size))
        return np.mean(smoothed_cross_entropy(logits, labels, smoothing))

    best = np.log(np.maximum(shares, 1e-30))
    assert least == pytest.approx(loss(best), rel=1e-6)
    for seed in range(20):
        assert loss(best + np.random.default_rng(seed).normal(size=counts.size)) > least


@pytest.fixture
def validated(monkeypatch) -> Callable[..., tuple[list, list[str]]]:
    """A function that validates epochs with given figures; it returns the weights saved, and lines.

    The text has one token, so a model that knows only its frequency has almost no loss.
    """

    def validate(figures: list[dict[str, float]], history: list[dict[str, float]]):
        saved, lines, given = [], [], iter(figures)
        run = SimpleNamespace(history=lambda: history, save_weights=saved.append)
        text = SimpleNamespace(sides=[SimpleNamespace(ids=np.array([2, 2]))])
        tokenizers = SimpleNamespace(target=SimpleNamespace(vocab_size=3))
        valid = SimpleNamespace(text=text)
        validating = validation.Validation(
            run, Config(), tokenizers, valid=valid, rows=[], report=lines.append
        )
        validating.set_model(SimpleNamespace(stop_training=False))
        monkeypatch.setattr(validating, "_figures", lambda epoch: next(given))
        for number in range(len(figures)):
            validating.snapshot = f"epoch {number}"
            validating.on_epoch_end(number)
        return saved, lines

    return validate


def test_a_training_that_learns_nothing_says_so_once(validated):
    learned = {"val_loss": 0.1, "val_bleu": 0.0, "val_chrf": 1.0}
    nothing = learned | {"val_loss": 5.0}
    _, [line] = validated([nothing, nothing], history=[])
    assert "val_loss 5.000 is no better than predicting tokens by frequency alone" in line
    assert validated([learned, nothing], history=[])[1] == []


def test_a_resumed_run_keeps_better_weights(validated):
    figures = [{"val_loss": 1.0, "val_bleu": bleu, "val_chrf": 1.0} for bleu in (7.0, 9.5, 9.4)]
    saved, _ = validated(figures, history=[{"val_bleu": 9.0, "val_chrf": 1.0}])
    assert saved == ["epoch 1"]
