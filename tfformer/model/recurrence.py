"""A decoder of simple recurrent units in place of self-attention (Kim et al. 2019).

"From Research to Production and Back: Ludicrously Fast Neural Machine Translation", section 3.1. A
decoding step reads one vector per layer and row, however long the translation is; in training a
scan computes all positions at once.

Shape letters: B batch, R rows being decoded, T positions, N beams, D d_model, H heads.
"""

from collections.abc import Callable
from typing import Any, Unpack

import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.model.base_layer import LayerOptions, SequenceLayer, Shape, arguments_of, register
from tfformer.model.cache import RecurrentStates
from tfformer.model.fast_layers import Dense
from tfformer.model.layers import DecoderLayer
from tfformer.model.masks import carried_mask, join_masks
from tfformer.model.stacks import Decoder, ProjectedMemory


@register
class SimpleRecurrentUnit(SequenceLayer):
    """The simpler simple recurrent unit, SSRU: an average of the past with learned weights.

    c_t = f_t c_{t-1} + (1 - f_t) W x_t, with f_t = sigmoid(W_f x_t + b_f) and c_{-1} = 0; the
    output is ReLU(c_t). No matrix product depends on c_{t-1}.

    Args:
        d_model: Width of the model, the size of each vector.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Raises:
        ValueError: `d_model` is below 1.

    Example:
        >>> import numpy, tfformer
        >>> unit = tfformer.SimpleRecurrentUnit(d_model=8)
        >>> unit(numpy.ones((1, 5, 8))).shape
        TensorShape([1, 5, 8])
    """

    def __init__(self, d_model: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.d_model = require_size("d_model", d_model)
        policy = self.dtype_policy
        self.candidate = Dense(self.d_model, use_bias=False, name="candidate", dtype=policy)
        self.forget = Dense(self.d_model, name="forget", dtype=policy)

    def build(self, x_shape: Shape | None = None) -> None:
        for dense in (self.candidate, self.forget):
            dense.build((None, None, self.d_model))

    def call(
        self,
        x: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        mask: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Read all positions at once.

        Args:
            x: Vectors (B, T, D). A Keras mask attached to them is applied too.
            attention_mask: Boolean (B, T), (B, T, T) or broadcastable to (B, H, T, T), True = may
                be read. A position that may not read itself leaves the state unchanged. A position
                that may read no earlier position starts from a state of zeros, such as the first
                position of each sentence in a packed row.
            mask: The mask that Keras passes by this name, combined with `attention_mask`.

        Returns:
            Vectors (B, T, D).
        """
        output, _ = self.read(x, join_masks(attention_mask, mask, carried_mask(x)))
        return output

    def read(
        self, x: tf.Tensor, mask: tf.Tensor | None = None, state: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Read T positions, starting from a state.

        Args:
            x: Vectors (R, T, D).
            mask: Boolean, broadcastable to (R, H, T, T), see `call`; the same in all heads.
            state: The state (R, 1, D) float32 before the first position; by default zeros.

        Returns:
            Vectors (R, T, D), and the state (R, 1, D) after the last position.
        """
        decay, added = self._gates(x)  # each (R, T, D)
        if mask is not None:
            positions = tf.range(tf.shape(x)[1])
            is_same = positions == positions[:, tf.newaxis]  # (T, T)
            is_earlier = positions < positions[:, tf.newaxis]
            is_read = tf.reduce_any(mask[:, 0] & is_same, axis=-1, keepdims=True)  # (R, T, 1)
            continues = tf.reduce_any(mask[:, 0] & is_earlier, axis=-1, keepdims=True)
            added = tf.where(is_read, added, 0.0)
            decay = tf.where(continues, tf.where(is_read, decay, 1.0), 0.0)
        if state is not None:
            added += tf.pad(decay[:, :1] * state, ((0, 0), (0, tf.shape(x)[1] - 1), (0, 0)))
        states = linear_recurrence(decay, added)
        return self._output(states), states[:, -1:]

    def step(self, x: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Read one position of each row: vectors and states (R, N, D) of N beams."""
        decay, added = self._gates(x)
        state = decay * state + added
        return self._output(state), state

    def _gates(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return f and (1 - f) W x, each (R, T, D) float32, for sums over many positions."""
        forget = tf.sigmoid(tf.cast(self.forget(x), tf.float32))
        return forget, (1 - forget) * tf.cast(self.candidate(x), tf.float32)

    def _output(self, states: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.nn.relu(states), self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | arguments_of(self, ("d_model",))


@tf.custom_gradient
def linear_recurrence(
    decay: tf.Tensor, added: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Return c_t = decay_t c_{t-1} + added_t for all positions, each (B, T, D), from c_{-1} = 0.

    The gradient is the same recurrence from the last position to the first.

    Example:
        >>> ones = tf.ones((1, 3, 1))
        >>> linear_recurrence(0.5 * ones, ones)[0, :, 0].numpy().tolist()
        [1.0, 1.5, 1.75]
    """
    states = _scan(decay, added)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        next_decay = tf.pad(decay[:, 1:], ((0, 0), (0, 1), (0, 0)))
        reversed_sums = _scan(tf.reverse(next_decay, [1]), tf.reverse(upstream, [1]))
        d_added = tf.reverse(reversed_sums, [1])
        before = tf.pad(states[:, :-1], ((0, 0), (1, 0), (0, 0)))
        return d_added * before, d_added

    return states, gradient


def _scan(decay: tf.Tensor, added: tf.Tensor) -> tf.Tensor:
    """Compute the recurrence in log2(T) rounds (Hillis and Steele 1986; Blelloch 1990).

    Two adjacent spans of positions, (decay, added) followed by (decay', added'), combine into the
    span (decay decay', decay' added + added'). Each round doubles the length of the span that ends
    at each position.
    """
    positions = tf.range(tf.shape(added)[1])

    def is_shorter(distance: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return distance < tf.size(positions)

    def double(
        distance: tf.Tensor, decay: tf.Tensor, added: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        before = tf.maximum(positions - distance, 0)
        is_first = (positions < distance)[:, tf.newaxis]  # (T, 1), spans that begin at position 0
        decay = tf.where(is_first, 0.0, decay)
        added += decay * tf.gather(added, before, axis=1)
        return 2 * distance, decay * tf.gather(decay, before, axis=1), added

    return tf.while_loop(is_shorter, double, (tf.constant(1), decay, added))[2]


@register
class RecurrentDecoderLayer(DecoderLayer):
    """A `DecoderLayer` with a simple recurrent unit in place of self-attention, as in Marian.

    Its `cache` contains the states (R, N, D) of N beams.
    """

    sublayer_names = ("recurrence", "cross_attention", "feed_forward")

    def _add_self_attention(self) -> None:
        policy = self.dtype_policy
        self.recurrence = SimpleRecurrentUnit(self.d_model, name="recurrence", dtype=policy)
        self.recurrence_residual = self._residual("recurrence_residual")

    def attend_to_sequence(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: tf.Tensor | None = None,
        position: tf.Tensor | int = 0,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Read new positions after earlier ones, see `DecoderLayer`; all returned weights are 0."""
        h = self.recurrence_residual.before(x)
        if cache is not None and cache.shape[1] == x.shape[1]:
            output, state = self.recurrence.step(h, cache)
        else:
            output, state = self.recurrence.read(h, mask, cache)
        rows, length, _ = tf.unstack(tf.shape(x))
        weights = tf.zeros((rows, self.num_heads, length, length), x.dtype)
        return self.recurrence_residual.after(x, output, training), weights, state


@register
class RecurrentDecoder(Decoder):
    """A `Decoder` of recurrent layers, whose cache contains one state (R, N, D) per layer."""

    layer_class = RecurrentDecoderLayer

    def _new_layer(self, **arguments: Any) -> DecoderLayer:
        return self.layer_class(**arguments)

    def empty_cache(self, rows: tf.Tensor | int, capacity: tf.Tensor | int) -> Any:
        """Return `RecurrentStates` of zeros, each (R, 1, D), for any number of positions."""
        return self.empty_beam_cache(rows, 1, capacity)

    def empty_beam_cache(
        self, sentences: tf.Tensor | int, beams: int, capacity: tf.Tensor | int
    ) -> Any:
        """Return `RecurrentStates` of zeros, each (B, N, D)."""
        return RecurrentStates((tf.zeros((sentences, beams, self.d_model)),) * len(self.layers))

    def step(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int,
        cache: Any,
        memory: ProjectedMemory | None = None,
    ) -> tuple[tf.Tensor, Any]:
        """Transform T new positions (R, T, D) after the states; see `Decoder.step`."""
        return self._read(self.add_positions(embeddings, position), cache, memory)

    def beam_step(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int,
        cache: Any,
        memory: ProjectedMemory | None = None,
    ) -> tuple[tf.Tensor, Any]:
        """Transform the next position of N beams (B, N, D); see `Decoder.beam_step`."""
        return self._read(self._add_position(embeddings, position), cache, memory)

    def _read(
        self, x: tf.Tensor, cache: RecurrentStates, memory: ProjectedMemory | None
    ) -> tuple[tf.Tensor, RecurrentStates]:
        x, states = self._step_layers(x, None, cache.states, 0, memory)
        return x, RecurrentStates(states)
