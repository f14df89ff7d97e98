"""The page: a static LiteRT file with greedy search, and the files of the page around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tfformer.export.litert.format import LiteRT
from tfformer.runtime.steps import Steps

if TYPE_CHECKING:
    from tfformer.run_directory import Run


@dataclass(frozen=True, kw_only=True)
class WebPage(LiteRT):
    """A page that translates in the browser, for any server of static files.

    Args:
        quantize: "none", "int8" (dynamic range, a scale per row) or "float16".
        max_length: As in `Format`.
        samples: As in `Format`.
        source_language: As in `Format`.
        target_language: As in `Format`.
    """

    quantize: str = "float16"
    static: bool = field(default=True, init=False)  # a page has no choice of the following
    beam_size: int = field(default=1, init=False)
    length_penalty: float | None = field(default=None, init=False)
    with_text: bool = field(default=False, init=False)

    subfolder: ClassVar[str] = "model"

    def prepare(self, run: Run, step: Steps) -> None:
        from tfformer.export.web import page

        super().prepare(run, step)
        page.built(step)

    def finish(self, version: Path) -> None:
        from tfformer.export.web import page

        page.lay_out(page.DIST, version)
