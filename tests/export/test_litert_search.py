"""The interpreter of a LiteRT export, with a scripted file in place of LiteRT's."""

from pathlib import Path

import numpy as np

from tfformer.export.litert import search
from tfformer.special_ids import END_ID

E = END_ID


class ScriptedFile:
    """A static file that copies sources of up to 3 or 7 ids, in ids of those lengths."""

    def get_signature_runner(self, name):
        width = {"translate_4": 4, "translate": 8}[name]

        def run(ids, lengths):
            assert ids.shape == (1, width)
            return {"ids": ids[:, : width - 1], "score": np.array([-float(width)])}

        return run


def test_a_static_file_translates_sentences_of_several_widths(monkeypatch):
    """Its translations may be as long as the signature allows, which differs by width."""
    monkeypatch.setattr(search, "_interpreter", lambda file: ScriptedFile())
    manifest = {
        "static": True,
        "decoding": {"max_length": 8},
        "signatures": {
            "translate_4": {"inputs": {"ids": {"shape": [1, 4]}}},
            "translate": {"inputs": {"ids": {"shape": [1, 8]}}},
        },
    }
    static = search.LitertSearch(Path(), manifest)
    found = static.run([[5], [5, 6, 7, 8, 9]], search.GREEDY)
    assert found.ids.tolist() == [[[5, E, E, E, E, E, E]], [[5, 6, 7, 8, 9, E, E]]]
    assert found.scores.tolist() == [[-4.0], [-8.0]]
