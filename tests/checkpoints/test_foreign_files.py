import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from support.marian_checkpoints import checkpoint

from tfformer.checkpoints import tensor_files
from tfformer.checkpoints.foreign_files import read_object
from tfformer.checkpoints.hugging_face.weights import read_tensors
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.tensor_files import read_safetensors, write_safetensors

TENSORS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array([1.5, -2.0], np.float16),
}


def written(path):
    write_safetensors(path, TENSORS)
    return path


def with_header(path, header):
    """Write a safetensors file with this header, followed by eight bytes of values."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    return path


def test_a_bfloat16_tensor_becomes_float32(tmp_path):
    header = {"x": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
    path = with_header(tmp_path / "model.safetensors", header)
    path.write_bytes(
        path.read_bytes()[:-8] + np.array([0x3F80, 0xC000, 0, 0x4049], "<u2").tobytes()
    )
    np.testing.assert_array_equal(read_safetensors(path)["x"], [1, -2, 0, 3.140625])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"{", "is not a complete safetensors file"),
        (b"[]", "is not a complete safetensors file"),
        ({"x": 3}, "is not a complete safetensors file"),
        ({"x": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}, "has dtype I64"),
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, "is not a complete"),
        ({"x": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}}, r"and shape \(\)"),
        ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, "is not a complete"),
        ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, "is not a complete"),
        (b'{"x": {}, "x": {}}', "is not a complete safetensors file"),
    ],
)
def test_a_damaged_safetensors_header_is_refused(tmp_path, header, message):
    path = with_header(tmp_path / "model.safetensors", header)
    with pytest.raises(ValueError, match=message):
        read_safetensors(path)


def test_a_safetensors_file_without_tensors_is_refused(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", {})
    with pytest.raises(ValueError, match=r"model\.safetensors contains no tensors"):
        read_safetensors(tmp_path / "model.safetensors")


def test_a_cut_safetensors_file_is_refused_wherever_it_is_cut(tmp_path):
    path = written(tmp_path / "model.safetensors")
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"model\.safetensors"):
            read_safetensors(path)


def test_shards_are_read_as_one_file(tmp_path):
    for name, tensor in TENSORS.items():
        write_safetensors(tmp_path / f"{name}.safetensors", {name: tensor})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in TENSORS}}))
    tensors = read_tensors(tmp_path)
    np.testing.assert_array_equal(tensors["b"], TENSORS["b"])
    np.testing.assert_array_equal(tensors["a"], TENSORS["a"])


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        (None, "has no weight_map"),
        ({"a": "../a.safetensors"}, "which is not in the same folder"),
        ({"a": "none.safetensors"}, "which is not in the same folder"),
        ({"c": "a.safetensors"}, "its files differ in a"),
        ({"a": "a.safetensors", "c": "a.safetensors"}, "its files differ in c"),
    ],
)
def test_an_index_that_contradicts_its_shards_is_refused(tmp_path, weight_map, message):
    write_safetensors(tmp_path / "a.safetensors", {"a": TENSORS["a"]})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ValueError, match=message):
        read_tensors(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1, "a": 2}', "names 'a' twice"),
        (b"\xff", "is not JSON"),
        (b"[1]", "must contain a JSON object, not a list"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a": ' + b"1" * 5_000 + b"}", r"config\.json is not JSON \(Exceeds the limit"),
        (rb'{"\ud800": 1}', r"config\.json is not JSON \(.* surrogates not allowed"),
        (rb'{"a": ["\uDC00\uD800"]}', r"config\.json is not JSON \(.* surrogates not allowed"),
    ],
)
def test_a_bad_json_file_is_refused(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_object(path)


def test_two_halves_of_a_surrogate_pair_are_a_character(tmp_path):
    (tmp_path / "vocab.json").write_bytes(rb'{"\ud83d\ude00": 1}')
    assert read_object(tmp_path / "vocab.json") == {"\U0001f600": 1}


def test_a_missing_json_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"config\.json is missing"):
        read_object(tmp_path / "config.json")


@pytest.mark.parametrize("layout", ["zip.bin", "legacy.bin"])
def test_both_layouts_of_torch_hold_the_tensors_of_safetensors(tmp_path, layout):
    folder = checkpoint("K", tmp_path)
    wanted = read_safetensors(folder / "model.safetensors")
    tensors = tensor_files.read_pytorch(folder / layout)
    matrix = next(name for name, tensor in sorted(wanted.items()) if tensor.ndim == 2)
    np.testing.assert_array_equal(tensors.pop("view"), wanted[matrix].T)
    assert tensors.keys() == wanted.keys()
    for name, tensor in wanted.items():
        np.testing.assert_array_equal(tensors[name], tensor)


@pytest.mark.parametrize("layout", ["zip.bin", "legacy.bin"])
@pytest.mark.parametrize("share", [0, 0.1, 2 / 3])
def test_a_torn_file_of_torch_is_to_be_copied_again(tmp_path, layout, share):
    content = (checkpoint("K", tmp_path) / layout).read_bytes()
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"pytorch_model\.bin.*copy the file again"):
        tensor_files.read_pytorch(path)


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def torch_zip(path, value, protocol=2):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_wants_to_run_something_is_refused_and_nothing_runs(
    tmp_path, capsys, protocol
):
    path = torch_zip(tmp_path / "pytorch_model.bin", {"x": Evil()}, protocol)
    with pytest.raises(ValueError, match=r"refers to .*print|pickle instruction"):
        tensor_files.read_pytorch(path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "does not contain a dictionary of tensors"),
        ({"epoch": 3}, "epoch is not a tensor"),
        (OrderedDict(), "does not contain a dictionary of tensors"),
        ({"x": np.zeros(2)}, "which might run code and was not run"),
        ({"x": {1, 2}}, "which might run code|pickle instruction"),
    ],
)
def test_a_pickle_of_anything_but_tensors_is_refused(tmp_path, value, message):
    with pytest.raises(ValueError, match=message):
        tensor_files.read_pytorch(torch_zip(tmp_path / "pytorch_model.bin", value))


@pytest.mark.parametrize(
    "instructions",
    [
        b"t.",
        b"}t.",
        b"\x85.",
        b"]K\x01K\x02s.",
        b"}K\x01a.",
        b"]}b.",
        b"K\x01Q.",
        b"ccollections\nOrderedDict\nK\x01\x85R.",
    ],
)
def test_instructions_that_no_checkpoint_needs_are_refused(tmp_path, instructions):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + instructions)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin.*; copy the file again"):
        tensor_files.read_pytorch(path)


def test_a_tensor_beyond_its_storage_is_refused():
    storage = tensor_files._Storage("<f4", "0", 4)
    numbers = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="x extends beyond its storage"):
        tensor_files._view("x", tensor_files._Tensor(storage, 1, (2, 2), (2, 1)), numbers)


def test_a_torch_tensor_without_axes_is_refused():
    storage = tensor_files._Storage("<f4", "0", 4)
    with pytest.raises(ValueError, match="x has an invalid shape"):
        tensor_files._view("x", tensor_files._Tensor(storage, 0, (), ()), np.zeros(4, "<f4"))


def test_a_torch_file_that_unpacks_to_far_more_is_not_read(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(5_000_000))
    with pytest.raises(ValueError, match="is compressed more than 100 times"):
        tensor_files.read_pytorch(path)


OPTIONS = {"type": "transformer", "dim-vocabs": [5, 5], "tied": []}


def test_options_may_end_in_several_nuls(tmp_path):
    text = np.frombuffer(b"type: transformer\n" + bytes(21), np.int8)
    np.savez(tmp_path / "model.npz", **{marian_files.OPTIONS: text})
    assert marian_files.read(tmp_path / "model.npz") == ({"type": "transformer"}, {})


@pytest.mark.parametrize("ending", ["npz", "bin"])
def test_a_cut_marian_file_is_refused_wherever_it_is_cut(tmp_path, ending):
    path = tmp_path / f"model.{ending}"
    {"npz": marian_files.write_npz, "bin": marian_files.write_bin}[ending](path, OPTIONS, TENSORS)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=rf"model\.{ending}"):
            marian_files.read(path)


@pytest.mark.parametrize("read", [marian_files.read, tensor_files.read_pytorch])
@pytest.mark.parametrize("offset", [60, 100, 1_000])
def test_damage_within_a_compressed_member_is_one_line(tmp_path, read, offset):
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(range(256)) * 4 + os.urandom(2_000))
    content = bytearray(path.read_bytes())
    content[offset : offset + 40] = bytes(255 - byte for byte in content[offset : offset + 40])
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.npz"):
        read(path)


@pytest.mark.parametrize("read", [marian_files.read, tensor_files.read_pytorch])
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, read):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read(tmp_path)


@pytest.mark.parametrize("ending", ["npz", "bin"])
def test_a_tensor_of_marian_without_axes_is_refused(tmp_path, ending):
    path = tmp_path / f"model.{ending}"
    write = {"npz": marian_files.write_npz, "bin": marian_files.write_bin}[ending]
    write(path, OPTIONS, TENSORS | {"x": np.array(1.0, np.float32)})
    with pytest.raises(ValueError, match=r"x (is a scalar|has the impossible shape)"):
        marian_files.read(path)


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        (0x0404, (1,) * 9, "a tensor has 9 axes"),
        (0x0404, (0,), r"x has the impossible shape \(0,\)"),
        (0x0404, (3,), r"x has fewer numbers than its shape \(3,\) needs"),
        (0x4101, (3,), r"x is stored as an int8 matrix, but has the shape \(3,\); a matrix has"),
        (0x4101, (2, 3), r"x has fewer numbers than its shape \(2, 3\) needs"),
    ],
)
def test_a_tensor_of_another_shape_than_its_numbers_is_refused(tmp_path, kind, shape, message):
    """The layout of marian's binary.cpp: headers of four numbers, names, shapes, a gap and data."""
    path = tmp_path / "model.bin"
    two_numbers = bytes(8)
    header = struct.pack("<4Q", 2, kind, len(shape), len(two_numbers))
    counts = struct.pack("<2Q", 1, 1)
    path.write_bytes(
        counts + header + b"x\0" + struct.pack(f"<{len(shape)}iQ", *shape, 0) + two_numbers
    )
    with pytest.raises(ValueError, match=message):
        marian_files.read(path)


