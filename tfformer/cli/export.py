"""The verb `export`."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tfformer.cli.options import (
    TEXT_FILE,
    beam_size,
    examples,
    languages,
    length_penalty,
    new_folder,
    run,
)
from tfformer.cli.terminal import input_lines, load_tensorflow
from tfformer.export import NAMES, check_options
from tfformer.export.litert import QUANTIZATIONS
from tfformer.export.saved_model import DTYPES
from tfformer.storage.artifact_folders import MANIFEST, is_run


@click.command(
    epilog=examples(
        "tfformer export runs/mine --format saved_model --output models/mine",
        "tfformer export runs/mine --format litert --quantize int8 --output models/mine-litert",
        "tfformer export runs/mine --format web --output site",
    )
)
@run
@click.option(
    "--format",
    "format",
    type=click.Choice(NAMES),
    required=True,
    help="litert includes beam search and prefixes only with --beam-size; web never does.",
)
@new_folder("Folder of versions; the new one is a subfolder with the next free number.")
@click.option(
    "--max-length",
    type=click.IntRange(min=2),
    metavar="N",
    help="Maximum number of tokens per sentence. Default: the run's.",
)
@beam_size
@length_penalty
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    help="Type of the weights of a saved_model. Default: float32.",
)
@click.option(
    "--quantize",
    type=click.Choice(QUANTIZATIONS),
    help="Type of the weights in litert (default: none), web (default: float16) and marian's "
    "model.bin (none or int8).",
)
@click.option(
    "--no-text",
    "with_text",
    flag_value=False,
    default=None,
    help="Leave out a saved_model's signatures over text, which need TF Text's operations.",
)
@click.option(
    "--static",
    is_flag=True,
    default=None,
    help="Fix all shapes of a litert file, for one sentence, as CompiledModel requires.",
)
@click.option(
    "--samples",
    type=TEXT_FILE,
    metavar="F",
    help="Sentences to compare export and run with, and to measure the inputs of int8 products in "
    "marian. Default: random pieces; in marian the validation text.",
)
@languages()
def export(run: str, format: str, output: str, **values: Any) -> None:
    """Export a finished run for use by other software.

    Another process reads the export back and compares its translations with the run's. In float32
    they must be identical.
    """
    values["source_language"], values["target_language"] = values.pop("languages")
    options = {name: value for name, value in values.items() if value is not None}
    check_options(format, options)
    if is_run(output):
        raise FileExistsError(f"{output} is a run directory; choose another --output")
    if (Path(output) / MANIFEST).is_file():
        raise FileExistsError(
            f"{output} is an exported version; pass the folder above it as --output"
        )
    if "samples" in options:
        file = options["samples"]
        options["samples"] = list(input_lines(file))
        if not any(map(str.strip, options["samples"])):
            raise ValueError(f"--samples {file} has no sentence; write one per line")
    load_tensorflow()
    from tfformer.export.pipeline import export_model

    version = export_model(run, output, format, progress=sys.stderr, **options)
    (manifest,) = version.rglob(MANIFEST)
    samples = "samples" if "samples" in options else "random samples"
    for line in _parity_lines(json.loads(manifest.read_text(encoding="utf-8")), samples):
        print(line)
    print(version)


def _parity_lines(manifest: Mapping[str, Any], samples: str) -> Iterator[str]:
    for name, measured in manifest["parity"].items():
        counts = f"{measured['identical']} of {measured['sentences']}"
        if name == "tensors":  # a checkpoint for another toolkit, which does not run here
            yield f"tensors: {counts} were read back bit-identical"
        else:
            yield f"{name}: {counts} {samples} gave the same output as the run"
    if figures := manifest.get("calibration"):
        yield (
            f"confidence: expected calibration error {figures['error_before']:.4f}, and "
            f"{figures['error_after']:.4f} with the temperature {figures['temperature']:.3f}, on "
            f"{figures['tokens']:,} validation tokens"
        )
    elif "calibration" in manifest:
        yield "confidence: not calibrated (temperature 1), for lack of the run's validation text"
    if bleu := manifest.get("bleu"):
        before_and_after = f"run {bleu['run']:.2f}, export {bleu['exported']:.2f}"
        yield f"BLEU on {bleu['sentences']} validation sentences: {before_and_after}"
