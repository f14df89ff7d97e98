"""The properties that Keras and keras-hub require of every layer.

Their test suites check constructor and config, build, symbolic and eager call, shapes and dtypes, a
training step, saving and loading, and half precision.
"""

import importlib
import inspect
import json
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.nightly import sampled
from support.numpy_layers import randomized

import tfformer
from tfformer.config import Dialect
from tfformer.model.fast_layers import Dense, Dropout, LayerNormalization
from tfformer.model.layers import Residual
from tfformer.model.recurrence import RecurrentDecoder

D, HEADS, D_FF = 8, 2, 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, D)).astype(np.float32)
MEMORY = RNG.normal(size=(2, 5, D)).astype(np.float32)
IDS = RNG.integers(1, 11, size=(2, 4)).astype(np.int32)
LAYER = {"d_model": D, "num_heads": HEADS, "d_ff": D_FF, "norm": "pre", "activation": "gelu"}
DIALECT = {"position_layout": "halves", "epsilon": 1e-5}
STACK = LAYER | {"num_layers": 1, "dialect": DIALECT}
MODEL = STACK | {
    "tie_embeddings": "none",
    "dialect": DIALECT | {"output_bias": True},
    "dropout": 0.0,
    "use_bias": False,
}
VOCABULARIES = {"source_vocab_size": 11, "target_vocab_size": 13}
LAYERS = {  # class, arguments, inputs, output shape
    "PositionalEncoding": (tfformer.PositionalEncoding, {"d_model": D}, X, (2, 4, D)),
    "TokenEmbedding": (tfformer.TokenEmbedding, {"vocab_size": 11, "d_model": D}, IDS, (2, 4, D)),
    "MultiHeadAttention": (
        tfformer.MultiHeadAttention,
        {"d_model": D, "num_heads": HEADS, "use_bias": False},
        {"query": X, "memory": MEMORY},
        (2, 4, D),
    ),
    "SimpleRecurrentUnit": (tfformer.SimpleRecurrentUnit, {"d_model": D}, X, (2, 4, D)),
    "FeedForward": (tfformer.FeedForward, {"d_model": D, "d_ff": D_FF}, X, (2, 4, D)),
    "Residual": (Residual, {"d_model": D}, {"x": X, "sublayer_output": 2 * X}, (2, 4, D)),
    "EncoderLayer": (tfformer.EncoderLayer, LAYER, X, (2, 4, D)),
    "DecoderLayer": (tfformer.DecoderLayer, LAYER, {"x": X, "memory": MEMORY}, (2, 4, D)),
    "Encoder": (tfformer.Encoder, STACK, X, (2, 4, D)),
    "Decoder": (tfformer.Decoder, STACK, {"embeddings": X, "memory": MEMORY}, (2, 4, D)),
    "RecurrentDecoder": (RecurrentDecoder, STACK, {"embeddings": X, "memory": MEMORY}, (2, 4, D)),
    "Transformer": (
        tfformer.Transformer,
        MODEL | VOCABULARIES,
        {"inputs": IDS, "target": IDS[:, :3]},
        (2, 3, 13),
    ),
    "LanguageModel": (tfformer.LanguageModel, MODEL | {"vocab_size": 11}, IDS, (2, 4, 11)),
    "Dense": (Dense, {"units": 6}, X, (2, 4, 6)),
    "LayerNormalization": (LayerNormalization, {}, X, (2, 4, D)),
    "Dropout": (Dropout, {"rate": 0.5}, X, (2, 4, D)),
}
MODELS = {"Transformer", "LanguageModel"}
WITHOUT_WEIGHTS = {"PositionalEncoding", "Dropout"}
each_layer = pytest.mark.parametrize("name", LAYERS)


def made(key: str, **arguments) -> keras.layers.Layer:
    layer_class, settings, _, _ = LAYERS[key]
    return layer_class(**settings | arguments)


