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

    from tfformer.model.stacks import Encoder
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

    It is the source embedding, the target embedding, the output matrix or the output bias.
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
PROJECTIONS = {  # block -> projections; all have a kernel, and all but the candidate have a bias
    "self_attention": ("query", "key", "value", "output"),
    "recurrence": ("candidate", "forget"),
    "cross_attention": ("query", "key", "value", "output"),
    "feed_forward": ("inner", "outer"),
}
# Names of the layers and variables in this package, where they differ
LAYERS = {"key": "key_value", "output": "output_projection"}
NORM_VARIABLES = {"scale": "gamma", "bias": "beta"}

WeightName = Slot | TokenTable


def weight_path(weight: WeightName) -> str:
    """Return a weight's name in tfformer's files, such as "decoder/0/feed_forward/norm/scale"."""
    return "/".join(map(str, weight))


def shapes(config: ModelConfig) -> dict[Slot, tuple[int, ...]]:
    """Return every slot of an encoder-decoder's layers with its shape."""
    decoder_layers = config.num_decoder_layers or config.num_layers
    slots = [
        *_slots("encoder", config.num_layers, ENCODER_BLOCKS, config.norm),
        *_slots("decoder", decoder_layers, DECODER_BLOCKS[config.decoder], config.norm),
    ]
    return {slot: _shape(config, slot) for slot in slots}


def _slots(stack: str, layers: int, blocks: tuple[str, ...], norm: str) -> Iterator[Slot]:
    for layer in range(layers):
        for block in blocks:
            for projection in PROJECTIONS[block]:
                yield Slot(stack, layer, block, projection, "kernel")
                if projection != "candidate":
                    yield Slot(stack, layer, block, projection, "bias")
            for kind in NORM_VARIABLES:
                yield Slot(stack, layer, block, "norm", kind)
    if norm != "post":
        for kind in NORM_VARIABLES:
            yield Slot(stack, None, "final", "norm", kind)


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
    for name, stack, blocks in (
        ("encoder", model.encoder, ENCODER_BLOCKS),
        ("decoder", model.decoder, DECODER_BLOCKS[model.decoder_kind]),
    ):
        for slot in _slots(name, len(stack.layers), blocks, model.norm):
            if slot.projection == "key":
                yield _variable(stack, slot), (slot, slot._replace(projection="value"))
            elif slot.projection != "value":
                yield _variable(stack, slot), (slot,)


def _variable(stack: Encoder, slot: Slot) -> keras.Variable:
    if slot.layer is None:
        return getattr(stack.normalization, NORM_VARIABLES[slot.kind])
    layer = stack.layers[slot.layer]
    if slot.projection == "norm":
        residual = getattr(layer, f"{slot.block}_residual")
        return getattr(residual.normalization, NORM_VARIABLES[slot.kind])
    dense = getattr(getattr(layer, slot.block), LAYERS.get(slot.projection, slot.projection))
    return getattr(dense, slot.kind)


def take(model: Transformer) -> dict[WeightName, np.ndarray]:
    """Return the arrays of a model with biases in all projections, by name."""
    arrays: dict[WeightName, np.ndarray] = {}
    for variable, names in variables(model):
        separate = np.split(np.asarray(variable), len(names), axis=-1)
        arrays |= dict(zip(names, separate, strict=True))
    return arrays
