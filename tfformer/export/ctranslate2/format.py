"""CTranslate2: its options, and the questions that check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.export.format import Format, check_installed, with_search
from tfformer.export.parity import Question
from tfformer.runtime.steps import Steps
from tfformer.special_ids import START_ID

if TYPE_CHECKING:
    from tfformer.config import DecodingConfig, Dialect
    from tfformer.inference.text_model import TextModel
    from tfformer.run_directory import Run


@dataclass(frozen=True, kw_only=True)
class CTranslate2(Format):
    """A translation model as a CTranslate2 model in float32.

    CTranslate2 divides a score by length^alpha, a run by the formula of Wu et al. 2016. The
    comparison therefore uses no length penalty, and CTranslate2's stopping criterion, logit rules
    and treatment of the unknown token.

    Args:
        beam_size: Number of beams of the engine and of the comparison; by default the run's.
        **options: `max_length`, `samples`, `source_language` and `target_language`, see `Format`.
    """

    beam_size: int | None = None

    title: ClassVar[str] = "the CTranslate2 model"

    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        return with_search(of_run, self.beam_size, length_penalty=0.0)

    def dialect(self, of_run: Dialect) -> Dialect:
        rules = of_run.rules
        if rules.to_dict():
            rules = rules.replace(beam_scores="logits", start_token=START_ID)
        return of_run.replace(narrowing=False, early_stopping=True, allow_unknown=True, rules=rules)

    def prepare(self, run: Run, step: Steps) -> None:
        run.check_architecture("encoder-decoder")
        check_installed("ctranslate2", "CTranslate2", "ctranslate2")

    def write(self, folder: Path, model: TextModel) -> None:
        from tfformer.export.ctranslate2 import writer
        from tfformer.model.transformer import Transformer

        assert isinstance(model.model, Transformer)
        writer.write(folder, model.model, model.tokenizers, model.max_length)

    def description(self, folder: Path) -> dict[str, Any]:
        return {"format": "ctranslate2", "dtype": "float32"}

    def questions(self, model: TextModel, samples: Sequence[str]) -> list[Question]:
        from tfformer.export.questions import beam, greedy

        return [greedy("greedy", model, samples), beam("beam", model, samples)]
