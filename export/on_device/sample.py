"""Translate standard input, a sentence per line, with SentencePiece and LiteRT alone.

pip install ai-edge-litert sentencepiece numpy
python sample.py models/mine/1 < sentences.en > sentences.de

These are the calls that an app makes, in Kotlin, Swift or C++ too. For whole texts, use `tfformer
translate` with the same folder.
"""

import json
import sys
from pathlib import Path

import numpy as np
import sentencepiece
from ai_edge_litert.interpreter import Interpreter

END_ID = 3


def main(folder: Path) -> None:
    """Translate with the greedy search of an exported version."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if any(name.endswith(".pieces.json") for name in manifest["files"]):
        sys.exit(f"SentencePiece does not know the ids of {folder}; use tfformer translate")
    tag = f"{manifest['tag']} " if manifest["tag"] else ""  # chooses the language
    names = sorted(manifest["tokenizers"])  # source before target, or one for both
    source = sentencepiece.SentencePieceProcessor(model_file=str(folder / names[0]))
    target = sentencepiece.SentencePieceProcessor(model_file=str(folder / names[-1]))
    interpreter = Interpreter(model_path=str(folder / "model.tflite"), num_threads=2)
    translate = interpreter.get_signature_runner("translate")
    max_length = manifest["decoding"]["max_length"]
    for line in sys.stdin:
        sentence = line.strip()
        ids = source.encode(tag + sentence if sentence else "")
        ids = ids[: max_length - 1]  # the end token needs a position too
        width = max_length if manifest["static"] else max(1, len(ids))
        padded = ids + [END_ID] * (width - len(ids))
        best = translate(ids=np.array([padded], np.int32), lengths=np.array([len(ids)], np.int32))
        tokens = best["ids"][0, : best["lengths"][0]].tolist()
        print(target.decode([token for token in tokens if token != END_ID]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
