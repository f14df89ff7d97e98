"""The verb `import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfformer.cli.options import TEXT_FILE, NewFolder, examples, languages
from tfformer.cli.terminal import load_tensorflow

if TYPE_CHECKING:
    from tfformer.checkpoints.foreign_checkpoint import Checkpoint


@click.command(
    "import",
    epilog=examples(
        "tfformer import Helsinki-NLP/opus-mt-en-de --run-dir runs/opus",
        "tfformer import facebook/m2m100_418M --run-dir runs/m2m --languages en,de "
        "--trim text.en-de",
    ),
)
@click.argument("model")
@click.option(
    "--run-dir",
    type=NewFolder(),
    required=True,
    metavar="DIR",
    help="The new run: an empty or missing folder.",
)
@click.option(
    "--revision", metavar="NAME", help="Branch, tag or commit on the hub.  [default: main]"
)
@click.option(
    "--positions",
    type=click.Choice(["auto", "marian", "hf"]),
    default="auto",
    help="Compute positions and search as in marian-decoder, Hugging Face, or (auto) the format's "
    "toolkit.",
)
@click.option(
    "--normalize",
    type=click.Choice(["none", "opus-mt"]),
    default="none",
    help="Normalise punctuation and spaces first, as OPUS-MT does.",
)
@click.option(
    "--trim",
    type=TEXT_FILE,
    metavar="TEXT",
    help="Keep only the vocabulary pieces that occur in this text, a file with both languages.",
)
@languages("Required for M2M100 and NLLB.")
def import_model(
    model: str,
    run_dir: str,
    revision: str | None,
    positions: str,
    normalize: str,
    trim: str | None,
    languages: tuple[str | None, str | None],
) -> None:
    """Turn another toolkit's model (Marian, M2M100, NLLB) into a run.

    MODEL is the folder or zip of a Hugging Face or Marian checkpoint, or a name on the Hugging Face
    hub. The languages become the run's defaults.
    """
    from tfformer.checkpoints.foreign_checkpoint import Choices
    from tfformer.checkpoints.import_model import checkpoint_at

    source_language, target_language = languages
    choices = Choices(
        positions=positions,
        normalize=normalize,
        source_language=source_language,
        target_language=target_language,
        trim=trim,
    )
    with checkpoint_at(model, run_dir, choices, revision) as checkpoint:
        load_tensorflow()
        from tfformer.checkpoints.imported_run import write_run

        written = write_run(checkpoint, Path(run_dir))
    print(_summary(checkpoint), file=sys.stderr)
    print(written)


def _summary(checkpoint: Checkpoint) -> str:
    languages = " to ".join(checkpoint.languages or []) or "languages not stated"
    beam_size = checkpoint.decoding.beam_size
    search = "greedy search" if beam_size == 1 else f"{beam_size} beams"
    licence = checkpoint.provenance["licence"]
    summary = f"{checkpoint.family}, {languages}, {search}, licence: {licence}"
    if trimmed := checkpoint.provenance.get("trimmed"):
        counts = " to ".join(f"{count:,}" for count in trimmed["pieces"])
        sizes = " to ".join(f"{count / 1e6:,.1f}" for count in trimmed["bytes"])
        summary += f"\ntrimmed: {counts} pieces, {sizes} MB of weights; "
        summary += f"{trimmed['coverage']:.2%} of the text is covered"
    return summary
