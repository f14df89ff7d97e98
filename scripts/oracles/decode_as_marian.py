"""Translates with a pre-norm run as marian-decoder does.

    python scripts/oracles/decode_as_marian.py RUN SENTENCES BEAM OUTPUT.json

Marian trains pre-norm layers like these here: self-attention takes queries, keys and values of the
normalised vectors. Its decoder (since 1.10.28, models/transformer.h, DecoderLayerSelfAttention and
LayerAttention) takes keys and values of the vectors themselves from the second token on, as it
compares its input with the vectors of all positions so far and finds them different. This program
does the same, to show that nothing else differs: compare.py counts its texts beside pymarian's.
"""

import json
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfformer.inference.translator import Translator
from tfformer.model.cache import KeysValues
from tfformer.model.layers import DecoderLayer, MultiHeadAttention


class _SelfAttention(MultiHeadAttention):
    """Self-attention whose keys and values are of vectors that are not normalised."""

    vectors: tf.Tensor  # (R, T, D) of the new positions, not normalised
    position: tf.Tensor | int  # of the first of them

    def project(self, memory: tf.Tensor) -> KeysValues:
        """Project the vectors in place of the normalised ones."""
        return super().project(self.vectors)

    def attend(
        self, query: tf.Tensor, keys_values: KeysValues, mask: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attend; the first token sees itself alone, normalised."""
        attended, weights = super().attend(query, keys_values, mask)
        own = super().project(query).values
        first = self.output_projection(self._merge_heads(own))
        return tf.where(self.position == 0, first, attended), weights


class _DecoderLayer(DecoderLayer):
    """A layer that tells its self-attention the vectors before they are normalised."""

    def step(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None,
        cache: KeysValues | None,
        position: tf.Tensor | int,
        *memory: Any,
        **named: Any,
    ) -> tuple[tf.Tensor, KeysValues]:
        """Transform new positions."""
        self.self_attention.vectors, self.self_attention.position = x, position
        return super().step(x, mask, cache, position, *memory, **named)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    translator = Translator.load(sys.argv[1])
    for layer in translator.model.decoder.layers:
        layer.__class__, layer.self_attention.__class__ = _DecoderLayer, _SelfAttention
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    texts = translator.translate(lines, beam_size=int(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