def called(layer: keras.layers.Layer, inputs, **arguments) -> tf.Tensor:
    if isinstance(inputs, dict):
        return layer(**inputs, **arguments)
    return layer(inputs, **arguments)


def symbolic(inputs):
    return keras.tree.map_structure(lambda x: keras.Input(x.shape[1:], dtype=x.dtype.name), inputs)


@pytest.fixture
def keras_hub_test_case(monkeypatch):
    """The test case of keras-hub. Only its tests of data pipelines need grain."""
    pytest.importorskip("keras_hub")
    if importlib.util.find_spec("grain") is None:
        monkeypatch.setitem(sys.modules, "grain", types.ModuleType("grain"))
    return importlib.import_module("keras_hub.src.tests.test_case").TestCase()


BY_DAY = {"TokenEmbedding", "EncoderLayer"}  # each takes some seconds


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(LAYERS, BY_DAY))
def test_layer_passes_the_test_of_keras_hub(name, keras_hub_test_case):
    layer_class, settings, inputs, shape = LAYERS[name]
    layer = made(name)
    called(layer, inputs)
    keras_hub_test_case.run_layer_test(
        layer_class,
        settings,
        keras.tree.map_structure(tf.constant, inputs),
        tf.TensorShape(shape),
        expected_num_trainable_weights=len(layer.trainable_weights),
        expected_num_non_trainable_variables=len(layer.non_trainable_variables),
        run_training_check=bool(layer.trainable_weights),
        run_precision_checks=name != "Transformer",  # that test calls a model with one argument
    )


@pytest.mark.slow
@each_layer
def test_layer_passes_the_test_of_keras(name):
    testing = pytest.importorskip("keras.src.testing")
    layer_class, settings, inputs, shape = LAYERS[name]
    has_one_input = not isinstance(inputs, dict)  # its training check knows no others
    if isinstance(inputs, dict) and name not in MODELS:
        inputs = {"input_shape": {f"{key}_shape": value.shape for key, value in inputs.items()}}
    elif isinstance(inputs, dict):
        inputs = {"input_data": [tf.constant(value) for value in inputs.values()]}
    else:
        inputs = {"input_data": tf.constant(inputs)}
    testing.TestCase().run_layer_test(
        layer_class,
        settings,
        **inputs,
        expected_output_shape=shape,
        run_training_check=has_one_input and name not in WITHOUT_WEIGHTS,
    )


@pytest.mark.parametrize("name", ["Encoder", "Decoder", "Transformer", "LanguageModel"])
def test_every_layer_within_is_built_with_it(name):
    layer, inputs = made(name), symbolic(LAYERS[name][2])
    called(layer, inputs)
    assert [each.name for each in layer._flatten_layers() if not each.built] == []


SIZES = ("d_model", "num_heads", "d_ff", "num_layers", "vocab_size", "source_vocab_size")
TOO_SMALL = [
    (name, size)
    for name, (_, settings, _, _) in LAYERS.items()
    for size in SIZES
    if size in settings
]


@pytest.mark.parametrize(("name", "size"), TOO_SMALL)
def test_a_size_that_is_no_whole_number_from_1_is_refused_by_its_name(name, size):
    for value in (0, -2, 2.5):
        message = f"^{size}={value} must be a whole number of at least 1$"
        with pytest.raises(ValueError, match=message):
            made(name, **{size: value})


RATES = [
    *(("dropout", rate, "must be at least 0 and below 1") for rate in (-0.1, 1, 30)),
    *(("epsilon", epsilon, "must be from 0 to 1") for epsilon in (-0.5, 1.5)),
    *((name, "a", "is of type str; pass a number") for name in ("dropout", "epsilon")),
    ("epsilon", None, "is of type NoneType; pass a number"),
]


