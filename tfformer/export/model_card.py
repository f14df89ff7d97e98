"""The page beside an exported model: its manifest in words."""

from collections.abc import Mapping
from typing import Any

TEMPLATE = """\
# {title}

A Transformer (Vaswani et al. 2017) of {parameters:,} parameters, for {format} with weights in
{weights}. Written by tfformer {version} from the run with the weights {digest}.{measured}

Licence: {licence}.

## Files

{files}

## Signatures

{signatures}

The contract of inputs and outputs is in tfformer's export/README.md.

## Checked

{checks}

## Limits

- A text has up to {max_length} tokens, the end token included; a longer text is truncated.
- The model knows text like its training text. Its output can be wrong and still read well.
"""
FORMATS = {"saved_model": "TensorFlow", "ctranslate2": "CTranslate2", "litert": "LiteRT"}
NO_LICENCE = "the terms of the text that the model was trained on apply"


def model_card(manifest: Mapping[str, Any]) -> str:
    """Return the manifest in words, as Markdown."""
    run = manifest["run"]
    measured = [f" {name}={value}." for name, value in run.items() if name != "digest"]
    files = [
        f"- `{name}`: {size:,} bytes, SHA-256 {manifest['digests'][name]}"
        for name, size in manifest["files"].items()
    ]
    signatures = [
        f"- `{name}`: {_names(signature['inputs'])} -> {_names(signature['outputs'])}"
        for name, signature in manifest.get("signatures", {}).items()
    ]
    return TEMPLATE.format(
        title=_title(manifest),
        parameters=manifest["parameters"],
        format=FORMATS[manifest["format"]],
        weights=_weights(manifest),
        version=manifest["versions"]["tfformer"],
        digest=run["digest"],
        measured="".join(measured),
        licence=manifest.get("imported", {}).get("licence", NO_LICENCE),
        files="\n".join(files),
        signatures="\n".join(signatures) or "The engine searches; it has no signatures.",
        checks="\n".join(_checks(manifest)),
        max_length=manifest["decoding"]["max_length"],
    )


def _title(manifest: Mapping[str, Any]) -> str:
    languages = manifest["languages"]
    if "beam_size" not in manifest["decoding"]:
        return f"Language model, {languages[0]}" if languages else "Language model"
    return f"Translation, {' to '.join(languages or ['one language', 'another'])}"


def _weights(manifest: Mapping[str, Any]) -> str:
    quantize = manifest.get("quantize", "none")
    return manifest["dtype"] if quantize == "none" else quantize


def _names(tensors: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in tensors)


def _checks(manifest: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- `{name}`: {one['identical']} of {one['sentences']} samples give the run's own text."
        for name, one in manifest["parity"].items()
    ]
    if bleu := manifest.get("bleu"):
        lines.append(
            f"- Greedy BLEU on {bleu['sentences']} validation sentences: {bleu['exported']:.2f}; "
            f"the run itself {bleu['run']:.2f} ({bleu['signature']})."
        )
    return lines
