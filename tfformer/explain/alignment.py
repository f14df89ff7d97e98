"""Word alignments of a translation, from its cross-attention.

Words are separated by spaces and counted from 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from tfformer.data.encoding import Sentences, check_pairs, warn_of_truncation
from tfformer.explain.attention_maps import (
    AttentionMaps,
    Weights,
    attention_weights,
    each_attention,
)
from tfformer.inference.translator import Translator
from tfformer.runtime.tracing import traced

Alignment = tuple[tuple[int, int], ...]  # (source word, target word), in order


def alignments(
    translator: Translator, sources: Sentences, targets: Sentences, layer: int | None = None
) -> list[Alignment]:
    """Align the words of each pair by the cross-attention of one decoder layer.

    The weights are the mean of the layer's heads (Garg et al. 2019, "Jointly Learning to Align and
    Translate with Transformer Models"). A target word is linked to the source word that it attends
    to most, unless that is the end token. A source word is linked to the target word that attends
    to it most. The result is the union of both directions (Och and Ney 2003).

    Args:
        translator: A trained run.
        sources: The source sentences, or the result of `translator.encode`.
        targets: A translation of each source, or the result of `translator.encode_targets`.
        layer: The decoder layer, from 1; by default the penultimate, the best one in Garg et al.

    Returns:
        The links (source word, target word) of each pair. Blank sentences and words beyond the
        model's limit have no links.

    Raises:
        ValueError: The decoder has no such layer, or the numbers of sources and targets differ.

    Example:
        This model is untrained; `Translator.load("my_run")` returns a trained one.

        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
        >>> model = tfformer.Transformer(9, 9, num_layers=1, d_model=8, num_heads=2, d_ff=8)
        >>> translator = tfformer.Translator(model, tokenizer, max_length=8)
        >>> tfformer.alignments(translator, ["a"], ["b"])
        [((0, 0),)]
    """
    layers = len(translator.model.decoder.layers)
    if layer is None:
        layer = max(1, layers - 1)
    if layer not in range(1, layers + 1):
        raise ValueError(f"layer={layer} does not exist; the decoder has the layers 1 to {layers}")
    return _linked(translator, sources, targets, functools.partial(strongest, layer=layer))


def nearest_targets(
    translator: Translator, sources: Sentences, targets: Sentences
) -> list[Alignment]:
    """Link each source word to the target word that attends to it most.

    The weights are the mean of all layers and heads. Unlike `alignments` this gives each source
    word exactly one link, which markup needs. Blank sides have no links.
    """
    return _linked(translator, sources, targets, nearest)


def compiled_aligner(
    translator: Translator,
) -> Callable[[Sequence[str], Sequence[str]], list[Alignment]]:
    """Return a compiled `nearest_targets`, which only one thread may call at a time.

    The first call takes as long as several calls of `nearest_targets`; later calls with few
    sentences, as in a server, are much faster.
    """
    ids = tf.TensorSpec((None, None), tf.int32)
    compute = functools.partial(attention_weights, translator.model)
    weights = traced(compute, input_signature=[ids, ids])

    def align(sources: Sequence[str], targets: Sequence[str]) -> list[Alignment]:
        return _linked(translator, sources, targets, nearest, weights)

    return align


def _linked(
    translator: Translator,
    sources: Sentences,
    targets: Sentences,
    links: Callable[[AttentionMaps], Alignment],
    weights: Weights | None = None,
) -> list[Alignment]:
    """Compute the links of each pair from its cross-attention between words."""
    check_pairs(sources, targets)
    read = translator.encode(sources)
    written = translator.encode_targets(targets)
    warn_of_truncation([sources, targets], [read, written], stacklevel=3)
    both = [n for n in range(len(read)) if read.ids[n] and written.ids[n]]
    order = sorted(both, key=lambda n: len(read.ids[n]))
    alignments: list[Alignment] = [()] * len(read)
    maps = each_attention(translator, read.take(order), written.take(order), weights=weights)
    for n, attention in zip(order, maps, strict=True):
        alignments[n] = links(attention.cross.words())
    return alignments


def pharaoh(alignment: Alignment) -> str:
    """Return an alignment in Pharaoh's format, such as "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def strongest(maps: AttentionMaps, layer: int) -> Alignment:
    """Link each target word, and each source word, to the word with the strongest weight."""
    rows = maps.weights[layer - 1].mean(axis=0)  # (T, S), the end tokens last
    weights = rows[:-1]
    end = weights.shape[1] - 1
    best_sources = weights.argmax(axis=1)
    best_targets = weights[:, :end].argmax(axis=0)
    from_targets = {(int(i), j) for j, i in enumerate(best_sources) if i != end}
    from_sources = {(i, int(j)) for i, j in enumerate(best_targets)}
    return tuple(sorted(from_targets | from_sources))


def nearest(maps: AttentionMaps) -> Alignment:
    """Return the link of each source word, by the mean of all layers and heads."""
    weights = maps.weights.mean(axis=(0, 1))[:-1, :-1]  # (T, S) without the end tokens
    return tuple((i, int(j)) for i, j in enumerate(weights.argmax(axis=0)))
