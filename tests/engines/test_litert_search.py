"""The interpreter of a LiteRT export, with a scripted file instead of LiteRT's."""

from pathlib import Path

import numpy as np

from tfformer.engines import litert
from tfformer.special_ids import END_ID

E = END_ID


class ScriptedFile:
    """A static file that copies up to 3 or 7 ids to an output of that length."""

    def get_signature_runner(self, name):
        width = {"translate_4": 4, "translate": 8}[name]

        def run(ids, lengths):
            assert ids.shape == (1, width)
            return {"ids": ids[:, : width - 1], "score": np.array([-float(width)])}

        return run


def test_a_static_file_translates_sentences_of_several_widths(monkeypatch):
    """The maximum length of a translation differs by width, because the signature sets it."""
    monkeypatch.setattr(litert, "Interpreter", lambda **arguments: ScriptedFile())
    manifest = {
        "static": True,
        "signatures": {
            "translate_4": {"inputs": {"ids": {"shape": [1, 4]}}},
            "translate": {"inputs": {"ids": {"shape": [1, 8]}}},
        },
    }
    static = litert.IdSearch(Path(), manifest)
    hypotheses = static.run([[5], [5, 6, 7, 8, 9]], litert.GREEDY_IDS)
    assert hypotheses.ids.tolist() == [[[5, E, E, E, E, E, E]], [[5, 6, 7, 8, 9, E, E]]]
    assert hypotheses.scores.tolist() == [[-4.0], [-8.0]]