@pytest.mark.parametrize("name", ["Residual", "EncoderLayer", "DecoderLayer"])
@pytest.mark.parametrize(("argument", "value", "rule"), RATES)
def test_a_rate_outside_its_range_is_refused_by_its_name(name, argument, value, rule):
    with pytest.raises(ValueError, match=f"^{argument}={value!r} {rule}$"):
        made(name, **{argument: value})


TIES = "tie_embeddings='both' is not known; choose one of 'none', 'output', 'input', 'all'"
NORMS = "norm='sandwich' is not known; choose one of 'post', 'pre', 'marian'"
NOT_KNOWN = [
    (tfformer.PositionalEncoding, {"d_model": 7}, "d_model=7 is odd; .* choose an even d_model"),
    (
        tfformer.PositionalEncoding,
        {"d_model": D, "layout": "thirds"},
        "layout='thirds' is not known; choose one of 'interleaved', 'halves'",
    ),
    (
        tfformer.PositionalEncoding,
        {"d_model": D, "timescale": "fast"},
        "timescale='fast' is not known; choose one of 'paper', 't2t'",
    ),
    (
        tfformer.MultiHeadAttention,
        {"d_model": 10, "num_heads": 3},
        "d_model=10 cannot be split into num_heads=3 equal heads; choose a divisor",
    ),
    (
        tfformer.FeedForward,
        {"d_model": D, "d_ff": D_FF, "activation": "swosh"},
        "activation='swosh' is not known; use relu, gelu, swish or a function",
    ),
    (tfformer.EncoderLayer, LAYER | {"norm": "sandwich"}, NORMS),
    (tfformer.DecoderLayer, LAYER | {"norm": "sandwich"}, NORMS),
    (
        tfformer.LanguageModel,
        {"vocab_size": 9, "norm": "marian"},
        "norm='marian' is not known; choose one of 'post', 'pre'",
    ),
    (tfformer.LanguageModel, {"vocab_size": 9, "tie_embeddings": "both"}, TIES),
    (tfformer.Transformer, VOCABULARIES | {"tie_embeddings": "both"}, TIES),
    (
        tfformer.Transformer,
        VOCABULARIES | {"tie_embeddings": "all"},
        "tie_embeddings='all' needs one shared vocabulary, but source_vocab_size=11 and "
        "target_vocab_size=13; share the vocabulary or choose 'output'",
    ),
    (
        tfformer.Transformer,
        VOCABULARIES | {"tie_embeddings": "input"},
        "tie_embeddings='input' needs one shared vocabulary, .*",
    ),
    (tfformer.Transformer, VOCABULARIES | {"decoder_kind": "gru"}, "decoder_kind='gru' .*"),
    (
        tfformer.LanguageModel.from_preset,
        {"preset": "huge", "vocab_size": 9},
        "preset='huge' is not known; choose one of 'tiny', 'small', 'base', 'big', 'student-tiny', "
        "'student-base'",
    ),
    (
        tfformer.SmoothedCrossEntropy,
        {"label_smoothing": 1.5},
        "label_smoothing=1.5 must be at least 0 and below 1",
    ),
    (
        tfformer.look_ahead_mask,
        {"queries": None},
        "queries=None is not a length; pass the token ids.*",
    ),
]


