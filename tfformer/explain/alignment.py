"""Which source word each word of a translation comes from, read off the cross-attention. Knows no picture and no file.

Words are what stands between spaces, counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfformer.explain.attention import AttentionMaps, each_attention
from tfformer.inference.translator import Translator

Alignment = tuple[tuple[int, int], ...]  # (source word, target word), in order


def alignments(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], layer: int | None = None
) -> list[Alignment]:
    """The alignment of each pair; nothing is aligned where a side is blank.

    The weights are the mean of the heads of one decoder layer, by default the last but one (Garg et al. 2019, "Jointly
    Learning to Align and Translate with Transformer Models"). A target word is aligned to the source word that it looks
    at most while it is written, to none where that is the end token; a source word to the target word that looks at it
    most; both directions together, as in Och and Ney 2003. Words beyond what the model takes are not aligned.
    """
    layers = len(translator.model.decoder.layers)
    layer = max(1, layers - 1) if layer is None else layer
    if layer not in range(1, layers + 1):
        raise ValueError(f"layer={layer} does not exist; the decoder has the layers 1 to {layers}")
    source_ids, target_ids = (
        translator.tokenizers.source.encode(sources),
        translator.tokenizers.target.encode(targets),
    )
    both = [n for n in range(len(sources)) if source_ids[n] and target_ids[n]]
    order = sorted(both, key=lambda n: len(source_ids[n]))
    found = [()] * len(sources)
    maps = each_attention(translator, [sources[n] for n in order], [targets[n] for n in order])
    for n, attention in zip(order, maps, strict=True):
        found[n] = _strongest(attention.cross.words(), layer)
    return found


def pharaoh(alignment: Alignment) -> str:
    """The usual format: "0-0 1-2", source word and target word."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def alignment_error_rate(found: Sequence[Alignment], known: Sequence[Alignment]) -> float:
    """1 - 2 |A and S| / (|A| + |S|) over all sentences: Och and Ney 2003, where every known link is a sure one."""
    pairs = [(set(a), set(s)) for a, s in zip(found, known, strict=True)]
    total = sum(len(a) + len(s) for a, s in pairs)
    if not total:
        raise ValueError(
            "there is no link in these alignments, and so no error rate; give sentences with some"
        )
    return 1 - 2 * sum(len(a & s) for a, s in pairs) / total


def _strongest(maps: AttentionMaps, layer: int) -> Alignment:
    weights = maps.weights[layer - 1].mean(axis=0)[
        :-1
    ]  # from each target word to each source word and the end token
    end = weights.shape[1] - 1
    from_targets = {
        (int(source), target)
        for target, source in enumerate(weights.argmax(axis=1))
        if source != end
    }
    from_sources = {
        (source, int(target)) for source, target in enumerate(weights[:, :end].argmax(axis=0))
    }
    return tuple(sorted(from_targets | from_sources))
