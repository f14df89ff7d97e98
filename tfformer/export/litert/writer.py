"""Writes a translator as one LiteRT file that uses only LiteRT's builtin operations.

The file contains the encoder, the search with its cache, and the weights. A dynamic file accepts
any batch size and length. A static file accepts one sentence; it has signatures for several source
widths, which share the weights, so all its shapes are fixed and a short sentence does not cost as
much as a long one. Shape letters: B sentences, S source tokens, T target tokens, N beams, P tokens
of a prefix, K continuations.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils

from tfformer.engines.engine import ALIGN, BEAM, CONTINUATIONS, PREFIX
from tfformer.export.litert.converter import convert
from tfformer.export.saved_model.signatures import Functions
from tfformer.inference.graphs import (
    aligned_ids,
    continue_translations,
    source_ids,
    translate_ids,
    with_end,
)
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.runtime.tracing import traced

FIRST_WIDTH = 16
DTYPES = {
    schema.TensorType.INT32: "int32",
    schema.TensorType.FLOAT32: "float32",
    schema.TensorType.STRING: "string",
}


def write(path: Path, translator: TextModel, quantize: str, static: bool, aligns: bool) -> None:
    """Write a translator as a LiteRT file.

    The file has a greedy search and, if `aligns` and the model returns its attention, alignments.
    With more than one beam, it also has a beam search and continues prefixes. The runtimes pack the
    weights again for every signature, so each signature needs memory.
    """
    assert isinstance(translator, Translator)
    holder = tf.Module()
    holder.weights = [weight.value for weight in translator.model.weights]
    longest = translator.max_length
    signatures = ["translate"]
    if translator.decoding.beam_size > 1:
        signatures += [BEAM, PREFIX]
    functions: Functions = {}
    for signature in signatures:
        if static:
            for width in widths(longest):
                name = static_name(signature, width, longest)
                functions[name] = _over_ids(translator, width, signature)
        else:
            functions[signature] = _over_ids(translator, None, signature)
    if aligns and translator.model.can_align:
        functions[ALIGN] = _align_ids(translator, longest if static else None)

    def save(folder: str) -> None:
        # Without the trackable object LiteRT would not find the weights.
        tf.saved_model.save(holder, folder, signatures=functions)

    convert(save, list(functions), quantize, path)


def widths(max_length: int) -> list[int]:
    """Return the source lengths of a static file's signatures: 16, 32, 64, ..., `max_length`."""
    doubled = [FIRST_WIDTH]
    while 2 * doubled[-1] < max_length:
        doubled.append(2 * doubled[-1])
    return [*(width for width in doubled if width < max_length), max_length]


def static_name(signature: str, width: int, max_length: int) -> str:
    """Return the name of a static file's signature for sources of `width` tokens.

    The signature for the maximum length has no suffix.

    Example:
        >>> static_name("translate", 16, 40), static_name("translate", 40, 40)
        ('translate_16', 'translate')
    """
    return signature if width == max_length else f"{signature}_{width}"


def signatures(path: Path) -> dict[str, dict[str, Any]]:
    """Return the inputs and outputs of each signature in a file; None stands for a dynamic axis."""
    model = flatbuffer_utils.convert_bytearray_to_object(path.read_bytes())
    names = {}
    for signature in model.signatureDefs:
        subgraph = model.subgraphs[signature.subgraphIndex]
        names[signature.signatureKey.decode()] = {
            "inputs": _described(subgraph, signature.inputs),
            "outputs": _described(subgraph, signature.outputs),
        }
    return names


def _described(
    subgraph: schema.SubGraphT, entries: Sequence[schema.TensorMapT]
) -> dict[str, dict[str, Any]]:
    described = {}
    for entry in entries:
        tensor = subgraph.tensors[entry.tensorIndex]
        shape = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
        described[entry.name.decode()] = {
            "dtype": DTYPES[tensor.type],
            "shape": [None if size < 0 else int(size) for size in shape],
        }
    return described


def _align_ids(
    translator: Translator, width: int | None
) -> tf.types.experimental.PolymorphicFunction:
    """Ids (B, S) and the ids of given translations (B, T) -> log-probabilities and attention."""
    batch = 1 if width else None
    specs = [
        tf.TensorSpec((batch, width), tf.int32, "ids"),
        tf.TensorSpec((batch,), tf.int32, "lengths"),
        tf.TensorSpec((batch, width), tf.int32, "target_ids"),
        tf.TensorSpec((batch,), tf.int32, "target_lengths"),
    ]

    def align(
        ids: tf.Tensor, lengths: tf.Tensor, target_ids: tf.Tensor, target_lengths: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        source = source_ids(ids, lengths, translator.max_length)
        target = with_end(target_ids, target_lengths, translator.max_length)
        temperature = translator.temperature
        pair = aligned_ids(translator.model, source, target, temperature=temperature)
        return pair._asdict()

    return traced(align, input_signature=specs)


def _over_ids(
    translator: Translator, width: int | None, signature: str
) -> tf.types.experimental.PolymorphicFunction:
    """Return the function of a signature.

    Ids (B, S) and the number of them that are read (B,) -> the best translation, the N best, or the
    K continuations of a prefix (B, P), which is padded with 0.
    """
    max_length, first_token = translator.max_length, translator.tokenizers.target.prefix_id
    batch = 1 if width else None
    specs = [
        tf.TensorSpec((batch, width), tf.int32, "ids"),
        tf.TensorSpec((batch,), tf.int32, "lengths"),
    ]
    if signature == PREFIX:
        specs.append(tf.TensorSpec((batch, max_length - 1 if width else None), tf.int32, "prefix"))
    beam_size = translator.decoding.beam_size if signature == BEAM else 1

    def translate(
        ids: tf.Tensor, lengths: tf.Tensor, prefix: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        source = source_ids(ids, lengths, min(width or max_length, max_length))
        given: dict[str, Any] = {
            "first_token": first_token,
            "shortlist": translator.shortlist,
            # When the workspace of LiteRT's XNNPACK delegate (2.3.0) grows inside a call, it may
            # skip a copy; see the interpreter in tfformer/engines/litert.py.
            "grows": False,
        }
        if prefix is None:
            decoding = translator.decoding.replace(beam_size=beam_size)
            result = translate_ids(translator.model, source, max_length, decoding, **given)
        else:
            result = continue_translations(
                translator.model, source, prefix, CONTINUATIONS, max_length, **given
            )
        longest = tf.maximum(tf.reduce_max(result.lengths), 1)  # LiteRT cannot read an empty tensor
        output_ids = result.ids if width else result.ids[:, :, :longest]
        if signature != "translate":
            return {"ids": output_ids, "lengths": result.lengths, "scores": result.scores}
        return {
            "ids": output_ids[:, 0],
            "lengths": result.lengths[:, 0],
            "score": result.scores[:, 0],
        }

    return traced(translate, input_signature=specs)
