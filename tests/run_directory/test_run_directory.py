"""A run directory refuses damage, explains a full disk, and admits one training at a time."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.faulty_process import spread

from tfformer.config import Config
from tfformer.data.encoding import IdRows
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import (
    MODEL_KINDS,
    Run,
    Tokenizers,
    check_free,
    locked_for_new_run,
    locked_for_resume,
    new_model,
)
from tfformer.run_directory.run import digest_of_settings
from tfformer.storage.whole_files import MAX_BYTES, ErrorKeepingFile, seal

LINES = ["one two three", "four five six", "eins zwei drei", "vier fünf sechs", "ten", "zehn"] * 20
RECIPE = {
    "model": {"num_layers": 2, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.1},
    "tokenizer": {"vocab_size": 29},
    "data": {"max_length": 20, "train": ["a", "b"], "valid": ["a", "b"]},
}


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return Tokenizer.train(LINES, 29)


@pytest.fixture(scope="module")
def saved_run(vocabulary, tmp_path_factory) -> Path:
    """A run with weights only. Tests must not change it."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    run = Run.create(path, Config.from_dict(RECIPE), Tokenizers(vocabulary, vocabulary))
    run.save_weights(new_model(run.config.model, run.tokenizers))
    return path


@pytest.fixture
def copy(saved_run, tmp_path) -> Path:
    return Path(shutil.copytree(saved_run, tmp_path / "run"))


def edit(run: Path, section: str, **changes) -> None:
    values = json.loads((run / "config.json").read_text())
    values[section] |= changes
    (run / "config.json").write_text(json.dumps(values))


def without_digest(run: Path) -> None:
    """Remove the digest of the settings from config.json."""
    values = json.loads((run / "config.json").read_text())
    del values["digests"]["settings"]
    (run / "config.json").write_text(json.dumps(values))


def sign(run: Path) -> Run:
    """Write the digests of changed settings and weights; return the run."""
    values = json.loads((run / "config.json").read_text())
    digests = values.pop("digests")
    digests["settings"] = digest_of_settings(values)
    (run / "config.json").write_text(json.dumps(values | {"digests": digests}))
    signed = Run.open(run)
    seal(signed.weights, signed.model_digest)
    return signed


def unseal(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: content.rindex(b"\ntfformer ")])


# --- The recipe and the weights ---------------------------------------------------------------


@pytest.mark.parametrize("architecture", MODEL_KINDS)
@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_the_formula_counts_the_parameters_that_keras_counts(vocabulary, architecture, tie):
    target_vocabulary = Tokenizer.train(LINES, 28)
    shared = tie == "all" or architecture == "decoder"
    tokenizers = Tokenizers(vocabulary, vocabulary if shared else target_vocabulary)
    settings = Config.from_dict(RECIPE).model
    for norm, output_bias, use_bias in (("pre", True, False), ("post", False, True)):
        model = settings.replace(
            architecture=architecture,
            num_decoder_layers=3 if architecture == "encoder-decoder" else None,
            tie_embeddings=tie,
            norm=norm,
            dialect={"output_bias": output_bias},
            use_bias=use_bias,
        )
        expected = new_model(model, tokenizers).count_params()
        assert MODEL_KINDS[architecture].parameters(model, tokenizers) == expected


def test_every_flipped_bit_of_the_weights_is_refused_before_they_are_parsed(copy, monkeypatch):
    """Also bits of padding and of the last line."""
    draw, run = random.Random(1), Run.open(copy)
    content = run.weights.read_bytes()
    monkeypatch.setattr(h5py, "File", lambda *_: pytest.fail("the damaged file was parsed"))
    offsets = [draw.randrange(len(content)) for _ in range(40)]
    for offset in (*offsets, *range(len(content) - 150, len(content))):
        damaged = bytearray(content)
        damaged[offset] ^= 1 << draw.randrange(8)
        run.weights.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"its digest (does not match|is missing)"):
            run.check_weights()


CHANGES = [
    ("model", {"num_layers": 1}),
    ("model", {"num_heads": 4}),
    ("model", {"norm": "pre"}),
    ("model", {"activation": "gelu"}),
    ("model", {"dialect": {"position_layout": "halves"}}),
    ("model", {"dialect": {"epsilon": 1e-3}}),
    ("model", {"use_bias": False}),
    ("decoding", {"length_penalty": 0.0}),
    ("data", {"max_length": 8}),
]


@pytest.mark.parametrize(("section", "changes"), CHANGES)
def test_a_changed_setting_is_refused(copy, section, changes):
    edit(copy, section, **changes)
    with pytest.raises(ValueError, match=r"config.json was changed since it was written"):
        Run.open(copy)


def test_weights_of_another_model_are_refused(copy):
    run = Run.open(copy)
    seal(run.weights, "a" * 64)
    with pytest.raises(ValueError, match="it was trained with other model settings"):
        run.load_model()


