"""Requests to a CTranslate2 model, and their answers as texts with scores."""

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from tfformer.export.other_process import ask
from tfformer.export.parity import Hypotheses
from tfformer.inference.graphs import length_limits
from tfformer.inference.translator import Translator


def run(folder: Path, translator: Translator, samples: Sequence[str]) -> dict[str, Hypotheses]:
    """Translate the samples with the model in `folder`.

    They are translated greedily, and with the run's beams.
    """
    sizes = {"greedy": 1, "beam": translator.decoding.beam_size}
    return {name: _best(folder, translator, samples, size) for name, size in sizes.items()}


def _best(
    folder: Path, translator: Translator, samples: Sequence[str], beam_size: int
) -> Hypotheses:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    rows = [row[: translator.max_length - 1] for row in source.encode(samples)]
    lengths = tf.constant([len(row) + 1 for row in rows])
    limits = length_limits(lengths, translator.max_length, translator.decoding).numpy()
    pairs = zip(rows, limits.tolist(), strict=True)
    prefix = [] if target.prefix_id is None else target.pieces([target.prefix_id])
    requests = [[source.pieces(row), beam_size, limit, prefix] for row, limit in pairs]
    answers = ask("ctranslate2", [folder.resolve()], requests)
    pieces_of_target = target.pieces(range(target.vocab_size))
    id_of = {piece: number for number, piece in enumerate(pieces_of_target)}
    ids = [list(map(id_of.__getitem__, pieces)) for pieces, _ in answers]
    texts = target.decode(ids)
    scores = [score for _, score in answers]
    return Hypotheses(beam_size, list(zip(texts, scores, strict=True)))
