"""Token ids to vectors, and vectors back to logits (Vaswani et al. 2017, section 3.4).

Shape letters: B batch, T positions, D d_model, V vocabulary.
"""

from typing import Any, Self, Unpack

import keras
import numpy as np
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.model.base_layer import LayerOptions, Regularizer, Shape, arguments_of, register
from tfformer.model.fast_layers import check_not_quantized, gather, quantization_error, with_axes


@register
class TokenEmbedding(keras.layers.Embedding):
    """Turns token ids into vectors, scaled by sqrt(d_model) (section 3.4).

    Transposed, its matrix projects hidden states to logits. It is initialised with standard
    deviation d_model^-0.5: after scaling, the vectors have unit variance, and so do the logits of
    hidden states with unit variance. In training the gradient is dense, so that the gradients of a
    repeated id are summed before Adam squares them. It subclasses Keras' layer and supports
    `enable_lora`.

    Args:
        vocab_size: The number V of token ids.
        d_model: Width of the model, the size of each vector.
        scale: Multiply the vectors by sqrt(d_model).
        embeddings_initializer: Keras' initialiser of the matrix; by default as described above.
        embeddings_regularizer: Keras' regulariser of the matrix.
        embeddings_constraint: Keras' constraint of the matrix.
        mask_zero: Mask the id 0 for the layers that follow.
        weights: The initial matrix (V, D), or a list that contains it. It is not part of the
            layer's config: a saved model stores the matrix with its weights.
        lora_rank: The rank of a LoRA to enable on construction, as with `enable_lora`.
        lora_alpha: The LoRA is multiplied by `lora_alpha / lora_rank`; by default the rank.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Attributes:
        embeddings: The matrix (V, D).

    Raises:
        ValueError: A size is not a whole number of at least 1.

    Example:
        >>> import numpy, tfformer
        >>> embedding = tfformer.TokenEmbedding(vocab_size=100, d_model=8)
        >>> vectors = embedding(numpy.array([[5, 7, 3]]))
        >>> vectors.shape, embedding.logits(vectors).shape
        (TensorShape([1, 3, 8]), TensorShape([1, 3, 100]))
    """

    embeddings_initializer: keras.initializers.Initializer | None  # None: the default
    lora_alpha: float | None

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: bool = True,
        *,
        embeddings_initializer: str | keras.initializers.Initializer | None = None,
        embeddings_regularizer: Regularizer = None,
        embeddings_constraint: str | keras.constraints.Constraint | None = None,
        mask_zero: bool = False,
        weights: np.ndarray | list[np.ndarray] | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            require_size("vocab_size", vocab_size),
            require_size("d_model", d_model),
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
            mask_zero=mask_zero,
            weights=weights,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            **options,
        )
        self.scale = scale

    @property
    def vocab_size(self) -> int:
        """The number V of token ids."""
        return self.input_dim

    @property
    def d_model(self) -> int:
        """The size D of each vector."""
        return self.output_dim

    def build(self, input_shape: Shape | None = None) -> None:
        check_not_quantized(self)
        initializer = self.embeddings_initializer
        lora_alpha = self.lora_alpha
        if initializer is None:
            # Not in the constructor: an initialiser draws its seed when it is created, which
            # changes the seeds of all layers created later.
            self.embeddings_initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        super().build(input_shape)
        self.embeddings_initializer = initializer
        self.lora_alpha = lora_alpha  # Keras has set it to the rank

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Look up token ids (B, T) as vectors (B, T, D).

        Ids of types other than int32 and int64 are cast to int32.
        """
        if ids.dtype not in (tf.int32, tf.int64):
            ids = tf.cast(ids, tf.int32)
        table = tf.convert_to_tensor(self.embeddings)  # (V, D)
        try:
            vectors = gather(table, ids, dense_gradient=training)  # (B, T, D)
        except tf.errors.InvalidArgumentError:
            raise ValueError(
                f"{self.name} has vocab_size={self.vocab_size}, but the ids are "
                f"{tf.reduce_min(ids)} to {tf.reduce_max(ids)}; use ids from the tokenizer that "
                "the model was built for"
            ) from None
        vectors = tf.cast(vectors, self.compute_dtype)
        return vectors * self.d_model**0.5 if self.scale else vectors

    def table(self) -> np.ndarray:
        """Return the vectors (V, D) of all ids, before they are scaled."""
        return np.array(self.embeddings)

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """Multiply vectors (..., D) by the transposed matrix: (..., V).

        All positions share one matrix product. With one product per sentence, the gradient of the
        matrix would be (B, V, D) and would still have to be summed over B.
        """
        flat = tf.reshape(x, (1, -1, self.d_model))  # a batch of one is faster for few rows
        logits = tf.matmul(flat, tf.cast(self.embeddings, x.dtype), transpose_b=True)
        return tf.reshape(logits, with_axes(x, -1, self.vocab_size))

    def load_own_variables(self, store: Any) -> None:
        """Load the matrix; a LoRA was merged into it when it was saved.

        Keras would set both factors of the LoRA to 0, and then neither would ever get a gradient.
        """
        lora_a = self.lora_embeddings_a.numpy() if self.lora_enabled else None
        super().load_own_variables(store)
        if lora_a is not None:
            self.lora_embeddings_a.assign(lora_a)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        raise quantization_error(self, mode)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, except the initial `weights`."""
        config = super().get_config()
        for name in ("input_dim", "output_dim", "quantization_config"):  # Keras' own
            config.pop(name, None)
        return config | arguments_of(self, ("vocab_size", "d_model", "scale"))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Build the layer from a config.

        Keras' own method would add a `quantization_config`.
        """
        return super(keras.layers.Embedding, cls).from_config(config)
