"""A program that translates with a CTranslate2 model.

It knows nothing of tfformer, and must not.

    python -P ctranslate2.py FOLDER < requests.json > answers.json

Requests are [[pieces of one sentence, beam size, most pieces of its translation, the pieces that it
begins with], ...], answers [[pieces of the best translation, log-probability], ...].
"""

import json
import os
import sys

# OpenMP's idle threads sleep: spinning, they take seconds where other programs run, too.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import ctranslate2


def main(folder: str) -> None:
    """Answer the requests of standard input with the model in a folder."""
    translator = ctranslate2.Translator(folder, device="cpu", compute_type="float32")
    print(json.dumps([answer(translator, *request) for request in json.load(sys.stdin)]))


def answer(
    translator: ctranslate2.Translator,
    pieces: list[str],
    beam_size: int,
    max_length: int,
    prefix: list[str],
) -> tuple[list[str], float]:
    """Return the pieces of the best translation, and its log-probability.

    Args:
        translator: The loaded model.
        pieces: One sentence.
        beam_size: Number of beams; 1 is greedy search.
        max_length: Most pieces of the translation.
        prefix: The pieces that the translation begins with, such as that of its language.
    """
    (result,) = translator.translate_batch(
        [pieces],
        target_prefix=[prefix] if prefix else None,
        beam_size=beam_size,
        max_decoding_length=max_length,
        min_decoding_length=0,  # its own 1 takes the end token's probability away at the first step
        length_penalty=0,
        return_scores=True,
    )
    return result.hypotheses[0], result.scores[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
