"""Names for the places of a Transformer's weights, one for each tensor that other toolkits store.

Other toolkits store separate matrices for keys and values; here one variable contains both.
`variables` yields each variable with its places.
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

    side: str  # "encoder" or "decoder"
    layer: int | None  # from 0; None for the normalisation after the last layer
    block: str  # "self_attention", "recurrence", "cross_attention", "feed_forward", or "final"
    part: str  # "query", "key", "value", "output", "candidate", "forget", "inner", "outer", "norm"
    kind: str  # "kernel" (inputs, outputs), "bias" or "scale"


class Table(NamedTuple):
    """One tensor with a row for each token.

    It is an embedding, or the output's "matrix" or "bias".
    """

    side: str  # source, target, output
    kind: str = "matrix"


SOURCE, TARGET, OUTPUT = (Table(side) for side in ("source", "target", "output"))
OUTPUT_BIAS = Table("output", "bias")
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
PARTS = {
    "self_attention": ("query", "key", "value", "output"),
    "recurrence": ("candidate", "forget"),
    "cross_attention": ("query", "key", "value", "output"),
    "feed_forward": ("inner", "outer"),
}
PROJECTIONS = {  # parts -> the layer of this package that concatenates them
    ("query",): "query",
    ("key", "value"): "key_value",
    ("output",): "output_projection",
    ("candidate",): "candidate",
    ("forget",): "forget",
    ("inner",): "inner",
    ("outer",): "outer",
}

Place = Slot | Table


def place_name(place: Place) -> str:
    """Return the name of a place in this package's files, such as "decoder/0/final/norm/scale"."""
    return "/".join(map(str, place))


def shapes(config: ModelConfig) -> dict[Slot, tuple[int, ...]]:
    """Return every slot of an encoder-decoder's layers with its shape."""
    return {
        slot: _shape(config, slot)
        for side in ("encoder", "decoder")
        for slot in _slots(config, side)
    }


def _slots(config: ModelConfig, side: str) -> Iterator[Slot]:
    decoder_layers = config.num_decoder_layers or config.num_layers
    for layer in range(config.num_layers if side == "encoder" else decoder_layers):
        for block in _blocks(side, config.decoder):
            for part in PARTS[block]:
                for kind in _kinds(part):
                    yield Slot(side, layer, block, part, kind)
            yield from _norm_slots(side, layer, block)
    if config.norm != "post":
        yield from _norm_slots(side, None, "final")


def _blocks(side: str, decoder: str) -> tuple[str, ...]:
    return ENCODER_BLOCKS if side == "encoder" else DECODER_BLOCKS[decoder]


def _kinds(part: str) -> tuple[str, ...]:
    return ("kernel",) if part == "candidate" else ("kernel", "bias")


def _norm_slots(side: str, layer: int | None, block: str) -> tuple[Slot, Slot]:
    norm = Slot(side, layer, block, "norm", "scale")
    return norm, norm._replace(kind="bias")


def _shape(config: ModelConfig, slot: Slot) -> tuple[int, ...]:
    inputs = outputs = config.d_model
    d_ff = config.d_ff
    if slot.side == "decoder":
        d_ff = config.dialect.decoder_d_ff or d_ff
    if slot.part == "inner":
        outputs = d_ff
    if slot.part == "outer":
        inputs = d_ff
    return (inputs, outputs) if slot.kind == "kernel" else (outputs,)


def variables(model: Transformer) -> Iterator[tuple[keras.Variable, tuple[Place, ...]]]:
    """Yield every variable of a model with the places that are concatenated in it.

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
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            yield from _layer_variables(side, number, layer, _blocks(side, model.decoder_kind))
        if stack.normalization:
            yield from _norm_variables(stack.normalization, side, None, "final")


def _layer_variables(
    side: str, number: int, layer: keras.layers.Layer, blocks: tuple[str, ...]
) -> Iterator[tuple[keras.Variable, tuple[Place, ...]]]:
    for block in blocks:
        sublayer = getattr(layer, block)
        for parts, name in PROJECTIONS.items():
            if parts[0] in PARTS[block]:
                for kind in _kinds(parts[0]):
                    slots = tuple(Slot(side, number, block, part, kind) for part in parts)
                    yield getattr(getattr(sublayer, name), kind), slots
        residual = getattr(layer, f"{block}_residual")
        yield from _norm_variables(residual.normalization, side, number, block)


def _norm_variables(
    norm: keras.layers.Layer, side: str, layer: int | None, block: str
) -> Iterator[tuple[keras.Variable, tuple[Place, ...]]]:
    scale, bias = _norm_slots(side, layer, block)
    yield norm.gamma, (scale,)
    yield norm.beta, (bias,)


def take(model: Transformer) -> dict[Place, np.ndarray]:
    """Return the arrays of a model with biases in all projections, by place."""
    weights: dict[Place, np.ndarray] = {}
    for variable, places in variables(model):
        parts = np.split(np.asarray(variable), len(places), axis=-1)
        weights |= dict(zip(places, parts, strict=True))
    return weights
