"""The cost of quantised weights: greedy BLEU of the run and of the file on the validation text."""

import itertools
import warnings
from pathlib import Path
from typing import Any

from tfformer.data.sources import read_pairs
from tfformer.engines.engine import GREEDY
from tfformer.export.parity import ask
from tfformer.export.questions import best_translations, read_greedy
from tfformer.inference.evaluation import scores
from tfformer.inference.text_model import TextModel
from tfformer.run_directory import Run
from tfformer.runtime.steps import Steps

MOST = 1_000  # sentence pairs


def measured(
    folder: Path, run: Run, model: TextModel, quantize: str, step: Steps
) -> dict[str, dict[str, Any]]:
    """Return the manifest's entry `bleu`: both scores, their difference and BLEU's signature.

    If the run's recipe names no validation text, it warns and returns an empty dictionary.
    """
    if not run.config.data.valid:
        warnings.warn(
            f"the recipe of {run.path} names no validation text, so the BLEU cost of --quantize "
            f"{quantize} is not measured",
            stacklevel=2,
        )
        return {}
    with step("measuring BLEU on the validation text"):
        sources, references = validation_text(run)
        of_run = [text for text, _ in best_translations(model, sources, beam_size=1)]
        [[answer]] = ask(folder, [(GREEDY, {"text": sources})])
        of_file = [text for text, _ in read_greedy(answer)]
        before, after = scores(of_run, references), scores(of_file, references)
    figures = {
        "sentences": len(sources),
        "run": before["bleu"],
        "exported": after["bleu"],
        "loss": float(before["bleu"]) - float(after["bleu"]),
        "signature": before["signature"],
    }
    return {"bleu": figures}


def validation_text(run: Run) -> tuple[list[str], list[str]]:
    """Return up to `MOST` sources and their references; OSError if the text cannot be read."""
    data = run.config.data
    languages = (data.languages[0], data.languages[1]) if data.languages else None
    try:
        pairs = read_pairs(data.valid, folder=data.folder, languages=languages, split="validation")
        sources, references = zip(*itertools.islice(pairs, MOST), strict=True)
    except OSError as error:
        raise OSError(
            "quantised weights are measured on the run's validation text, which cannot be read "
            f"({error}); run the export in the folder where the run was trained, or use --quantize "
            "none"
        ) from error
    return list(sources), list(references)