def test_a_date_is_a_string_of_options():
    options = marian_files.parse_options(b"day: 2020-01-01\nbeam-size: 6\nnormalize: 0.6\n", "a")
    assert options == {"day": "2020-01-01", "beam-size": 6, "normalize": 0.6}
    assert json.loads(json.dumps(options)) == options


BOMB = "a: &a [x, x]\n" + "".join(f"{'b' * n}: &b{n} [*a, *a]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"decoder\.yml is not plain YAML"),
        (b"[1]", r"decoder\.yml must be a YAML mapping"),
        (BOMB.encode(), r"decoder\.yml is not plain YAML \(it uses an alias or a tag"),
        (b"a: 0x" + b"f" * 5_000, r"decoder\.yml is not plain YAML \(Exceeds the limit"),
        (b"a: !!binary aGk=", "it uses an alias or a tag"),
        (b"a: !!timestamp 2020-01-01", "it uses an alias or a tag"),
        (b"a: !!set {b}", "it uses an alias or a tag"),
        (b"#" * 2**20 + b"\n", r"decoder\.yml is larger than 1,048,576 bytes"),
    ],
)
def test_options_that_json_cannot_hold_or_that_expand_are_refused(tmp_path, content, message):
    path = tmp_path / "decoder.yml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        marian_files.read_options(path)


def test_packed_integers_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    np.savez(path, Wemb=np.zeros((2, 2), np.int8), **{marian_files.OPTIONS: np.zeros(1, np.int8)})
    with pytest.raises(ValueError, match="Wemb has dtype int8, packed"):
        marian_files.read(path)


def test_an_npz_with_pickled_objects_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    stream = io.BytesIO()
    np.savez(stream, x=np.array([Evil()], object))
    path.write_bytes(stream.getvalue())
    with pytest.raises(ValueError, match=r"model\.npz"):
        marian_files.read(path)


def test_a_model_without_options_is_refused(tmp_path):
    np.savez(tmp_path / "model.npz", Wemb=np.zeros((2, 2), np.float32))
    with pytest.raises(ValueError, match=r"does not contain special:model\.yml"):
        marian_files.read(tmp_path / "model.npz")
