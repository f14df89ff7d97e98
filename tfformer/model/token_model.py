"""The common part of Transformer and LanguageModel: token ids in, logits out.

Shape letters: D d_model, V vocabulary.
"""

from collections.abc import Callable
from typing import Any, Self, get_args

import keras
import tensorflow as tf

from tfformer.argument_checks import require
from tfformer.config import PRESETS, Dialect, TieEmbeddings
from tfformer.model.base_layer import arguments_of
from tfformer.model.data_parallel import ShardedModel
from tfformer.model.embedding import TokenEmbedding
from tfformer.model.fast_layers import quantization_error

TIES = get_args(TieEmbeddings)

ToLogits = Callable[[tf.Tensor], tf.Tensor]  # hidden states (..., D) -> logits (..., V)


class TokenModel(ShardedModel):
    """A Keras model that maps token ids to logits over a vocabulary.

    The constructor creates its weights.
    """

    arguments: tuple[str, ...] = ()  # constructor arguments, all stored as attributes
    embedding_class: type[TokenEmbedding] = TokenEmbedding
    d_model: int
    dialect: Dialect
    output_embedding: TokenEmbedding  # the embedding whose transposed matrix projects to logits
    output_bias: keras.Variable | None  # the bias (V,) of the logits
    guided_alignment = 0.0  # weight of the loss by which a `Transformer` learns word alignments

    def __init__(self, **layer: Any) -> None:
        super().__init__(**layer)
        self.autocast = False  # float ids would lose digits in half precision

    @classmethod
    def from_preset(cls, preset: str, *vocab_sizes: int, **arguments: Any) -> Self:
        """Build a model of a preset size, with newly initialised weights.

        Args:
            preset: "tiny", "small", "base" or "big" (the last two are the paper's, table 3).
            *vocab_sizes: Sizes of the source and the target vocabulary, or of the only one.
            **arguments: Other constructor arguments, which override those of the preset.

        Returns:
            The model.

        Raises:
            ValueError: The preset is not known, or an argument is invalid.

        Example:
            >>> import tfformer
            >>> model = tfformer.Transformer.from_preset("tiny", 100, 120, num_layers=1)
            >>> model.d_model, model.num_layers
            (128, 1)
        """
        require("preset", preset, tuple(PRESETS))
        return cls(*vocab_sizes, **PRESETS[preset] | arguments)

    def logits(self, hidden: tf.Tensor) -> tf.Tensor:
        """Project hidden states (..., D) to logits (..., V) with the output embedding."""
        return self.add_output_bias(self.output_embedding.logits(hidden))

    def output_kernel(self) -> tf.Tensor:
        """Return the matrix (D, V) by which `logits` multiplies."""
        return tf.transpose(self.output_embedding.embeddings)

    def add_output_bias(self, logits: tf.Tensor) -> tf.Tensor:
        """Add the output bias, if there is one, to logits (..., V)."""
        if self.output_bias is None:
            return logits
        return logits + tf.cast(self.output_bias, logits.dtype)

    def input_signature(self) -> list[Any]:
        """Return the model's inputs for Keras' `export`: int32 ids."""
        raise NotImplementedError

    def export(
        self,
        filepath: str,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: list[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Export `call` as Keras does, by default for int32 ids of any shape.

        To export a run with its tokenizers and search, use `tfformer.export_model`.
        """
        signature = input_signature or self.input_signature()
        super().export(filepath, format, verbose, signature, **kwargs)

    def quantize(
        self, mode: str | None = None, config: Any = None, filters: Any = None, **kwargs: Any
    ) -> None:
        """Raise NotImplementedError: Keras' quantisation has no effect on these layers."""
        raise quantization_error(self, mode)

    def _embedding(self, vocab_size: int, name: str) -> TokenEmbedding:
        return self.embedding_class(
            vocab_size,
            self.d_model,
            self.dialect.scale_embedding,
            name=name,
            dtype=self.dtype_policy,
        )

    def _build_embeddings(self, *embeddings: TokenEmbedding) -> None:
        for embedding in embeddings:  # tied embeddings are one object
            if not embedding.built:
                embedding.build((None, None))

    def _create_output_bias(self, vocab_size: int) -> None:
        self.output_bias = None
        if self.dialect.output_bias:
            shape = (vocab_size,)
            self.output_bias = self.add_weight(shape, "zeros", name="output_bias")

    def get_config(self) -> dict[str, Any]:
        arguments = arguments_of(self, self.arguments) | {"dialect": self.dialect.to_dict()}
        return super().get_config() | arguments
