"""SavedModel, for TensorFlow and TensorFlow Serving: its options."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tfformer.argument_checks import require
from tfformer.export.format import Format, with_search
from tfformer.runtime.progress_lines import Steps

if TYPE_CHECKING:
    from tfformer.config import DecodingConfig
    from tfformer.export.parity import Question
    from tfformer.inference.text_model import TextModel
    from tfformer.run_directory import Run

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class SavedModel(Format):
    """A translation model or a language model as a TensorFlow SavedModel.

    It also accepts the options of `Format`.

    Args:
        beam_size: Number of beams of `translate_beam`; by default the run's. A language model has
            no beam search.
        length_penalty: The alpha of Wu et al. 2016; by default the run's.
        dtype: The type of weights and arithmetic: "float32", "bfloat16" or "float16".
        with_text: Whether to write the signatures that take text, which need TensorFlow Text.
    """

    beam_size: int | None = None
    length_penalty: float | None = None
    dtype: str = "float32"
    with_text: bool = True

    title: ClassVar[str] = "the SavedModel"

    def __post_init__(self) -> None:
        require("dtype", self.dtype, DTYPES)

    def decoding(self, of_run: DecodingConfig) -> DecodingConfig:
        return with_search(of_run, self.beam_size, self.length_penalty)

    def prepare(self, run: Run, step: Steps) -> None:
        if self.with_text and importlib.util.find_spec("tensorflow_text") is None:
            import tensorflow as tf

            raise ValueError(
                "signatures over text need TensorFlow Text, which is not installed beside "
                f"TensorFlow {tf.__version__}; export with --no-text, or install a TensorFlow for "
                "which it has a release"
            )
        has_search = self.beam_size is not None or self.length_penalty is not None
        if has_search and not run.config.model.has_encoder:
            raise ValueError(
                f"{run.path} is a language model, which has no beam search; leave out the beam "
                "size and the length penalty"
            )

    def write(self, folder: Path, model: TextModel) -> None:
        from tfformer.export.saved_model import writer

        writer.write(folder, model, self.dtype, self.with_text)

    def description(self, folder: Path) -> dict[str, Any]:
        from tfformer.export.saved_model.writer import signatures

        return {
            "format": "saved_model",
            "dtype": self.dtype,
            "search": "greedy",  # by the default signature
            "signatures": signatures(folder),
        }

    def questions(self, model: TextModel, samples: Sequence[str]) -> list[Question]:
        from tfformer.export.saved_model.signatures import questions_of

        asked = questions_of(model, samples)
        return asked if self.with_text else asked[:1]

    def check(self, measured: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise an error if float32 differs; other types round differently."""
        if self.dtype == "float32":
            super().check(measured)
