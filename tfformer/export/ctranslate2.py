"""CTranslate2: its options, the questions that check it, and the writer of the model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.export.format import Format, check_installed, with_search
from tfformer.runtime.progress_lines import Steps
from tfformer.special_ids import END_ID, START_ID, UNKNOWN_ID

if TYPE_CHECKING:
    import keras

    from tfformer.config import DecodingConfig, Dialect
    from tfformer.data.tokenizers import Tokenizer
    from tfformer.export.parity import Question
    from tfformer.inference.text_model import TextModel
    from tfformer.model.attention import MultiHeadAttention
    from tfformer.model.stacks import Decoder, Encoder
    from tfformer.model.transformer import Transformer
    from tfformer.run_directory import Run, Tokenizers

LONGEST_INPUT = 1024  # CTranslate2's default for the longest input


@dataclass(frozen=True, kw_only=True)
class CTranslate2(Format):
    """A translation model as a CTranslate2 model in float32.

    CTranslate2 divides a score by length^alpha, a run by the formula of Wu et al. 2016. The
    comparison therefore uses no length penalty, and CTranslate2's stopping criterion, logit rules
    and treatment of the unknown token.

    It also accepts the options of `Format`.

    Args:
        beam_size: Number of beams of the engine and of the comparison; by default the run's.
    """

    beam_size: int | None = None

    title: ClassVar[str] = "the CTranslate2 model"
    extras: ClassVar[tuple[str, ...]] = ("tensorflow", "ctranslate2")
    aligns: ClassVar[bool] = False

    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        return with_search(of_run, self.beam_size, length_penalty=0.0)

    def dialect(self, of_run: Dialect) -> Dialect:
        rules = of_run.rules
        if rules.to_dict():
            rules = rules.replace(beam_scores="logits", start_token=START_ID)
        return of_run.replace(narrowing=False, early_stopping=True, allow_unknown=True, rules=rules)

    def prepare(self, run: Run, step: Steps) -> None:
        run.check_architecture("encoder-decoder")
        check_installed("ctranslate2", "CTranslate2", "ctranslate2")
        run.warn_of_shortlist("CTranslate2")

    def write(self, folder: Path, model: TextModel) -> None:
        from tfformer.model.transformer import Transformer

        assert isinstance(model.model, Transformer)
        write(folder, model.model, model.tokenizers, model.max_length)

    def description(self, folder: Path) -> dict[str, Any]:
        return {"format": "ctranslate2", "dtype": "float32"}

    def questions(self, model: TextModel, samples: Sequence[str]) -> list[Question]:
        from tfformer.export.parity import beam, greedy

        complete = copy.copy(model)  # chooses from the whole vocabulary
        complete.shortlist = None
        return [greedy("greedy", complete, samples), beam("beam", complete, samples)]


def write(
    folder: Path,
    model: Transformer,
    tokenizers: Tokenizers,
    max_length: int,
    quantization: str | None = None,
) -> None:
    """Write a CTranslate2 model; its inputs and outputs are pieces without an end token.

    `quantization` is one of CTranslate2's types, such as `int8`. It raises ValueError for layers
    that CTranslate2 does not support.
    """
    if model.norm == "marian":
        raise ValueError(
            "the model has norm=marian, but CTranslate2 computes pre-norm layers as they are "
            "trained, not as marian-decoder does; import it again with --positions auto"
        )
    if model.decoder_kind != "attention":
        raise ValueError(
            f"the model has decoder={model.decoder_kind}, simple recurrent units, which "
            "CTranslate2 does not have; use --format saved_model or litert"
        )
    spec = _spec(model, max(LONGEST_INPUT, max_length))
    source, target = _vocabulary(tokenizers.source), _vocabulary(tokenizers.target)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token = source[UNKNOWN_ID]
    spec.config.bos_token = source[START_ID]
    spec.config.eos_token = source[END_ID]
    spec.config.decoder_start_token = target[START_ID]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = model.dialect.epsilon
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def _vocabulary(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


def _spec(model: Transformer, positions: int) -> Any:
    """Return CTranslate2's specification of the model, with all weights."""
    import numpy as np
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    from tfformer.model.positions import positional_encoding

    dialect = model.dialect
    spec = TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        model.num_heads,
        pre_norm=model.norm == "pre",
        activation={"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}[
            str(model.activation)
        ],
    )
    # CTranslate2's own positional encodings differ from the paper's, so the model includes a table.
    table = positional_encoding(
        dialect.position_offset + np.arange(positions),
        model.d_model,
        dialect.position_layout,
        dialect.position_timescale,
    ).numpy()
    spec.decoder.num_heads = type(spec.encoder.num_heads)(model.decoder.num_heads)
    spec.encoder.scale_embeddings = dialect.scale_embedding
    spec.decoder.scale_embeddings = dialect.scale_embedding
    spec.encoder.position_encodings.encodings = table
    spec.decoder.position_encodings.encodings = table
    spec.encoder.embeddings[0].weight = model.source_embedding.table()
    spec.decoder.embeddings.weight = model.target_embedding.table()
    spec.decoder.projection.weight = model.output_embedding.table()
    if model.output_bias is not None:
        spec.decoder.projection.bias = np.asarray(model.output_bias)
    _set_stack(spec.encoder, model.encoder)
    _set_stack(spec.decoder, model.decoder)
    return spec


def _set_stack(spec: Any, stack: Encoder | Decoder) -> None:
    if stack.normalization:
        _set_normalization(spec.layer_norm, stack.normalization)
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        attention = layer.self_attention
        _set_linear(layer_spec.self_attention.linear[0], attention.query, attention.key_value)
        _set_attention(layer_spec.self_attention, attention, layer.self_attention_residual)
        if hasattr(layer, "cross_attention"):
            attention = layer.cross_attention
            _set_linear(layer_spec.attention.linear[0], attention.query)
            _set_linear(layer_spec.attention.linear[1], attention.key_value)
            _set_attention(layer_spec.attention, attention, layer.cross_attention_residual)
        _set_linear(layer_spec.ffn.linear_0, layer.feed_forward.inner)
        _set_linear(layer_spec.ffn.linear_1, layer.feed_forward.outer)
        _set_normalization(layer_spec.ffn.layer_norm, layer.feed_forward_residual.normalization)


def _set_attention(spec: Any, attention: MultiHeadAttention, residual: Any) -> None:
    """Set what self- and cross-attention have in common."""
    _set_linear(spec.linear[-1], attention.output_projection)
    _set_normalization(spec.layer_norm, residual.normalization)


def _set_linear(spec: Any, *layers: keras.layers.Dense) -> None:
    """Combine layers with the same input into one product, with concatenated outputs."""
    import numpy as np

    spec.weight = np.concatenate([np.asarray(layer.kernel) for layer in layers], axis=1).T
    if layers[0].use_bias:
        spec.bias = np.concatenate([np.asarray(layer.bias) for layer in layers])


def _set_normalization(spec: Any, layer: keras.layers.LayerNormalization) -> None:
    spec.gamma = layer.gamma.numpy()
    spec.beta = layer.beta.numpy()
