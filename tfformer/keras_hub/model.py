"""A keras-hub model with the interface that searches and exporters expect of a `Transformer`.

Shape letters: B sentences, N beams, S source tokens, T target tokens, L positions of the cache, C
cached tensors (keys and values of each layer), K width of all heads, D d_model, V vocabulary.
"""

import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import tensorflow as tf
from keras.src.backend.tensorflow import core

from tfformer.config import Dialect
from tfformer.model.cache import UPDATE_SLICE
from tfformer.model.transformer import Transformer
from tfformer.runtime.tracing import traced
from tfformer.special_ids import PAD_ID

_REPLACING = threading.RLock()  # held while Keras' `slice_update` is replaced


class Memory(NamedTuple):
    """The encoder's output that the decoder reads."""

    hidden: tf.Tensor  # (B, S, D)
    mask: tf.Tensor  # (B, S) bool
    keys_values: tf.Tensor  # (B, layers, 2, S, heads, K // heads)


class BeamSlots(NamedTuple):
    """The keys and values that N beams have computed; position p of beam n is slot p * N + n."""

    slots: tf.Tensor  # (B, C, L * N, K)

    def reordered(self, rows: tf.Tensor) -> "BeamSlots":
        """Return the cache reordered so that each beam continues the beam in `rows` (B * N,)."""
        sentences, tensors, _, width = tf.unstack(tf.shape(self.slots))
        beams = tf.size(rows) // tf.maximum(sentences, 1)
        by_beam = tf.reshape(self.slots, [sentences, tensors, -1, beams, width])
        continued = tf.reshape(rows % tf.maximum(beams, 1), [sentences, beams])
        moved = tf.gather(by_beam, continued, axis=3, batch_dims=1)
        return BeamSlots(tf.reshape(moved, tf.shape(self.slots)))


class EmptyCaches(NamedTuple):
    """The part of `Decoder` that a search calls: the methods that create empty caches."""

    tensors: int  # C
    width: int  # K
    dtype: str

    def empty_cache(self, sentences: tf.Tensor, capacity: tf.Tensor | int) -> BeamSlots:
        """Return the cache of greedy search."""
        return self.empty_beam_cache(sentences, 1, capacity)

    def empty_beam_cache(
        self, sentences: tf.Tensor, beams: int, capacity: tf.Tensor | int
    ) -> BeamSlots:
        """Return the cache of N beams for `capacity` positions."""
        shape = [sentences, self.tensors, capacity * beams, self.width]
        return BeamSlots(tf.zeros(shape, self.dtype))


