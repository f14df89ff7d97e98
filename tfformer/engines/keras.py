"""The engine of a run directory: Keras with the run's best weights."""

from collections.abc import Sequence

from tfformer.engines.engine import Engine
from tfformer.inference import Translation
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run


class KerasEngine(Engine):
    """A run of a translation model; `TF_NUM_INTRAOP_THREADS` sets the number of threads."""

    def __init__(self, folder: str, threads: int | None = None) -> None:
        run = Run.open(folder)
        self.translator = Translator.of(run)
        super().__init__({"languages": run.languages}, self.translator.tokenizers)
        self.beam_size = self.translator.decoding.beam_size
        self.max_tokens = self.translator.max_length - 1

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        encoded = self.translator.encode(list(sentences))  # truncated without a warning
        return self.translator.n_best(encoded, beam_size)