def test_a_recipe_that_has_lost_its_digest_is_refused(copy):
    without_digest(copy)
    with pytest.raises(ValueError, match=r"config.json was changed since it was written"):
        Run.open(copy)


def test_the_models_digest_depends_on_each_vocabulary(vocabulary, tmp_path):
    bpe, config = Tokenizer.train(LINES, 29, "bpe"), Config.from_dict(RECIPE)
    pairs = ((vocabulary, vocabulary), (vocabulary, bpe), (bpe, vocabulary))
    assert len({Run.new(tmp_path, config, Tokenizers(*pair)).model_digest for pair in pairs}) == 3


def test_the_places_of_the_texts_may_be_edited(copy):
    edit(copy, "data", folder="/elsewhere", train=["c", "d"], valid=["e", "f"])
    assert Run.open(copy).config.data.folder == "/elsewhere"
    Run.open(copy).check_weights()


def test_a_recipe_with_many_forbidden_words_is_read_as_it_was_written(vocabulary, tmp_path):
    """An import may bring thousands of them."""
    words = [[5 + number % 20, 5 + number // 20 % 20, 5 + number // 400] for number in range(1500)]
    values = RECIPE | {"model": RECIPE["model"] | {"dialect": {"rules": {"bad_words": words}}}}
    Run.create(tmp_path / "run", Config.from_dict(values), Tokenizers(vocabulary, vocabulary))
    assert (tmp_path / "run" / "config.json").stat().st_size > MAX_BYTES
    assert Run.open(tmp_path / "run").config.model.dialect.rules.bad_words == words


def test_weights_without_their_digests_are_refused(copy):
    unseal(copy / "best.weights.h5")
    with pytest.raises(ValueError, match="its digest is missing"):
        Run.open(copy).load_model()


@pytest.mark.parametrize(
    "changes", [{"num_layers": 1000}, {"d_ff": 10**6}, {"d_model": 10**6}, {"num_layers": 1}]
)
def test_weights_that_do_not_fit_are_refused_before_a_model_is_built(copy, changes):
    edit(copy, "model", **changes)
    run = sign(copy)
    start = time.process_time()
    with pytest.raises(ValueError, match=r"parameters, but the model has"):
        run.load_model()
    assert time.process_time() - start < 2


def test_weights_that_claim_numbers_which_are_not_in_the_file_are_refused(copy):
    """HDF5 returns zeros for unwritten data of any size."""
    run = Run.open(copy)
    name = "layers/token_embedding/vars/0"
    with h5py.File(run.weights, "r+") as file:
        shape = file[name].shape
        del file[name]
        file.create_dataset(name, shape=shape, dtype="float32", chunks=shape)
    seal(run.weights, run.model_digest)
    with pytest.raises(ValueError, match=r"some of its values are missing"):
        run.load_model()


def test_a_data_set_without_a_shape_is_refused(copy):
    with h5py.File(copy / "best.weights.h5", "r+") as file:
        file["surplus"] = h5py.Empty(np.float32)
    with pytest.raises(ValueError, match=r"parameters, but the model has"):
        sign(copy).load_model()


def test_an_empty_array_too_many_is_refused(copy):
    with h5py.File(copy / "best.weights.h5", "r+") as file:
        file["surplus"] = np.zeros((0, 3), np.float32)
    with pytest.raises(ValueError, match="its arrays are not the model's"):
        sign(copy).load_model()


def test_arrays_of_the_models_sizes_but_not_its_shapes_are_refused(copy):
    with h5py.File(copy / "best.weights.h5", "r+") as file:
        name = "layers/token_embedding/vars/0"
        table = file[name][()]
        del file[name]
        file[name] = table[:-1]
        file["surplus"] = table[-1:]
    with pytest.raises(ValueError, match=r"is damaged or belongs to another model"):
        sign(copy).load_model()


# --- Disk and processes -----------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1_000, 30_000])
def test_a_full_disk_is_one_line_and_the_old_weights_stay(copy, limit):
    run = Run.open(copy)
    model, before = new_model(run.config.model, run.tokenizers), run.weights.read_bytes()
    with limited_files(limit), pytest.raises(OSError, match=r"best.weights.h5 cannot be written"):
        run.save_weights(model)
    assert run.weights.read_bytes() == before
    assert {path.name for path in copy.iterdir()} == {
        *("config.json", "tokenizer.model", "best.weights.h5")
    }


@pytest.mark.parametrize("size", [0, 200])
def test_where_a_new_run_finds_the_disk_full_there_is_nothing_to_resume(tmp_path, vocabulary, size):
    path, tokenizers = tmp_path / "run", Tokenizers(vocabulary, vocabulary)
    message = (
        r"cannot be written .*; if the disk is full, free some space, then run the same command "
    )
    with limited_files(size), pytest.raises(OSError, match=rf"{message}again$"):
        Run.create(path, Config.from_dict(RECIPE), tokenizers)
    (path / "resume.npz").touch()
    with limited_files(size), pytest.raises(OSError, match=rf"{message}again$"):
        Run.create(path, Config.from_dict(RECIPE), tokenizers)


def test_where_a_run_finds_the_disk_full_it_goes_on_with_resume(copy):
    (copy / "resume.npz").touch()
    message = (
        r"result.json cannot be written .*too large.*free some space, then continue with --resume$"
    )
    with limited_files(1), pytest.raises(OSError, match=message):
        Run.open(copy).finish({"epochs": 1})
    with limited_files(1), pytest.raises(OSError, match=r"space, then run the same command again$"):
        Run.open(copy).save_shortlist(IdRows.of([[4, 5]]))


def test_a_write_of_the_weights_that_fails_once_is_never_forgotten(copy, monkeypatch):
    """HDF5 ignores some write errors, which leaves a hole in the file."""
    run, counts = Run.open(copy), Counter()
    model = new_model(run.config.model, run.tokenizers)
    write_all = ErrorKeepingFile._write_all

    def fail_once(file: ErrorKeepingFile, octets: memoryview) -> None:
        counts["written"] += 1
        if counts["written"] == counts["failing"]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        write_all(file, octets)

    monkeypatch.setattr(ErrorKeepingFile, "_write_all", fail_once)
    run.save_weights(model)
    before = run.weights.read_bytes()
    for number in spread(counts["written"], 8):
        counts["written"], counts["failing"] = 0, number
        with pytest.raises(OSError, match=r"best.weights.h5 cannot be written .*Input/output"):
            run.save_weights(model)
        assert run.weights.read_bytes() == before


class limited_files:  # noqa: N801, a context
    """Limit the files of this process to `size` bytes, as a full disk would."""

    def __init__(self, size: int):
        self.size = size

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        signal.signal(signal.SIGXFSZ, self.handler)


def test_a_second_training_of_a_run_is_refused(copy):
    with (
        locked_for_resume(copy),
        pytest.raises(BlockingIOError, match="is being written by another training run; wait"),
    ):
        locked_for_resume(copy).__enter__()
    with locked_for_resume(copy):
        pass


def test_a_training_that_fails_before_it_has_begun_leaves_nothing(tmp_path, vocabulary):
    path = tmp_path / "new" / "run"
    with suppress(InterruptedError), locked_for_new_run(path):
        vocabulary.save(path / "tokenizer.model")
        raise InterruptedError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_killed_training_has_begun_is_taken_again(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / ".lock").touch()
    (path / "tokenizer.model").touch()
    (path / f".tfformer-00000000-1-{'0' * 16}-resume.npz").touch()
    check_free(path)


@pytest.mark.parametrize("names", [["tokenizer.model"], [".lock", "notes.txt"], ["notes.txt"]])
def test_a_folder_with_files_of_others_is_never_taken(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match="exists and is not an empty folder"):
        check_free(tmp_path)


def test_tensorboards_folder_is_no_link(copy, tmp_path):
    (tmp_path / "outside").mkdir()
    (copy / "tensorboard").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=r"tensorboard is a link, which is not followed; remove"):
        locked_for_resume(copy).__enter__()
    (copy / "tensorboard").unlink()
    (copy / "tensorboard").mkdir()
    (copy / "tensorboard" / "train").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=r"train is a link, which is not followed; remove"):
        locked_for_resume(copy).__enter__()
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.parametrize(("offset", "value"), [(10, 9), (8, 1)], ids=["method", "encrypted"])
def test_a_state_that_zipfile_cannot_unpack_is_damaged(copy, offset, value):
    """One byte of the directory's first entry, as after a flipped bit."""
    run = Run.open(copy)
    np.savez(run.resume_state, history=np.array(['{"epoch": 1}']))
    assert run.history() == [{"epoch": 1}]
    content = bytearray(run.resume_state.read_bytes())
    entry = content.index(b"PK\1\2")
    content[entry + offset] = value
    run.resume_state.write_bytes(content)
    with pytest.raises(ValueError, match=r"resume\.npz is damaged"):
        run.history()


def test_no_state_to_resume_from_is_an_empty_history(copy):
    (copy / "best.weights.h5").unlink()
    run = Run.open(copy)
    assert run.load_resume_state(new_model(run.config.model, run.tokenizers)) == []


@pytest.mark.parametrize("sign", ["best.weights.h5", "metrics.jsonl"])
def test_a_lost_state_is_not_an_empty_history(copy, sign):
    """The weights and the figures each show that an epoch has ended."""
    if sign == "metrics.jsonl":
        (copy / "best.weights.h5").unlink()
        (copy / sign).write_text('{"epoch": 1}\n')
    run = Run.open(copy)
    with pytest.raises(ValueError, match=r"resume.npz is missing, though epochs have ended"):
        run.load_resume_state(new_model(run.config.model, run.tokenizers))
