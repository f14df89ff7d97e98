"""Marian, pieces in and pieces out, in turns with other engines (turns.py).

It needs an environment with pymarian alone. A thread of Marian's takes a batch of its own, so the
sentences are divided among them.
"""

from pathlib import Path

from pymarian import Translator
from turns import BATCH, SOURCE_TOKENS, TOKENS, Translate, run


def load(folder: Path, threads: int) -> Translate:
    """Load the export of a folder."""
    translator = Translator(
        models=[str(folder / "model.npz")],
        vocabs=[str(folder / "vocab.yml")] * 2,
        beam_size=1,
        max_length_factor=TOKENS / SOURCE_TOKENS,
        mini_batch=BATCH // threads,
        maxi_batch=threads,
        cpu_threads=threads,
        quiet=True,
    )

    def translate(rows: list[list[str]]) -> list[int]:
        found = translator.translate([" ".join(row) for row in rows])
        return [len(text.split()) for text in found]

    return translate


if __name__ == "__main__":
    run(load)
