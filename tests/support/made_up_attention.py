"""Artificial attention maps, for testing how they are drawn."""

import numpy as np

from tfformer.explain.attention_maps import Attention, AttentionMaps


def made_up(rows: str, columns: str, layers=1, heads=2, kind="encoder") -> AttentionMaps:
    """Random maps between words: each row sums to 1."""
    rows, columns = tuple(rows.split(" ")), tuple(columns.split(" "))
    rng = np.random.default_rng(7)
    return AttentionMaps(
        kind, rows, columns, rng.dirichlet(np.ones(len(columns)), (layers, heads, len(rows)))
    )


def made_up_attention(source: str, target: str, layers=2, heads=2) -> Attention:
    return Attention(
        made_up(source, source, layers, heads, "encoder"),
        made_up(target, target, layers, heads, "decoder"),
        made_up(target, source, layers, heads, "cross"),
    )


EXAMPLE = made_up_attention("▁The ▁a nimal ▁it ▁was . </s>", "▁Das ▁Ti er ▁es . </s>")
