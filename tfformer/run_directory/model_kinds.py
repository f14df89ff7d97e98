"""The kinds of models that a run can contain, and how each is read, built and counted."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tfformer.config import Architecture, ModelConfig
from tfformer.data.sources import Row, read_pairs, read_sentences
from tfformer.data.tokenizers import Tokenizer, Tokenizers
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer

Model = Transformer | LanguageModel


class ModelKind(NamedTuple):
    """A kind of model that a run can contain: a row of `MODEL_KINDS`."""

    description: str  # for messages
    read: Callable[..., Iterator[Row]]  # rows of a data source: `read_pairs` or `read_sentences`
    # the tokenizer of each side of a row
    side_tokenizers: Callable[[Tokenizers], tuple[Tokenizer, ...]]
    build: Callable[[ModelConfig, Tokenizers, str], Model]  # the untrained model in a dtype
    parameters: Callable[[ModelConfig, Tokenizers], int]  # number of parameters, computed


def new_model(config: ModelConfig, tokenizers: Tokenizers, dtype: str = "float32") -> Model:
    """Build the untrained model that a recipe's section `model` describes."""
    return MODEL_KINDS[config.architecture].build(config, tokenizers, dtype)


def settings_of(model: Model) -> dict[str, Any]:
    """Return the section `model` of the recipe that describes a model.

    Raises:
        ValueError: The model is a subclass, or has an activation that a recipe cannot name.
    """
    architectures: dict[type, Architecture] = {
        Transformer: "encoder-decoder",
        LanguageModel: "decoder",
    }
    if type(model) not in architectures or not isinstance(model.activation, str):
        raise ValueError(
            f"{type(model).__name__} with the activation {model.activation} cannot be described by "
            "a recipe; save it with Keras: model.save('model.keras')"
        )
    values = model.get_config() | {"architecture": architectures[type(model)]}
    if isinstance(model, Transformer):
        values["decoder"] = model.decoder_kind
    return {name: values[name] for name in ModelConfig.model_fields if name in values}


def _new_translation_model(config: ModelConfig, tokenizers: Tokenizers, dtype: str) -> Transformer:
    source, target = tokenizers.source.vocab_size, tokenizers.target.vocab_size
    arguments = _arguments(config) | {"decoder_kind": config.decoder}
    return Transformer(source, target, dtype=dtype, **arguments)


def _new_language_model(config: ModelConfig, tokenizers: Tokenizers, dtype: str) -> LanguageModel:
    arguments = _arguments(config)
    del arguments["num_decoder_layers"]
    return LanguageModel(tokenizers.target.vocab_size, dtype=dtype, **arguments)


def _arguments(config: ModelConfig) -> dict[str, Any]:
    return {name: value for name, value in config if name not in ("architecture", "decoder")}


def _count_translation_model(config: ModelConfig, tokenizers: Tokenizers) -> int:
    decoder_layers = config.num_decoder_layers or config.num_layers
    encoder = _count_stack(config, config.num_layers, config.d_ff, attentions=1)
    decoder_d_ff = config.dialect.decoder_d_ff or config.d_ff
    decoder = _count_stack(config, decoder_layers, decoder_d_ff, attentions=2)
    if config.decoder == "ssru":  # two matrices and a bias in place of self-attention
        unit = 2 * config.d_model * config.d_model + config.d_model
        decoder -= decoder_layers * (_count_attention(config) - unit)
    source, target = tokenizers.source.vocab_size, tokenizers.target.vocab_size
    rows = {
        "all": target,
        "output": source + target,
        "input": source + target,
        "none": source + 2 * target,
    }
    embeddings = rows[config.tie_embeddings] * config.d_model
    return encoder + decoder + embeddings + config.dialect.output_bias * target


def _count_language_model(config: ModelConfig, tokenizers: Tokenizers) -> int:
    pieces = tokenizers.target.vocab_size
    tables = 2 if config.tie_embeddings in ("none", "input") else 1
    embeddings = tables * pieces * config.d_model
    stack = _count_stack(config, config.num_layers, config.d_ff, attentions=1)
    return stack + embeddings + config.dialect.output_bias * pieces


def _count_stack(config: ModelConfig, num_layers: int, d_ff: int, attentions: int) -> int:
    """Count the parameters of an encoder or decoder (Vaswani et al. 2017, section 3)."""
    d_model = config.d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    normalization = 2 * d_model
    layer = attentions * _count_attention(config) + feed_forward + (attentions + 1) * normalization
    return num_layers * layer + (config.norm != "post") * normalization


def _count_attention(config: ModelConfig) -> int:
    return 4 * config.d_model * config.d_model + config.use_bias * 4 * config.d_model


MODEL_KINDS: Mapping[Architecture, ModelKind] = {
    "encoder-decoder": ModelKind(
        description="a translation model, for `tfformer translate`",
        read=read_pairs,
        side_tokenizers=lambda tokenizers: (tokenizers.source, tokenizers.target),
        build=_new_translation_model,
        parameters=_count_translation_model,
    ),
    "decoder": ModelKind(
        description="a language model, for `tfformer generate`",
        read=read_sentences,
        side_tokenizers=lambda tokenizers: (tokenizers.target,),
        build=_new_language_model,
        parameters=_count_language_model,
    ),
}
