"""The engine of a LiteRT export.

The file maps ids to ids; the engine encodes and decodes the text. Shape letters: B sentences, S
source tokens, T target tokens, N beams or continuations, P tokens of a prefix.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import LifoQueue
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tfformer.data.encoding import in_batches
from tfformer.engines.artifact import open_export
from tfformer.engines.engine import ALIGN, NO_TRANSLATION, PREFIX, PREFIXES, Engine
from tfformer.inference import Translation
from tfformer.runtime.tensorflow import silence
from tfformer.special_ids import END_ID, PAD_ID

FILE = "model.tflite"
GREEDY_IDS, BEAM_IDS = "translate", "translate_beam"  # the file's signatures over ids
MAX_INTERPRETERS = 4  # each has one thread and its own copy of the packed weights
SENTENCES = 16  # largest batch of an interpreter
SHORTLISTED = 4  # the same with a shortlist: logits are computed for the union of the candidates


class LitertEngine(Engine):
    """An exported version, run by LiteRT with one thread per interpreter.

    There are `threads` interpreters; by default one per processor, up to `MAX_INTERPRETERS`. The
    one that was used last is used next, because an interpreter's first call takes much longer.
    """

    searches_with_any_beam_size = False

    def __init__(self, path: str, threads: int | None = None) -> None:
        folder = Path(path)
        manifest, tokenizers = open_export(folder)
        super().__init__(manifest, tokenizers)
        self._file = folder / FILE
        if BEAM_IDS not in manifest["signatures"]:
            self.beam_size = 1
        if PREFIX in manifest["signatures"]:
            self.signatures = {**self.signatures, PREFIX: PREFIXES}
        self._sentences = SHORTLISTED if manifest.get("shortlist") else SENTENCES
        self._count = threads or min(os.cpu_count() or 1, MAX_INTERPRETERS)
        self._threads = ThreadPoolExecutor(self._count, "litert")
        self._free: LifoQueue[IdSearch] = LifoQueue()
        first = IdSearch(self._file, manifest)
        with silence():  # the first run of a process logs which delegate LiteRT has created
            first.run([[]], GREEDY_IDS)
        for _ in range(self._count - 1):
            self._free.put(IdSearch(self._file, manifest))
        self._free.put(first)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        return self._run(self._encoded(sentences), BEAM_IDS if beam_size > 1 else GREEDY_IDS)

    def _continued(
        self, sentences: Sequence[str], prefixes: Sequence[str], count: int
    ) -> list[list[Translation]]:
        begun = self._tokenizers.target.encode(list(prefixes))
        return self._run(self._encoded(sentences), PREFIX, begun)

    def _run(
        self,
        rows: Sequence[Sequence[int]],
        signature: str,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Translation]]:
        """Translate rows of ids in batches of similar length."""
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        size = min(self._sentences, math.ceil(len(rows) / self._count)) or 1
        batches = list(in_batches(order, size))

        def translated(batch: list[int]) -> list[list[Translation]]:
            begun = [prefixes[number] for number in batch] if prefixes else None
            return self._translations([rows[number] for number in batch], signature, begun)

        results = self._threads.map(translated, batches)
        translations: list[list[Translation]] = [[] for _ in rows]
        for batch, result in zip(batches, results, strict=True):
            for number, row in zip(batch, result, strict=True):
                translations[number] = row
        return translations

    def _align_ids(self, sources: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        search = self._free.get()
        try:
            return search.align(sources, targets)
        finally:
            self._free.put(search)

    def _translations(
        self,
        rows: Sequence[Sequence[int]],
        signature: str,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> list[list[Translation]]:
        """Translate B rows of ids with a free interpreter."""
        search = self._free.get()
        try:
            result = search.run(rows, signature, prefixes)
        finally:
            self._free.put(search)
        length = result.ids.shape[2]
        texts = iter(self._tokenizers.target.decode(result.ids.reshape(-1, length).tolist()))
        translations = []
        for scores in result.scores.tolist():
            row = [Translation(next(texts), score) for score in scores]
            translations.append([t for t in row if t.score > NO_TRANSLATION / 2])
        return translations


class TranslatedIds(NamedTuple):
    """The translations of B sentences, best first."""

    ids: np.ndarray  # ids (B, N, T); a translation ends with its first end token
    scores: np.ndarray  # their scores (B, N)


class IdSearch:
    """An interpreter of an export, for one thread at a time."""

    def __init__(self, file: Path, manifest: Mapping[str, Any]) -> None:
        self._is_static = bool(manifest.get("static"))
        self._signatures: Mapping[str, Any] = manifest["signatures"]
        try:
            # Otherwise LiteRT 2.3.0 frees the tensors of loops after each call. When XNNPACK's
            # workspace grows, it may take the address of a freed tensor; XNNPACK then takes a copy
            # between the two for a copy onto itself, and skips it.
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # more memory
                self._interpreter = Interpreter(
                    model_path=str(file),
                    num_threads=1,
                    experimental_preserve_all_tensors=not self._is_static,
                )
        except (ValueError, RuntimeError) as error:
            raise ValueError(
                f"{file} cannot be loaded ({error}); copy the whole exported folder again, or "
                "export the run again"
            ) from None

    def run(
        self,
        rows: Sequence[Sequence[int]],
        signature: str,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> TranslatedIds:
        """Translate the ids of B sentences.

        `GREEDY_IDS` finds one translation per sentence, `BEAM_IDS` finds several, and `PREFIX`
        finds several that begin with the sentence's prefix.
        """
        size = 1 if self._is_static else len(rows)
        results = [
            self._run(
                rows[start : start + size], signature, prefixes and prefixes[start : start + size]
            )
            for start in range(0, len(rows), size)
        ]
        longest = max(result.ids.shape[2] for result in results)  # a static file's lengths differ
        ids = []
        for result in results:
            missing = longest - result.ids.shape[2]
            ends = [(0, 0), (0, 0), (0, missing)]
            ids.append(np.pad(result.ids, ends, constant_values=END_ID))
        scores = np.concatenate([result.scores for result in results])
        return TranslatedIds(np.concatenate(ids), scores)

    def align(self, sources: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities (B, T) and attention (B, T, S).

        The rows of sources (B, S) and targets (B, T) end with the end token, and then have zeros.
        """
        shape: Sequence[int | None] = self._signatures[ALIGN]["inputs"]["ids"]["shape"]
        inputs = {}
        for prefix, ids in (("", sources), ("target_", targets)):
            width = shape[1] or ids.shape[1]
            inputs[f"{prefix}ids"] = np.pad(ids, ((0, 0), (0, width - ids.shape[1])))
            lengths = np.count_nonzero(ids, axis=1).astype(np.int32)
            inputs[f"{prefix}lengths"] = lengths - 1  # without end tokens
        align = self._interpreter.get_signature_runner(ALIGN)
        size = shape[0] or len(sources)
        batches = [
            align(**{name: values[row : row + size] for name, values in inputs.items()})
            for row in range(0, len(sources), size)
        ]
        names = ("log_probs", "attention")
        log_probs, attention = (np.concatenate([batch[n] for batch in batches]) for n in names)
        length = targets.shape[1]
        return log_probs[:, :length], attention[:, :length, : sources.shape[1]]

    def _run(
        self,
        rows: Sequence[Sequence[int]],
        signature: str,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> TranslatedIds:
        lengths = np.array(list(map(len, rows)), np.int32)  # (B,)
        width, name = self._width_and_name(max(1, *lengths.tolist()), signature)
        inputs = {"ids": _padded(rows, width, END_ID), "lengths": lengths}
        if prefixes is not None:
            longest = self._signatures[name]["inputs"]["prefix"]["shape"][1]
            inputs["prefix"] = _padded(prefixes, longest or max(1, *map(len, prefixes)), PAD_ID)
        outputs = self._interpreter.get_signature_runner(name)(**inputs)
        if signature != GREEDY_IDS:
            return TranslatedIds(outputs["ids"], outputs["scores"])
        return TranslatedIds(outputs["ids"][:, np.newaxis], outputs["score"][:, np.newaxis])

    def _width_and_name(self, most: int, signature: str) -> tuple[int, str]:
        """Return the input width for `most` tokens and the name of its signature.

        A static file has one signature per width. The narrowest signature that also fits the end
        token is used.
        """
        if not self._is_static:
            return most, signature
        names = {
            each["inputs"]["ids"]["shape"][1]: name
            for name, each in self._signatures.items()
            if name == signature or name.removeprefix(f"{signature}_").isdecimal()
        }
        width = min(width for width in names if width > most)
        return width, names[width]


def _padded(rows: Sequence[Sequence[int]], width: int, fill: int) -> np.ndarray:
    """Return B rows of ids as an array (B, `width`)."""
    padded = np.full((len(rows), width), fill, np.int32)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
