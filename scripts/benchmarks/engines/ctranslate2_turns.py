"""CTranslate2, pieces in and pieces out, in turns with other engines (turns.py)."""

from pathlib import Path

import ctranslate2
from turns import TOKENS, Translate, run


def load(folder: Path, threads: int, compute_type: str) -> Translate:
    """Load the export of a folder."""
    model = ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads
    )

    def translate(rows: list[list[str]]) -> list[int]:
        found = model.translate_batch(rows, beam_size=1, max_decoding_length=TOKENS)
        return [len(one.hypotheses[0]) for one in found]

    return translate


if __name__ == "__main__":
    run(load)
