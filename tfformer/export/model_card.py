"""The manifest of an artifact, as JSON and Markdown: what was written, and from which run."""

import importlib.metadata
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfformer import __version__
from tfformer.checkpoints.provenance import imported_from
from tfformer.engines.artifact import RUNTIMES
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.storage.artifact_folders import files_in
from tfformer.storage.whole_files import file_digest

LIBRARIES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "sentencepiece",
    "ctranslate2",
    "ai-edge-litert",
)
EXAMPLES = {  # example sentences and their translations; the key is `data.valid`
    "phrasebook:valid": {
        "Good morning.": "Guten Morgen.",
        "How are you?": "Wie geht es Ihnen?",
        "Where is the station?": "Wo ist der Bahnhof?",
        "The animal did not cross the street because it was too tired.": (
            "Das Tier überquerte die Straße nicht, weil es zu müde war."
        ),
    }
}
TEMPLATE = """\
# {title}

A Transformer (Vaswani et al. 2017) of {parameters:,} parameters, for {format} with weights in
{weights}. Written by tfformer {version} from the run with the weights {digest}.{measured}

Licence: {licence}.

## Files

{files}

## Signatures

{signatures}

tfformer's export/README.md specifies the inputs and outputs.

## Checked

{checks}

## Limits

- A text has up to {max_length} tokens, including the end token; a longer text is truncated.
- The model works best on text like its training text. Its output can read well and still be wrong.
"""
NO_LICENCE = "none stated; the terms of the training text apply"


def first_manifest(folder: Path, run: Run, model: TextModel) -> dict[str, Any]:
    """Save the tokenizers beside an artifact, and return the entries that every manifest has.

    export/README.md documents the keys.
    """
    form = model.model.dialect.search() if isinstance(model, Translator) else {}
    both = model.tokenizers
    tokenizers = {"source.model": both.source, "target.model": both.target}
    if both.shared:
        tokenizers = {"tokenizer.model": both.source}
    for name, tokenizer in tokenizers.items():
        tokenizer.save(folder / name)
    result = json.loads(run.result.read_text(encoding="utf-8"))
    measured = {name: value for name, value in result.items() if name.startswith("val_")}
    origin = imported_from(run)
    examples = []  # for a page, if the run's training text is known to contain them
    if isinstance(run.config.data.valid, str) and isinstance(model, Translator):
        examples = right_examples(model, EXAMPLES.get(run.config.data.valid, {}))
    versions = {"tfformer": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for library in LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    return {
        "languages": run.languages,
        "tag": both.source.tag,  # put before each sentence by the text signatures
        "tags": list(both.source.tags),  # that may stand before a text
        "directions": run.directions,
        "licence": origin.get("imported", {}).get("licence", NO_LICENCE),
        "examples": examples,
        "decoding": {"max_length": model.max_length} | model.search_settings() | form,
        "shortlist": isinstance(model, Translator) and model.shortlist is not None,
        "tokenizers": {name: tokenizer.digest for name, tokenizer in tokenizers.items()},
        "parameters": model.model.count_params(),
        "run": {"digest": file_digest(run.weights), **measured},
        **files_in(folder),
        "versions": versions,
        **origin,
    }


def right_examples(translator: Translator, known: Mapping[str, str]) -> list[str]:
    """Return the sentences in `known` that the model translates exactly as given there."""
    translations = translator.translate(translator.encode(list(known)))
    pairs = zip(known.items(), translations, strict=True)
    return [source for (source, target), translation in pairs if translation == target]


def model_card(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as a model card in Markdown."""
    run = manifest["run"]
    quantize = manifest.get("quantize", "none")
    measured = [f" {name}={value}." for name, value in run.items() if name != "digest"]
    files = [
        f"- `{name}`: {size:,} bytes, SHA-256 {manifest['digests'][name]}"
        for name, size in manifest["files"].items()
    ]
    signatures = [
        f"- `{name}`: {_names(signature['inputs'])} -> {_names(signature['outputs'])}"
        for name, signature in manifest.get("signatures", {}).items()
    ]
    languages = manifest["languages"]
    title = f"Translation, {' to '.join(languages or ['one language', 'another'])}"
    if "beam_size" not in manifest["decoding"]:
        title = f"Language model, {languages[0]}" if languages else "Language model"
    return TEMPLATE.format(
        title=title,
        parameters=manifest["parameters"],
        format=RUNTIMES[manifest["format"]].library,
        weights=manifest["dtype"] if quantize == "none" else quantize,
        version=manifest["versions"]["tfformer"],
        digest=run["digest"],
        measured="".join(measured),
        licence=manifest["licence"],
        files="\n".join(files),
        signatures="\n".join(signatures) or "The engine searches; it has no signatures.",
        checks="\n".join(_checks(manifest)),
        max_length=manifest["decoding"]["max_length"],
    )


def _names(tensors: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in tensors)


def _checks(manifest: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- `{name}`: {check['identical']} of {check['sentences']} samples match the run's text."
        for name, check in manifest["parity"].items()
    ]
    if bleu := manifest.get("bleu"):
        lines.append(
            f"- Greedy BLEU on {bleu['sentences']} validation sentences: {bleu['exported']:.2f}; "
            f"the run itself {bleu['run']:.2f} ({bleu['signature']})."
        )
    return lines
