"""The engine of a CTranslate2 export."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Make OpenMP's idle threads sleep: spinning costs seconds when other programs run, too.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import ctranslate2
import numpy as np

from tfformer.engines.artifact import open_export
from tfformer.engines.engine import Engine
from tfformer.inference import Translation


class CTranslate2Engine(Engine):
    """An exported version, run by CTranslate2 on `threads` CPU cores, by default all."""

    def __init__(self, folder: str, threads: int | None = None) -> None:
        manifest, tokenizers = open_export(Path(folder))
        super().__init__(manifest, tokenizers)
        self._translator = ctranslate2.Translator(folder, device="cpu", intra_threads=threads or 0)
        target = tokenizers.target
        pieces = target.pieces(range(target.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._rules = _rules(manifest["decoding"].get("rules", {}), pieces)
        self._prefix = [] if target.prefix_id is None else target.pieces([target.prefix_id])

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        rows = self._encoded(sentences)
        translations = [[Translation("", 0.0)] for _ in rows]
        full = (number for number, row in enumerate(rows) if row)
        by_length = sorted(full, key=lambda number: len(rows[number]))
        # CTranslate2 accepts one limit per call.
        for limit, group in itertools.groupby(by_length, lambda number: self._limit(rows[number])):
            numbers = list(group)
            results = self._translator.translate_batch(
                [self._tokenizers.source.pieces(rows[number]) for number in numbers],
                target_prefix=[self._prefix] * len(numbers) if self._prefix else None,
                beam_size=beam_size,
                num_hypotheses=count,
                length_penalty=self.manifest["decoding"]["length_penalty"],
                max_decoding_length=limit,
                max_input_length=0,  # no limit; the rows are short enough for the model
                return_scores=True,
                **self._rules,
            )
            for number, result in zip(numbers, results, strict=True):
                translations[number] = self._translations(result)
        return translations

    def _limit(self, row: Sequence[int]) -> int:
        """Maximum number of tokens of a translation, by the run's rule (`graphs.length_limits`)."""
        decoding = self.manifest["decoding"]
        width = np.float32(len(row) + 1)
        proportional = int(np.ceil(np.float32(decoding["max_length_factor"]) * width))
        return min(proportional + decoding["extra_length"], decoding["max_length"])

    def _translations(self, result: Any) -> list[Translation]:
        ids = [list(map(self._ids.__getitem__, pieces)) for pieces in result.hypotheses]
        texts = self._tokenizers.target.decode(ids)
        pairs = zip(texts, result.scores, strict=True)
        return [Translation(text, score) for text, score in pairs]


def _rules(rules: Mapping[str, Any], pieces: Sequence[str]) -> dict[str, Any]:
    """Return the rules of an export's dialect as CTranslate2 options."""
    words = rules.get("bad_words", [])
    return {
        "repetition_penalty": rules.get("repetition_penalty", 1.0),
        "no_repeat_ngram_size": rules.get("no_repeat_ngram_size", 0),
        "min_decoding_length": rules.get("min_length", 0),  # CTranslate2's default is 1
        "suppress_sequences": [[pieces[number] for number in word] for word in words] or None,
    }
