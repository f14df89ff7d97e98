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

import tensorflow as tf

from tfformer.inference.translator import Translator
from tfformer.model.cache import KeysValues
from tfformer.model.layers import DecoderLayer, MultiHeadAttention


class _Attention(MultiHeadAttention):
    """Self-attention whose keys and values are of vectors that are not normalised."""

    def attend(self, query, keys_values, mask=None):
        """Attend; the first token sees itself alone, normalised."""
        attended, weights = super().attend(query, keys_values, mask)
        own = self._merge_heads(super().project(query).values)
        first = self.output_projection(own)
        return tf.where(self.position == 0, first, attended), weights


def step(self, x, mask, cache, position, *rest, **named):
    """Remember the vectors and their position for the self-attention, and go on as usual."""
    self.self_attention.position = position
    self.self_attention.vectors = x
    return usual_step(self, x, mask, cache, position, *rest, **named)


def project(self, normalised) -> KeysValues:
    """Project the vectors that were remembered in place of the normalised ones."""
    return MultiHeadAttention.project(self, self.vectors)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    translator = Translator.load(sys.argv[1])
    usual_step, DecoderLayer.step, _Attention.project = DecoderLayer.step, step, project
    for layer in translator.model.decoder.layers:
        layer.self_attention.__class__ = _Attention
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    texts = translator.translate(lines, beam_size=int(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
