"""The page beside an exported model.

It describes the model, the checks of it and the ways to call it. It knows no model: everything
comes from the manifest.
"""

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]

FORMATS = {
    "saved_model": "one TensorFlow SavedModel",
    "ctranslate2": "a CTranslate2 model, whose engine searches",
    "litert": "one LiteRT graph",
}
WEIGHTS = {
    "none": "float32",
    "int8": "int8 (dynamic range, a scale for each row)",
}


def model_card(manifest: Manifest) -> str:
    """Return the manifest in words, as Markdown."""
    sections = {
        _title(manifest): [_about(manifest)],
        "Files": _files(manifest),
        "Signatures": _signatures(manifest),
        "Use": _usage(manifest),
        "Checked": _checks(manifest),
        "Limits": _limits(manifest),
    }
    title, *others = [(name, lines) for name, lines in sections.items() if lines]
    parts = [f"# {title[0]}", "", *title[1]]
    for name, lines in others:
        parts += ["", f"## {name}", "", *lines]
    return "\n".join(parts) + "\n"


def _is_translation(manifest: Manifest) -> bool:
    return "beam_size" in manifest["decoding"]


def _title(manifest: Manifest) -> str:
    languages = manifest["languages"]
    if not _is_translation(manifest):
        return f"Language model, {languages[0]}" if languages else "Language model"
    return f"Translation, {' to '.join(languages or ['one language', 'another'])}"


def _about(manifest: Manifest) -> str:
    quantize = manifest.get("quantize")
    weights = WEIGHTS.get(quantize, quantize) if quantize else manifest["dtype"]
    kind = "A Transformer (Vaswani et al. 2017)"
    if not _is_translation(manifest):
        kind = "The decoder of a Transformer (Vaswani et al. 2017)"
    search = " with its search in" if manifest["format"] != "ctranslate2" else " as"
    return (
        f"{kind} of {manifest['parameters']:,} parameters{search} {FORMATS[manifest['format']]}; "
        f"weights in {weights}. Written by tfformer {manifest['versions']['tfformer']}."
    )


def _files(manifest: Manifest) -> list[str]:
    return [
        f"- `{name}`: {size:,} bytes, SHA-256 {manifest['digests'][name]}"
        for name, size in manifest["files"].items()
    ]


def _signatures(manifest: Manifest) -> list[str]:
    if "signatures" not in manifest:
        return []
    rows = [
        f"| `{name}` | {_tensors(signature['inputs'])} | {_tensors(signature['outputs'])} |"
        for name, signature in manifest["signatures"].items()
    ]
    return ["| signature | inputs | outputs |", "|---|---|---|", *rows]


def _tensors(tensors: Mapping[str, Mapping[str, Any]]) -> str:
    def shape(sizes: list[int | None]) -> str:
        return ", ".join("any" if size is None else str(size) for size in sizes)

    return ", ".join(
        f"`{name}` {tensor['dtype']} ({shape(tensor['shape'])})" for name, tensor in tensors.items()
    )


def _usage(manifest: Manifest) -> list[str]:
    tokenizers = " and ".join(f"`{name}`" for name in manifest["tokenizers"])
    if manifest["format"] == "ctranslate2":
        return [
            f"Give the pieces of the ids that SentencePiece's `encode` gives with {tokenizers}, "
            "without start and end token, and `min_decoding_length=0`."
        ]
    given = (
        f"`ids` are SentencePiece's `encode` with {tokenizers}, without start and end token; of "
        "each row the first `lengths` count, whatever stands behind them. The result's `ids` end "
        "with the end token (3), which `lengths` counts, unless they reach the limit; behind it "
        "stand zeros. `score` is a log-probability in nats."
    )
    lines = [given]
    if "serving_default" in manifest["signatures"]:
        lines += [
            "",
            "TensorFlow Serving runs this folder as it is. The signatures over text need the "
            "operations of TensorFlow Text, which TensorFlow Serving has; in Python, "
            "`import tensorflow_text` brings them in.",
        ]
    if "translate_text" in manifest["signatures"]:
        lines += ["", "`translate_text` needs TF Text's operators in the runtime."]
    if manifest.get("static"):
        lines += [
            "",
            "Every shape is fixed. Take the narrowest signature with more places than the sentence "
            "has pieces.",
        ]
    return lines


def _checks(manifest: Manifest) -> list[str]:
    texts = "translations" if _is_translation(manifest) else "texts"
    lines = [
        f"- `{name}`: {measured['identical']} of {measured['sentences']} sample {texts} are the "
        "trained model's."
        for name, measured in manifest["parity"].items()
    ]
    if bleu := manifest.get("bleu"):
        lines.append(
            f"- Greedy BLEU on {bleu['sentences']} validation sentences: {bleu['exported']:.2f}; "
            f"the trained model {bleu['run']:.2f} ({bleu['signature']})."
        )
    return lines


def _limits(manifest: Manifest) -> list[str]:
    longest = manifest["decoding"]["max_length"]
    if not _is_translation(manifest):
        return [
            f"- A text with its continuation has up to {longest} tokens, the end token among them.",
            "- It continues text like its training text, and nothing else well. A text can be "
            "wrong and still read well.",
        ]
    return [
        f"- A sentence has up to {longest} tokens, the end token among them; a longer one is cut.",
        "- It translates text like its training text, and nothing else well. A translation can be "
        "wrong and still read well.",
    ]
