"""LiteRT: its options, the questions that check it, and the cost of quantised weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.export.format import Format, check_choice, check_installed, with_search
from tfformer.export.parity import Question
from tfformer.runtime.steps import Steps

if TYPE_CHECKING:
    from tfformer.config import DecodingConfig
    from tfformer.inference.text_model import TextModel
    from tfformer.run_directory import Run

FILE = "model.tflite"
QUANTIZATIONS = ("none", "int8", "float16")


@dataclass(frozen=True, kw_only=True)
class LiteRT(Format):
    """A translation model as a LiteRT file.

    Quantised weights translate a little differently: their cost in BLEU is measured on the
    validation text of the run.

    Args:
        beam_size: Number of beams for `translate_beam`; by default the file has only greedy search.
        length_penalty: The alpha of Wu et al. 2016; by default the run's.
        quantize: "none", "int8" (dynamic range, a scale per row) or "float16".
        static: Whether all shapes are fixed, as browsers and `CompiledModel` require.
        **options: `max_length`, `samples`, `source_language` and `target_language`, see `Format`.
    """

    beam_size: int = 1
    length_penalty: float | None = None
    quantize: str = "none"
    static: bool = False

    title: ClassVar[str] = "the LiteRT file"

    def __post_init__(self) -> None:
        check_choice("quantize", self.quantize, QUANTIZATIONS)

    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        return with_search(of_run, self.beam_size, self.length_penalty)

    def prepare(self, run: Run, step: Steps) -> None:
        from tfformer.export.litert import quantization_cost

        run.check_architecture("encoder-decoder")
        check_installed("ai_edge_litert", "LiteRT", "litert")
        if self.quantize != "none" and run.config.data.valid:
            quantization_cost.validation_text(run)

    def write(self, folder: Path, model: TextModel) -> None:
        from tfformer.export.litert import writer

        writer.write(folder / FILE, model, self.quantize, self.static)

    def description(self, folder: Path) -> dict[str, Any]:
        from tfformer.export.litert.writer import signatures

        return {
            "format": "litert",
            "dtype": "float32",
            "quantize": self.quantize,
            "static": self.static,
            "search": "greedy",  # by the signature `translate`
            "signatures": signatures(folder / FILE),
        }

    def questions(self, model: TextModel, samples: Sequence[str]) -> list[Question]:
        from tfformer.export.questions import beam, greedy

        asked = [greedy("translate", model, samples)]
        if self.beam_size > 1:
            asked.append(beam("translate_beam", model, samples))
        return asked

    def check(self, measured: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse float32 that differs from the run."""
        if self.quantize == "none":
            super().check(measured)

    def measured(self, folder: Path, run: Run, model: TextModel, step: Steps) -> dict[str, Any]:
        from tfformer.export.litert import quantization_cost

        if self.quantize == "none":
            return {}
        return quantization_cost.measured(folder, run, model, self.quantize, step)
