"""Compares 1,000 translations of each small checkpoint with those of Transformers.

In tfformer's own environment, after answer_transformers.py:

    PYTHONPATH=.:tests python scripts/oracles/compare_transformers.py FOLDER [IDS]

Counts equal greedy translations and equal beams, each hypothesis of four and its rank; the greatest
differences of logits and of scores; and generated padding. The last line is JSON.
"""

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf
from support.marian_checkpoints import checkpoint, languages

from tfformer.checkpoints.import_model import import_model
from tfformer.config import DecodingConfig
from tfformer.inference.graphs import translate_ids
from tfformer.inference.search import Hypotheses
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.special_ids import PAD_ID, START_ID

BATCH = 50
MAX_LENGTH = 60
BEAMS, ALPHA = 4, 1.0
NEVER = (PAD_ID, START_ID)


class Order:
    """The ids of a run for foreign ones, and back.

    Args:
        run: An imported run.
        side: "source" or "target".
    """

    def __init__(self, run: Path, side: str) -> None:
        record = json.loads((run / "imported.json").read_text(encoding="utf-8"))
        self.rows = record[side]["rows"]
        self._ids = {row: number for number, row in enumerate(self.rows) if number != START_ID}

    def here(self, rows: list[list[int]]) -> np.ndarray:
        """Foreign ids as the run's, padded: (B, L)."""
        found = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
        for number, row in enumerate(rows):
            found[number, : len(row)] = [self._ids[foreign] for foreign in row]
        return found

    def there(self, ids: Iterable[int]) -> list[int]:
        """The run's ids as foreign ones."""
        return [self.rows[number] for number in ids]


def main(folder: Path, chosen: list[str]) -> None:
    """Compare the chosen checkpoints, or all that were answered."""
    found = {}
    for name in chosen or sorted(path.stem for path in folder.glob("*.json")):
        found[name] = compared(name, folder)
        print(name, found[name], flush=True)
    print(json.dumps(found))


def compared(name: str, folder: Path) -> dict[str, float]:
    """Count and measure one checkpoint's answers."""
    answers = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(folder / f"{name}.npz") as arrays:
        logits = np.split(
            arrays["logits"], np.cumsum([len(answer["greedy"]) for answer in answers])[:-1]
        )
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        run = import_model(checkpoint(name, place), place / "run", **languages(name))
        opened = Run.open(run)
        model, first = opened.load_model(), opened.tokenizers.target.prefix_id
        sides = Order(run, "source"), Order(run, "target")
    searches = [search(model, beams, first) for beams in (1, BEAMS)]
    found = {"greedy": 0, "beams": 0, "logits": 0.0, "scores": 0.0, "padding": 0}
    for begin in range(0, len(answers), BATCH):
        part = slice(begin, begin + BATCH)
        source = sides[0].here([answer["source"] for answer in answers[part]])
        compare_logits(found, model, source, sides[1], answers[part], logits[part])
        greedy, beams = (searched(tf.constant(source)) for searched in searches)
        for number, answer in enumerate(answers[part]):
            compare_searches(found, name, sides[1], answer, of(number, greedy), of(number, beams))
    return found


def search(model: Transformer, beams: int, first: int | None) -> tf.types.experimental.Callable:
    """The search in a graph: ids (B, S) -> hypotheses."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def searched(source: tf.Tensor) -> Hypotheses:
        decoding = DecodingConfig(
            beam_size=beams, length_penalty=ALPHA, length_normalization="power"
        )
        return translate_ids(model, source, MAX_LENGTH, decoding, first_token=first)

    return searched


def of(number: int, hypotheses: Hypotheses) -> list[tuple[np.ndarray, float]]:
    """One sentence's hypotheses, as ids with the end and a score."""
    ids, lengths, scores = (field[number].numpy() for field in hypotheses)
    return [(row[:length], score) for row, length, score in zip(ids, lengths, scores, strict=True)]


def compare_logits(
    found: dict,
    model: Transformer,
    source: np.ndarray,
    order: Order,
    answers: list[dict],
    wanted: list[np.ndarray],
) -> None:
    """Compare the logits of the greedy translations, but of the two tokens never generated."""
    target = order.here([answer["greedy"] for answer in answers])
    given = np.roll(target, 1, axis=1)
    given[:, 0] = START_ID
    logits = model({"source": source, "target": given}).numpy()
    kept = [n for n, row in enumerate(order.rows) if row is not None and n not in NEVER]
    foreign = order.there(kept)
    for row, theirs in zip(logits, wanted, strict=True):
        difference = np.abs(row[: len(theirs), kept] - theirs[:, foreign]).max()
        found["logits"] = max(found["logits"], float(difference))


def compare_searches(
    found: dict, name: str, order: Order, answer: dict, greedy: list, beams: list
) -> None:
    """Count equal translations, and print those that differ."""
    generated = np.concatenate([ids for ids, _ in [*greedy, *beams]])
    found["padding"] += int(np.isin(generated, NEVER).sum())
    ours = [order.there(ids) for ids, _ in [*greedy, *beams]]
    theirs = [answer["greedy"], *(ids for ids, _ in answer["beams"])]
    found["greedy"] += ours[0] == theirs[0]
    found["beams"] += ours[1:] == theirs[1:]
    if ours == theirs:
        pairs = zip(beams, answer["beams"], strict=True)
        difference = max(abs(mine - score) for (_, mine), (_, score) in pairs)
        found["scores"] = max(found["scores"], float(difference))
        return
    scores = [round(float(score), 5) for _, score in beams]
    wanted = [round(score, 5) for _, score in answer["beams"]]
    kind = "beams" if ours[0] == theirs[0] else "greedy"
    print(f"  {name} {kind} differ: margin {answer['margin']:.2g}, {scores} for {wanted}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
