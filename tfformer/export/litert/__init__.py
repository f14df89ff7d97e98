"""LiteRT, one file for phones and browsers: its options, and the cost of quantised weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.argument_checks import require
from tfformer.export.format import (
    Format,
    check_installed,
    check_validation_text,
    validation_pairs,
    with_search,
)
from tfformer.runtime.progress_lines import Steps

if TYPE_CHECKING:
    from tfformer.config import DecodingConfig
    from tfformer.export.parity import Question
    from tfformer.inference.text_model import TextModel
    from tfformer.run_directory import Run

FILE = "model.tflite"
QUANTIZATIONS = ("none", "int8", "float16")
MEASURED = 1_000  # sentence pairs


@dataclass(frozen=True, kw_only=True)
class LiteRT(Format):
    """A translation model as a LiteRT file.

    Quantised weights translate a little differently: their cost in BLEU is measured on the
    validation text of the run.

    It also accepts the options of `Format`.

    Args:
        beam_size: Number of beams for `translate_beam`. If it is above 1, the file can also
            continue given beginnings (`translate_prefix`); by default it has only greedy search.
        length_penalty: The alpha of Wu et al. 2016; by default the run's.
        quantize: "none", "int8" (dynamic range, a scale per row) or "float16".
        static: Whether all shapes are fixed, as browsers and `CompiledModel` require.
    """

    beam_size: int = 1
    length_penalty: float | None = None
    quantize: str = "none"
    static: bool = False

    title: ClassVar[str] = "the LiteRT file"
    extras: ClassVar[tuple[str, ...]] = ("tensorflow", "litert")

    def __post_init__(self) -> None:
        require("quantize", self.quantize, QUANTIZATIONS)

    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        return with_search(of_run, self.beam_size, self.length_penalty)

    def prepare(self, run: Run, step: Steps) -> None:
        run.check_architecture("encoder-decoder")
        check_installed("ai_edge_litert", "LiteRT", "litert")
        if self.quantize != "none" and run.config.data.valid:
            validation_text(run)

    def write(self, folder: Path, model: TextModel) -> None:
        from tfformer.export.litert import writer

        writer.write(folder / FILE, model, self.quantize, self.static, self.aligns)

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
        from tfformer.engines.engine import PREFIX
        from tfformer.export.parity import beam, continued, greedy

        asked = [greedy("translate", model, samples)]
        if self.beam_size > 1:
            asked += [beam("translate_beam", model, samples), continued(PREFIX, model, samples)]
        return asked

    def check(self, measured: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse float32 that differs from the run."""
        if self.quantize == "none":
            super().check(measured)

    def measured(self, folder: Path, run: Run, model: TextModel, step: Steps) -> dict[str, Any]:
        """Return `bleu`, the cost of quantised weights: greedy BLEU of run and file, and the loss.

        Without a validation text in the run's recipe, it warns and returns an empty dictionary.
        """
        if self.quantize == "none":
            return {}
        if not run.config.data.valid:
            warnings.warn(
                f"the recipe of {run.path} names no validation text, so the BLEU cost of "
                f"--quantize {self.quantize} is not measured",
                stacklevel=2,
            )
            return {}
        from tfformer.engines.engine import GREEDY
        from tfformer.export.parity import ask, best_translations, read_greedy
        from tfformer.inference.evaluation import bleu_tokenizer, scores

        with step("measuring BLEU on the validation text"):
            sources, references = validation_text(run)
            of_run = [text for text, _ in best_translations(model, sources, beam_size=1)]
            [[answer]] = ask(folder, [(GREEDY, {"text": sources})])
            of_file = [text for text, _ in read_greedy(answer)]
            tokenize = bleu_tokenizer(run.config)
            before = scores(of_run, references, tokenize=tokenize)
            after = scores(of_file, references, tokenize=tokenize)
        figures = {
            "sentences": len(sources),
            "run": before["bleu"],
            "exported": after["bleu"],
            "loss": float(before["bleu"]) - float(after["bleu"]),
            "signature": before["signature"],
        }
        return {"bleu": figures}


def validation_text(run: Run) -> tuple[list[str], list[str]]:
    """Return sources and references to measure on.

    Raises:
        OSError: The validation text cannot be read.
        ValueError: It is not the text that the run was trained with.
    """
    try:
        check_validation_text(run)
        sources, references = zip(*validation_pairs(run, MEASURED), strict=True)
    except OSError as error:
        raise OSError(
            "quantised weights are measured on the run's validation text, which cannot be read "
            f"({error}); run the export in the folder where the run was trained, or use --quantize "
            "none"
        ) from error
    return list(sources), list(references)
