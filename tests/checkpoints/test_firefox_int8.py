"""Export to Firefox's int8 files, read here by their layout and compared with NumPy."""

import struct

import numpy as np
import pytest
from support.numpy_layers import randomized
from support.numpy_marian import NumpyMarian
from support.untrained_models import letters_tokenizer

from tfformer.checkpoints.marian import files as marian_files
from tfformer.cli.main import main
from tfformer.data.tokenizers import Tokenizer
from tfformer.export.pipeline import export_model
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.special_ids import END_ID

SAMPLES = ["a b c", "k j i h g f", ""]
VOCAB_SIZE = 16
END = "_QuantMultA"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a b c d e f g h i j k"] * 20, VOCAB_SIZE)


@pytest.fixture(scope="module", params=["all", "output"])
def exported(request, tokenizer, tmp_path_factory):
    """A student and its folder in Firefox's format."""
    model = Transformer(
        *(VOCAB_SIZE, VOCAB_SIZE),
        **{"num_layers": 2, "num_decoder_layers": 1, "d_model": 64, "num_heads": 2, "d_ff": 128},
        decoder_kind="ssru",
        dialect="marian",
        tie_embeddings=request.param,
    )
    student = Translator(randomized(model, scale=0.2), tokenizer, max_length=24)
    folder = tmp_path_factory.mktemp("firefox")
    run = student.save(folder / "run")
    options = {"quantize": "int8", "samples": SAMPLES}
    return student, export_model(run, folder / "out", "marian", **options)


def entries(path):
    """Return name -> (kind, shape, bytes) by the layout of browsermt/marian-dev's binary.cpp."""
    content = path.read_bytes()
    version, count = struct.unpack_from("<2Q", content)
    assert version == 1
    headers = list(struct.iter_unpack("<4Q", content[16 : 16 + 32 * count]))
    at = 16 + 32 * count
    names, shapes, found = [], [], {}
    for length, *_ in headers:
        names.append(content[at : at + length - 1].decode())
        at += length
    for _, _, rank, _ in headers:
        shapes.append(struct.unpack_from(f"<{rank}i", content, at))
        at += 4 * rank
    at += 8 + struct.unpack_from("<Q", content, at)[0]
    assert at % 256 == 0
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        found[name] = kind, shape, content[at : at + size]
        at += size
    assert at == len(content)
    return found


def test_each_matrix_is_rounded_and_followed_by_its_multiplier(exported):
    _, folder = exported
    found = entries(folder / "model.bin")
    _, weights = marian_files.read(folder / "model.npz")
    _, again = marian_files.read(folder / "model.bin")
    assert found.keys() - weights.keys() - {"special:model.yml"} == {
        *(name + END for name, weight in weights.items() if len(weight) > 1),
        "none" + END,
    } - {"encoder_Wemb" + END}
    for name, weight in weights.items():
        kind, shape, content = found[name]
        assert shape == weight.shape
        if len(weight) == 1:
            assert (kind, content[: weight.nbytes]) == (0x0404, weight.tobytes())
            continue
        multiplier = np.float32(127) / np.abs(weight).max()
        rounded = np.clip(np.rint(weight * multiplier), -127, 127)
        stored = rounded if name.endswith("Wemb") else rounded.T
        wanted = stored.astype(np.int8).tobytes() + multiplier.tobytes()
        assert (kind, len(content) % 256) == (0x4101, 0)
        assert content == wanted.ljust(len(content), b"\0")
        np.testing.assert_array_equal(again[name], (rounded / multiplier).astype(np.float32))


class Watched(np.ndarray):
    """A matrix that stores the largest absolute value by which it is multiplied."""

    def __rmatmul__(self, x):
        self.largest[0] = max(self.largest[0], np.abs(x).max())
        return x @ np.asarray(self)


def watched(matrix, largest):
    view = np.asarray(matrix).view(Watched)
    view.largest = largest
    return view