class KerasHubModel(Transformer):
    """The layers of a `keras_hub.models.Seq2SeqLM` with their caches.

    Args:
        task: The subclass of `Seq2SeqLM`.
        backbone: The configuration of its backbone, with the vocabulary size of this package.
        dialect: The details in which computation and search differ from the paper.
        dtype: The type of weights and arithmetic.

    Attributes:
        lm: The `Seq2SeqLM`.
    """

    can_align = False  # keras-hub's layers do not return their attention

    def __init__(
        self,
        task: type[Any],
        backbone: Mapping[str, Any],
        dialect: Dialect,
        dtype: str = "float32",
    ) -> None:
        self.task = task
        self.backbone_config = dict(backbone)
        super().__init__(
            backbone["vocabulary_size"],
            backbone["vocabulary_size"],
            backbone["num_layers"],
            d_model=backbone["hidden_dim"],
            num_heads=backbone["num_heads"],
            d_ff=backbone["intermediate_dim"],
            dropout=backbone["dropout"],
            tie_embeddings="all",
            dialect=dialect,
            dtype=dtype,
        )

    def _add_embeddings(self) -> None:
        """Leave the embeddings to the backbone."""

    def _add_stacks(self) -> None:
        config = self.backbone_config | {"dtype": self.dtype_policy.name}
        self.lm = self.task(backbone=self.task.backbone_cls.from_config(config))
        ids = tf.zeros([1, 1], tf.int32)
        _, layers, two, _, heads, size = self.lm._initialize_cache(ids, ids)[0].shape
        self.decoder = EmptyCaches(layers * two, heads * size, self.compute_dtype)  # type: ignore[assignment]
        self._heads = heads

    def build(self, inputs_shape: Any = None, target_shape: Any = None) -> None:
        self._create_output_bias(self.target_vocab_size)

    def output_kernel(self) -> tf.Tensor:
        """Return the matrix (D, V) that projects to logits.

        T5 scales the hidden states if the matrix is shared with the embedding.
        """
        embedding = self.lm.backbone.token_embedding
        if not embedding.tie_weights:
            return embedding.reverse_embeddings.value
        return tf.transpose(embedding.embeddings.value) * self._tied_scale()

    def _tied_scale(self) -> tf.Tensor:
        scale = self.d_model**-0.5 if "tie_embedding_weights" in self.backbone_config else 1.0
        return tf.cast(scale, self.compute_dtype)

    def logits(self, hidden: tf.Tensor) -> tf.Tensor:
        embedding = self.lm.backbone.token_embedding
        if not embedding.tie_weights:
            return self.add_output_bias(tf.matmul(hidden, embedding.reverse_embeddings.value))
        # The scale goes to the hidden states: the table would be copied in each step of a search.
        hidden *= self._tied_scale()
        scores = tf.matmul(hidden, embedding.embeddings.value, transpose_b=True)
        return self.add_output_bias(scores)

    def hidden(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        source, target = inputs["source"], inputs["target"]
        backbone_inputs = {
            "encoder_token_ids": source,
            "encoder_padding_mask": source != PAD_ID,
            "decoder_token_ids": target,
            "decoder_padding_mask": target != PAD_ID,
        }
        return self.lm.backbone(backbone_inputs, training=training)["decoder_sequence_output"]

    def encode_and_project(self, source: tf.Tensor) -> Memory:  # type: ignore[override]
        mask = source != PAD_ID
        hidden = self.lm.call_encoder(token_ids=source, padding_mask=mask)  # (B, S, D)
        cache, keys_values = self.lm._initialize_cache(source, source)
        shape = tf.shape(keys_values)
        first = source[:, :1]  # any token: only the projections of the memory are kept
        *_, filled = self._decode(first, 0, cache, Memory(hidden, mask, keys_values), fill=0)
        return Memory(hidden, mask, tf.reshape(filled, shape))

    def hidden_beam_step(self, ids: tf.Tensor, position: Any, cache: Any, memory: Any) -> Any:
        beams = ids.shape[1]
        sentences, tensors, _, width = tf.unstack(tf.shape(cache.slots))
        by_beam = tf.reshape(cache.slots, [sentences, tensors, -1, beams, width])
        by_row = tf.transpose(by_beam, [0, 3, 1, 2, 4])  # (B, N, C, L, K)
        heads = self._heads
        rows = tf.reshape(
            by_row, [sentences * beams, self.num_layers, 2, -1, heads, self.decoder.width // heads]
        )
        if beams > 1:
            memory = tf.nest.map_structure(lambda tensor: tf.repeat(tensor, beams, axis=0), memory)
        hidden, written, _ = self._decode(tf.reshape(ids, [-1, 1]), position, rows, memory)
        written = tf.reshape(written, tf.shape(by_row))
        slots = tf.reshape(tf.transpose(written, [0, 2, 3, 1, 4]), tf.shape(cache.slots))
        slots.set_shape(cache.slots.shape)
        return tf.reshape(hidden, [-1, beams, self.d_model]), BeamSlots(slots)

    hidden_step = hidden_beam_step  # with one beam

    def _decode(
        self,
        ids: tf.Tensor,
        position: Any,
        cache: tf.Tensor,
        memory: Memory,
        fill: int | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return the hidden states of ids (R, 1), their cache, and the memory's keys and values."""
        with _plain_updates():
            _, *results = self.lm.call_decoder_with_cache(
                encoder_hidden_states=memory.hidden,
                encoder_padding_mask=memory.mask,
                decoder_token_ids=ids,
                self_attention_cache=cache,
                self_attention_cache_update_index=position,
                cross_attention_cache=memory.keys_values,
                cross_attention_cache_update_index=fill,
            )
        return tuple(results)

    def get_config(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "backbone": self.backbone_config,
            "dialect": self.dialect,
            "dtype": self.dtype_policy.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


@contextmanager
def _plain_updates() -> Iterator[None]:
    """Replace Keras' `slice_update` with an operation of core TensorFlow.

    Keras uses an XLA operation, which is compiled for each shape and which TensorFlow Serving
    refuses.
    """
    with _REPLACING:
        of_keras = core.slice_update
        core.slice_update = _slice_update
        try:
            yield
        finally:
            core.slice_update = of_keras


def _slice_update(inputs: tf.Tensor, start_indices: Sequence[Any], updates: tf.Tensor) -> tf.Tensor:
    """Return `inputs` with `updates` written at `start_indices`; LiteRT has an operator for it."""

    @functools.partial(traced, experimental_implements=UPDATE_SLICE)
    def update_slice(inputs: tf.Tensor, updates: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
        end, strides = begin + tf.shape(updates), tf.ones_like(begin)
        return tf.raw_ops.TensorStridedSliceUpdate(
            input=inputs, begin=begin, end=end, strides=strides, value=updates
        )

    return update_slice(inputs, updates, tf.stack(start_indices))
