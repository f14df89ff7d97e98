"""Names for a Transformer's weights, one for each tensor that other toolkits store.

Other toolkits store separate matrices for keys and values; here one variable contains both.
`variables` yields each variable with the names of its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.config import ModelConfig

if TYPE_CHECKING:
    import keras

    from tfformer.model.transformer import Transformer


class Slot(NamedTuple):
    """One tensor of a layer."""

    stack: str  # "encoder" or "decoder"
    layer: int | None  # from 0; None for the normalisation after the last layer
    block: str  # "self_attention", "recurrence", "cross_attention", "feed_forward", or "final"
    projection: str  # one of `PROJECTIONS[block]`, or "norm"
    kind: str  # "kernel" (inputs, outputs), "bias" or "scale"


class TokenTable(NamedTuple):
    """One tensor with a row for each token.

    It is an embedding, or the output's "matrix" or "bias".
    """

    name: str  # "source", "target" or "output"
    kind: str = "matrix"


SOURCE, TARGET, OUTPUT = (TokenTable(name) for name in ("source", "target", "output"))
OUTPUT_BIAS = TokenTable("output", "bias")
TABLES = {  # tie_embeddings -> the tables that are distinct
    "all": (SOURCE,),
    "input": (SOURCE, OUTPUT),
    "output": (SOURCE, TARGET),
    "none": (SOURCE, TARGET, OUTPUT),
}
ENCODER_BLOCKS = ("self_attention", "feed_forward")
DECODER_BLOCKS = {  # the kind of decoder -> its blocks
    "attention": ("self_attention", "cross_attention", "feed_forward"),
    "ssru": ("recurrence", "cross_attention", "feed_forward"),
}
PROJECTIONS = {
    "self_attention": ("query", "key", "value", "output"),
    "recurrence": ("candidate", "forget"),
    "cross_attention": ("query", "key", "value", "output"),
    "feed_forward": ("inner", "outer"),
}
DENSE_LAYERS = {  # projections -> the layer of this package that concatenates them
    ("query",): "query",
    ("key", "value"): "key_value",
    ("output",): "output_projection",
    ("candidate",): "candidate",
    ("forget",): "forget",
    ("inner",): "inner",
    ("outer",): "outer",
}

WeightName = Slot | TokenTable


def weight_path(weight: WeightName) -> str:
    """Return a weight's name in this package's files, such as "decoder/0/final/norm/scale"."""
    return "/".join(map(str, weight))


def shapes(config: ModelConfig) -> dict[Slot, tuple[int, ...]]:
    """Return every slot of an encoder-decoder's layers with its shape."""
    return {
        slot: _shape(config, slot)
        for stack in ("encoder", "decoder")
        for slot in _slots(config, stack)
    }


def _slots(config: ModelConfig, stack: str) -> Iterator[Slot]:
    decoder_layers = config.num_decoder_layers or config.num_layers
    for layer in range(config.num_layers if stack == "encoder" else decoder_layers):
        for block in _blocks(stack, config.decoder):
            for projection in PROJECTIONS[block]:
                for kind in _kinds(projection):
                    yield Slot(stack, layer, block, projection, kind)
            yield from _norm_slots(stack, layer, block)
    if config.norm != "post":
        yield from _norm_slots(stack, None, "final")


def _blocks(stack: str, decoder: str) -> tuple[str, ...]:
    return ENCODER_BLOCKS if stack == "encoder" else DECODER_BLOCKS[decoder]


def _kinds(projection: str) -> tuple[str, ...]:
    return ("kernel",) if projection == "candidate" else ("kernel", "bias")


def _norm_slots(stack: str, layer: int | None, block: str) -> tuple[Slot, Slot]:
    norm = Slot(stack, layer, block, "norm", "scale")
    return norm, norm._replace(kind="bias")


def _shape(config: ModelConfig, slot: Slot) -> tuple[int, ...]:
    inputs = outputs = config.d_model
    d_ff = config.d_ff
    if slot.stack == "decoder":
        d_ff = config.dialect.decoder_d_ff or d_ff
    if slot.projection == "inner":
        outputs = d_ff
    if slot.projection == "outer":
        inputs = d_ff
    return (inputs, outputs) if slot.kind == "kernel" else (outputs,)


def variables(model: Transformer) -> Iterator[tuple[keras.Variable, tuple[WeightName, ...]]]:
    """Yield every variable of a model with the names of the tensors that are concatenated in it.

    The model must have biases in all projections.
    """
    embeddings = {
        SOURCE: model.source_embedding,
        TARGET: model.target_embedding,
        OUTPUT: model.output_embedding,
    }
    for table in TABLES[model.get_config()["tie_embeddings"]]:
        yield embeddings[table].embeddings, (table,)
    if model.output_bias is not None:
        yield model.output_bias, (OUTPUT_BIAS,)
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            yield from _layer_variables(name, number, layer, _blocks(name, model.decoder_kind))
        if stack.normalization:
            yield from _norm_variables(stack.normalization, name, None, "final")


def _layer_variables(
    stack: str, number: int, layer: keras.layers.Layer, blocks: tuple[str, ...]
) -> Iterator[tuple[keras.Variable, tuple[WeightName, ...]]]:
    for block in blocks:
        sublayer = getattr(layer, block)
        for projections, name in DENSE_LAYERS.items():
            if projections[0] in PROJECTIONS[block]:
                for kind in _kinds(projections[0]):
                    variable = getattr(getattr(sublayer, name), kind)
                    yield variable, tuple(Slot(stack, number, block, p, kind) for p in projections)
        residual = getattr(layer, f"{block}_residual")
        yield from _norm_variables(residual.normalization, stack, number, block)


def _norm_variables(
    norm: keras.layers.Layer, stack: str, layer: int | None, block: str
) -> Iterator[tuple[keras.Variable, tuple[WeightName, ...]]]:
    scale, bias = _norm_slots(stack, layer, block)
    yield norm.gamma, (scale,)
    yield norm.beta, (bias,)


def take(model: Transformer) -> dict[WeightName, np.ndarray]:
    """Return the arrays of a model with biases in all projections, by name."""
    arrays: dict[WeightName, np.ndarray] = {}
    for variable, names in variables(model):
        separate = np.split(np.asarray(variable), len(names), axis=-1)
        arrays |= dict(zip(names, separate, strict=True))
    return arrays