class WatchedMarian(NumpyMarian):
    def __init__(self, options, tensors):
        super().__init__(options, tensors)
        kernels = [n for n, t in tensors.items() if len(t) > 1 and not n.endswith("Wemb")]
        self.largest = {name: [0.0] for name in [*kernels, "none"]}
        self.tensors |= {name: watched(self.tensors[name], self.largest[name]) for name in kernels}

    def output(self):
        return watched(super().output(), self.largest["none"])


def test_inputs_are_multiplied_to_at_most_127(exported):
    """The multipliers are 127 / the largest input in a greedy translation of the samples."""
    student, folder = exported
    found = entries(folder / "model.bin")
    marian = WatchedMarian(*marian_files.read(folder / "model.npz"))
    encoded = student.encode(SAMPLES).ids
    translations = student.encode_targets(student.translate(SAMPLES, beam_size=1)).ids
    for source, target in zip(encoded, translations, strict=True):
        marian.log_probs([*source, END_ID], [*target, END_ID])
    for name, (largest,) in marian.largest.items():
        kind, shape, content = found[name + END]
        assert (kind, shape) == (0x0404, (1, 1))
        np.testing.assert_allclose(struct.unpack_from("<f", content)[0], 127 / largest, rtol=1e-4)
    table = next(name for name in found if name in ("Wemb" + END, "decoder_Wemb" + END))
    assert found[table] == found["none" + END]


def small_run(folder, tokenizer, **changes):
    shape = {"num_layers": 1, "d_model": 64, "num_heads": 2, "d_ff": 64, "tie_embeddings": "all"}
    settings = shape | {"decoder_kind": "ssru", "dialect": "marian"} | changes
    model = randomized(Transformer(*[tokenizer.vocab_size] * 2, **settings))
    return Translator(model, tokenizer, max_length=12).save(folder / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"decoder_kind": "attention"},
            "model.decoder=attention, but Firefox's engine runs only s",
        ),
        ({"norm": "pre"}, "model.norm=pre, but Firefox's engine runs only post; export without --"),
        (
            {"tie_embeddings": "none"},
            "model.tie_embeddings=none, but Firefox's engine runs only al",
        ),
        (
            {"d_model": 32},
            "model.d_model of 32, but int8 products in Firefox need a multiple of 64",
        ),
        ({"d_ff": 72}, "model.d_ff of 72, but int8 products in Firefox need a multiple of 64; ex"),
        ({"dialect": "paper"}, "begins a translation with a learned vector"),
    ],
)
def test_a_model_that_firefox_cannot_run_is_refused_before_measuring(
    changes, message, tokenizer, tmp_path, capsys
):
    words = ["export", str(small_run(tmp_path, tokenizer, **changes)), "--format", "marian"]
    assert main([*words, "--quantize", "int8", "--output", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert message in printed.splitlines()[-1]
    assert "--samples" not in printed  # the warning about random pieces
    assert not any((tmp_path / "out").glob("*"))


def test_a_vocabulary_that_firefox_does_not_multiply_is_refused(tmp_path):
    run = small_run(tmp_path, letters_tokenizer())
    with pytest.raises(ValueError, match=r"vocabulary of 13, but .* multiple of 8; export wi"):
        export_model(run, tmp_path / "out", "marian", quantize="int8")


def test_a_wrong_int8_matrix_is_not_published(tokenizer, tmp_path, monkeypatch):
    write = marian_files._int8_bytes
    monkeypatch.setattr(
        marian_files,
        "_int8_bytes",
        lambda name, matrix: write(name, matrix.T if name.endswith("Wk") else matrix),
    )
    run = small_run(tmp_path, tokenizer)
    with (
        pytest.warns(UserWarning, match="pass typical sentences with --samples"),
        pytest.raises(ValueError, match=r"Wk in model\.bin was not written correctly"),
    ):
        export_model(run, tmp_path / "out", "marian", quantize="int8")
    assert not any((tmp_path / "out").glob("*"))