@pytest.mark.parametrize(("call", "arguments", "message"), NOT_KNOWN)
def test_an_argument_that_is_not_known_is_refused(call, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call(**arguments)


TO_NUMPY = {int: np.int64, float: np.float64}
MORE_NUMBERS = {
    "PositionalEncoding": {"offset": 2},
    "Encoder": {"dropout": 0.25},
    "Transformer": {"num_decoder_layers": 2},
}


@pytest.mark.parametrize("name", sorted(LAYERS.keys() - {"Dense", "LayerNormalization", "Dropout"}))
def test_numbers_of_numpy_are_taken_and_kept_as_plain_ones(name):
    layer_class, settings, inputs, shape = LAYERS[name]
    settings = settings | MORE_NUMBERS.get(name, {})
    numbers = {key: value for key, value in settings.items() if type(value) in TO_NUMPY}
    of_numpy = {key: TO_NUMPY[type(value)](value) for key, value in numbers.items()}
    layer = layer_class(**settings | of_numpy)
    config = layer.get_config()
    for key, value in numbers.items():
        assert (type(config[key]), config[key]) == (type(value), value)
    json.dumps(config)
    assert called(layer, inputs).shape == shape


@pytest.mark.parametrize("name", ["PositionalEncoding", "Encoder", "Decoder"])
@pytest.mark.parametrize(
    ("inputs", "error"),
    [(IDS, "expected ndim=3, found ndim=2"), (X[:, :, :6], "expected axis -1 .* value 8")],
)
def test_ids_and_vectors_of_another_width_are_refused_in_the_name_of_the_layer(name, inputs, error):
    layer_class, settings, _, _ = LAYERS[name]
    layer = layer_class(**settings, name="mine")
    further_inputs = {"memory": MEMORY} if name == "Decoder" else {}
    with pytest.raises(ValueError, match=f"of layer .mine. is incompatible .*: {error}"):
        layer(inputs, **further_inputs)


@each_layer
def test_every_argument_is_an_attribute_and_in_the_config(name):
    _, settings, _, _ = LAYERS[name]
    layer = made(name)
    config = layer.get_config()
    assert settings.items() <= config.items()
    for argument, value in settings.items():
        if argument == "dialect":
            value = Dialect.of(value)
        assert getattr(layer, argument) == value, argument
    twin = type(layer).from_config(config)
    assert twin.get_config() == config


@each_layer
def test_outputs_have_their_shape_and_type_and_half_precision_is_near_float32(name):
    """Of real and symbolic inputs."""
    _, _, inputs, shape = LAYERS[name]
    outputs = []
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        layer = made(name, dtype=policy)
        expected = called(layer, symbolic(inputs))
        output = called(randomized(layer), inputs)
        assert expected.shape == (None, *shape[1:])
        assert expected.dtype == output.dtype.name == layer.compute_dtype
        assert tuple(output.shape) == shape
        assert {weight.dtype for weight in layer.weights} <= {"float32"}
        outputs.append(np.asarray(output, np.float32))
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], rtol=0.1, atol=0.25)


@each_layer
def test_layer_takes_the_arguments_of_every_keras_layer(name):
    l2 = keras.regularizers.L2(0.5)
    layer = made(name, activity_regularizer=l2, trainable=False, dtype="float64", name="own_name")
    for twin in (layer, type(layer).from_config(layer.get_config())):
        assert (twin.name, twin.compute_dtype, twin.trainable) == ("own_name", "float64", False)
        output = called(twin, LAYERS[name][2])
        expected = 0.5 * np.sum(np.square(output)) / len(output)
        assert not twin.trainable_weights
        np.testing.assert_allclose(sum(twin.losses), expected, rtol=1e-6)


SERIALISED = {
    "SmoothedCrossEntropy": tfformer.SmoothedCrossEntropy(0.1),
    "WarmupSchedule": tfformer.WarmupSchedule(64, 100, 2.0),
    "LinearSchedule": tfformer.LinearSchedule(0.1, 10, 100),
}


@pytest.mark.parametrize("name", SERIALISED)
def test_losses_and_schedules_pass_the_test_of_keras(name):
    testing = pytest.importorskip("keras.src.testing")
    testing.TestCase().run_class_serialization_test(SERIALISED[name])


@pytest.mark.parametrize("name", SERIALISED)
def test_every_argument_of_a_loss_or_schedule_is_an_attribute_and_in_the_config(name):
    instance = SERIALISED[name]
    config = instance.get_config()
    for argument in inspect.signature(type(instance)).parameters:
        if argument != "dtype":  # Keras keeps the policy
            assert config[argument] == getattr(instance, argument), argument
