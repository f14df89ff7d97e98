"""CTranslate2's own loop over a text: one call that sorts and batches, greedy, with one thread.

python ctranslate2_loop.py EXPORT OUTPUT INPUT...
"""

import json
import sys
from pathlib import Path

import ctranslate2
import sentencepiece

BATCH = 64  # sentences, as `translate --workers` takes them


def main(folder: Path, output: Path, inputs: list[Path]) -> None:
    """Translate files with the export of a folder."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    [tokenizer] = manifest["tokenizers"]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / tokenizer))
    model = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)
    for file in inputs:
        results = model.translate_batch(
            processor.encode(file.read_text(encoding="utf-8").splitlines(), out_type=str),
            beam_size=1,
            length_penalty=0,
            max_batch_size=BATCH,
            max_decoding_length=manifest["decoding"]["max_length"],
            min_decoding_length=0,
        )
        texts = processor.decode([result.hypotheses[0] for result in results])
        (output / file.name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(file) for file in sys.argv[3:]])
