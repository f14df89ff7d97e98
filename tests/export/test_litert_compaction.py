"""Compacted LiteRT files compute the same results, and store equal tables once."""

import copy

import numpy as np
import pytest
import tensorflow as tf

missing = "LiteRT is not installed: pip install -e '.[litert]'"
flatbuffer_utils = pytest.importorskip("ai_edge_litert.tools.flatbuffer_utils", reason=missing)
compaction = pytest.importorskip("tfformer.export.litert.compaction")
schema = compaction.schema

TABLE = np.random.default_rng(1).normal(size=(64, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def converted(tmp_path_factory) -> bytes:
    """A file with two signatures that differ only in the width of x (width, 32)."""

    def over(width):
        def add(x):
            return {"y": tf.concat([tf.sin(x) + TABLE[:width], tf.zeros((40, 32))], axis=0)}

        return tf.function(add, input_signature=[tf.TensorSpec((width, 32), tf.float32, "x")])

    functions = {f"add_{width}": over(width) for width in (64, 48)}
    folder = str(tmp_path_factory.mktemp("two_widths"))
    tf.saved_model.save(tf.Module(), folder, signatures=functions)
    names = list(functions)
    return tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=names).convert()


def answer(file, signature, x) -> dict[str, np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_path=str(file)).get_signature_runner(signature)(x=x)


@pytest.fixture
def two_widths(converted):
    """The model in that file, to be changed."""
    return flatbuffer_utils.convert_bytearray_to_object(bytearray(converted))


@pytest.mark.slow
def test_a_compact_file_computes_the_same_of_smaller_constants(two_widths, tmp_path):
    file = tmp_path / "compact.tflite"
    compaction.compact(two_widths)
    file.write_bytes(flatbuffer_utils.convert_object_to_bytearray(two_widths))
    for width in (64, 48):
        x = np.random.default_rng(width).normal(size=(width, 32)).astype(np.float32)
        outputs = answer(file, f"add_{width}", x)
        np.testing.assert_allclose(outputs["y"][:width], np.sin(x) + TABLE[:width], atol=1e-6)
        np.testing.assert_array_equal(outputs["y"][width:], np.zeros((40, 32)))
    contents = [bytes(buffer.data) for buffer in two_widths.buffers if buffer.data is not None]
    assert [content for content in contents if len(content) >= 4096] == [TABLE.tobytes()]


def test_a_buffer_of_several_shapes_and_types_stays_apart(two_widths, tmp_path):
    """One buffer of zeros as (40, 32), (1280,) and integers; two of the tensors are outputs.

    Each is filled in with the right shape and type, or left as a constant.
    """
    signature = next(each for each in two_widths.signatureDefs if each.signatureKey == b"add_64")
    graph = two_widths.subgraphs[signature.subgraphIndex]
    (zeros,) = [
        t
        for t in graph.tensors
        if tuple(t.shape) == (40, 32) and two_widths.buffers[t.buffer].data is not None
    ]
    flat, integers = copy.copy(zeros), copy.copy(zeros)
    flat.shape, integers.type = np.array([1280], np.int32), schema.TensorType.INT32
    for name, tensor in {"flat": flat, "whole": integers}.items():
        output = schema.TensorMapT()
        output.name, output.tensorIndex = name.encode(), len(graph.tensors)
        signature.outputs.append(output)
        graph.outputs = np.append(graph.outputs, output.tensorIndex).astype(np.int32)
        graph.tensors.append(tensor)
    file = tmp_path / "compact.tflite"
    compaction.compact(two_widths)
    file.write_bytes(flatbuffer_utils.convert_object_to_bytearray(two_widths))
    x = np.random.default_rng(2).normal(size=(64, 32)).astype(np.float32)
    outputs = answer(file, "add_64", x)
    np.testing.assert_allclose(outputs["y"][:64], np.sin(x) + TABLE, atol=1e-6)
    np.testing.assert_array_equal(outputs["y"][64:], np.zeros((40, 32)))
    np.testing.assert_array_equal(outputs["flat"], np.zeros(1280))
    np.testing.assert_array_equal(outputs["whole"], np.zeros((40, 32)))
    assert zeros.buffer == flat.buffer == 0  # made by operators
    assert integers.buffer != 0  # stays a constant


def test_equal_tables_are_written_once(two_widths):
    """A file with the same graph twice stores each tensor and operator once."""
    two_widths.subgraphs[1] = copy.deepcopy(two_widths.subgraphs[0])
    compaction.compact(two_widths)
    file = schema.Model.GetRootAs(flatbuffer_utils.convert_object_to_bytearray(two_widths))
    first, second = file.Subgraphs(0), file.Subgraphs(1)
    assert first.OperatorsLength() == second.OperatorsLength() >= 3
    assert first.TensorsLength() == second.TensorsLength()
    for number in range(first.OperatorsLength()):
        assert first.Operators(number)._tab.Pos == second.Operators(number)._tab.Pos
    for number in range(first.TensorsLength()):
        assert first.Tensors(number)._tab.Pos == second.Tensors(number)._tab.Pos
