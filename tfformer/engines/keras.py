"""The engine of a run directory: Keras with the run's best weights."""

from collections.abc import Sequence
from pathlib import Path

from tfformer.engines.engine import PREFIX, PREFIXES, Engine
from tfformer.inference import Translation
from tfformer.inference.alignment import Aligned
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.runtime.devices import has_gpu

GPU_CHUNK = 8_000  # sentences in memory and in a portion, of which a GPU gets full batches


class KerasEngine(Engine):
    """A run of a translation model; `TF_NUM_INTRAOP_THREADS` sets the number of threads."""

    def __init__(
        self,
        run: str | Path | Run,
        threads: int | None = None,
        length_penalty: float | None = None,
    ) -> None:
        opened = run if isinstance(run, Run) else Run.open(run)
        self.translator = Translator.of(opened)
        manifest = {"languages": opened.languages, "directions": opened.directions}
        super().__init__(manifest, self.translator.tokenizers)
        self.beam_size = self.translator.decoding.beam_size
        self.max_tokens = self.translator.max_length - 1
        if has_gpu():
            self.chunk = self.portion = GPU_CHUNK
        self.signatures = {**self.signatures, PREFIX: PREFIXES}
        self._length_penalty = length_penalty

    @property
    def can_align(self) -> bool:
        """Whether the run can align words: always."""
        return True

    def aligned(self, sentences: Sequence[str], translations: Sequence[str]) -> list[Aligned]:
        """Return the attention and the probability of each token; see `Engine.aligned`."""
        sources = self.translator.encode(list(sentences))  # truncated without a warning
        targets = self.translator.encode_targets(list(translations))
        return self.translator.aligned(sources, targets)

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        encoded = self.translator.encode(list(sentences))  # truncated without a warning
        return self.translator.n_best(encoded, beam_size, self._length_penalty)

    def _continued(
        self, sentences: Sequence[str], prefixes: Sequence[str], count: int
    ) -> list[list[Translation]]:
        encoded = self.translator.encode(list(sentences))
        return self.translator.continuations(encoded, prefixes, count)
