"""The page beside an exported LiteRT model that says what it is, how it was checked and how to call it.

Knows no model: everything comes from the manifest.
"""


def model_card(manifest: dict) -> str:
    """The manifest in words, as Markdown."""
    languages = " to ".join(manifest["languages"] or ["one language", "another"])
    lines = [f"# Translation, {languages}", "", _about(manifest), "", "## Files", ""]
    lines += [
        f"- `{name}`: {size:,} bytes, SHA-256 {manifest['digests'][name]}"
        for name, size in manifest["files"].items()
    ]
    lines += ["", "## Signatures", "", "| signature | inputs | outputs |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {_tensors(s['inputs'])} | {_tensors(s['outputs'])} |"
        for name, s in manifest["signatures"].items()
    ]
    lines += [
        "",
        *_usage(manifest),
        "",
        "## Checked",
        "",
        *_checks(manifest),
        "",
        "## Limits",
        "",
        *_limits(manifest),
    ]
    return "\n".join(lines) + "\n"


def _about(manifest: dict) -> str:
    weights = {
        "none": "float32",
        "int8": "int8 (dynamic range, a scale for each row)",
        "float16": "float16",
    }
    return (
        f"A Transformer (Vaswani et al. 2017) of {manifest['parameters']:,} parameters with its search in one LiteRT "
        f"graph; weights in {weights[manifest['quantize']]}. Written by tfformer {manifest['versions']['tfformer']}."
    )


def _tensors(tensors: dict) -> str:
    def shape(sizes: list) -> str:
        return ", ".join("any" if size is None else str(size) for size in sizes)

    return ", ".join(
        f"`{name}` {tensor['dtype']} ({shape(tensor['shape'])})" for name, tensor in tensors.items()
    )


def _usage(manifest: dict) -> list[str]:
    tokenizers = " and ".join(f"`{name}`" for name in manifest["tokenizers"])
    lines = [
        f"`ids` are what SentencePiece's `encode` gives with {tokenizers}, without start and end token; of each row "
        "the first `lengths` count, whatever stands behind them. The result's `ids` end with the end token (3), which "
        "`lengths` counts, unless they reach the limit; behind it stand zeros. `score` is a log-probability in nats.",
    ]
    if "translate_text" in manifest["signatures"]:
        lines += ["", "`translate_text` needs TF Text's operators in the runtime."]
    if manifest["static"]:
        lines += [
            "",
            "Every shape is fixed. Take the narrowest signature with more places than the sentence has pieces.",
        ]
    return lines


def _checks(manifest: dict) -> list[str]:
    lines = [
        f"- `{name}`: {measured['identical']} of {measured['sentences']} sample translations are the trained model's."
        for name, measured in manifest["parity"].items()
    ]
    if bleu := manifest.get("bleu"):
        lines.append(
            f"- Greedy BLEU on {bleu['sentences']} validation sentences: {bleu['exported']:.2f}; the trained model "
            f"{bleu['run']:.2f} ({bleu['signature']})."
        )
    return lines


def _limits(manifest: dict) -> list[str]:
    decoding = manifest["decoding"]
    return [
        f"- A sentence has up to {decoding['max_length']} tokens, the end token among them; a longer one is cut.",
        "- It translates text like that which it was trained on, and nothing else well. A translation can be wrong and "
        "still read well.",
    ]
