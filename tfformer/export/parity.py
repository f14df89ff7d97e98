"""Run an artifact in another process, and compare its outputs with the run's.

The questions about text, which every engine answers, are at the end.
"""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfformer.engines.engine import BEAM, GREEDY, PREFIX
from tfformer.special_ids import END_ID, UNKNOWN_ID

if TYPE_CHECKING:
    from tfformer.inference.text_model import TextModel

SCORE_TOLERANCE = 1e-3  # relative, or in nats below 1; rounding alone causes about 1e-5
SAMPLES = 32  # random sentences
DIFFERENCE = "largest_score_difference"
CHECKOUT = Path(__file__).parents[2]  # the folder of the package

Scored = tuple[str, float]  # a text and its score in nats
Inputs = dict[str, Any]  # name -> texts or nested lists of integers, batch first
Outputs = dict[str, Any]  # name -> values, batch first


class Question(NamedTuple):
    """Requests to an artifact, and the expected answers."""

    name: str  # the signature or the search, as the manifest names it
    beam_size: int  # 1 is greedy search
    signature: str  # as the engine names it
    requests: Sequence[Inputs]
    read: Callable[[Outputs], Sequence[Scored]]  # texts with scores from a request's outputs
    expected: Sequence[Scored]  # the run's texts with scores


def compare(folder: Path, questions: Sequence[Question]) -> dict[str, dict[str, Any]]:
    """Measure how many texts of an artifact (a folder with a manifest) equal the run's.

    The figures of each question are `beam_size`, `sentences`, how many are `identical`, and their
    `largest_score_difference`, which is relative if the score is beyond 1, and infinite if it is
    not a number. If several loaders run the artifact, the worst figures are returned.
    """
    requests = [(q.signature, inputs) for q in questions for inputs in q.requests]
    measured: dict[str, dict[str, Any]] = {}
    for answers in ask(folder, requests):
        outputs = iter(answers)
        for question in questions:
            received = [text for _ in question.requests for text in question.read(next(outputs))]
            figures = compared(question, received)
            before = measured.setdefault(question.name, figures)
            before["identical"] = min(before["identical"], figures["identical"])
            before[DIFFERENCE] = max(before[DIFFERENCE], figures[DIFFERENCE])
    return measured


def ask(folder: Path, requests: Sequence[tuple[str, Inputs]]) -> list[list[Outputs]]:
    """Return an artifact's outputs for each request (signature and inputs), per loader.

    Another process, `python -m tfformer.engines`, runs the artifact. ValueError is raised if the
    process fails or prints no answer.
    """
    command = [sys.executable, "-m", "tfformer.engines", str(folder.resolve())]
    done = subprocess.run(
        command,
        input=json.dumps(requests),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        cwd=CHECKOUT,
    )
    if done.returncode:
        raise _refusal(reason(done.returncode, done.stderr))
    last = done.stdout.strip().rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        raise _refusal(f"its last line is not an answer: {last[:100]!r}") from None


def reason(code: int, errors: str) -> str:
    r"""Return why a process failed: the last line of its errors, or the signal that ended it.

    Example:
        >>> reason(-11, "Segmentation fault"), reason(1, "Traceback\nOSError: no space")
        ('SIGSEGV', 'OSError: no space')
    """
    if code < 0:
        return signal.Signals(-code).name
    return (errors.strip() or f"exit code {code}").splitlines()[-1]


def _refusal(reason: str) -> ValueError:
    return ValueError(
        f"another process cannot run the export, which is therefore deleted: {reason}"
    )


def compared(question: Question, answers: Sequence[Scored]) -> dict[str, Any]:
    """Return the figures of `compare` for the answers to a question."""
    differences = []
    for (text, score), (reply, measured) in zip(question.expected, answers, strict=True):
        if text == reply:
            difference = abs(score - measured) / max(1.0, abs(score))
            differences.append(math.inf if math.isnan(difference) else difference)
    return {
        "beam_size": question.beam_size,
        "sentences": len(answers),
        "identical": len(differences),
        DIFFERENCE: max(differences, default=0.0),
    }


def check(parity: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ValueError if a text differs, or a score differs by more than `SCORE_TOLERANCE`."""
    for name, measured in parity.items():
        is_same = measured["identical"] == measured["sentences"]
        if not is_same or measured[DIFFERENCE] > SCORE_TOLERANCE:
            raise ValueError(
                f"{name} returned the run's translation for {measured['identical']} of "
                f"{measured['sentences']} samples, and scores differ by up to "
                f"{measured[DIFFERENCE]:.2g}; the export is deleted"
            )


def greedy(name: str, model: TextModel, samples: Sequence[str]) -> Question:
    """Return the question for greedy translations, which the manifest calls `name`."""
    expected = best_translations(model, samples, beam_size=1)
    return Question(name, 1, GREEDY, [{"text": samples}], read_greedy, expected)


def beam(name: str, model: TextModel, samples: Sequence[str]) -> Question:
    """Return the question for the best translations by the artifact's beam search."""
    beam_size = model.search_settings()["beam_size"]
    expected = best_translations(model, samples, beam_size)
    return Question(name, beam_size, BEAM, [{"text": samples}], read_beam, expected)


def continued(name: str, model: TextModel, samples: Sequence[str]) -> Question:
    """Return the question for continuations of the first half of each greedy translation."""
    from tfformer.inference.translator import Translator

    assert isinstance(model, Translator)
    halves = [text[: len(text) // 2] for text, _ in best_translations(model, samples, beam_size=1)]
    encoded = model.tokenizers.target.encode(halves)
    prefixes = [
        "" if UNKNOWN_ID in ids or len(ids) >= model.max_length else half
        for half, ids in zip(halves, encoded, strict=True)
    ]
    expected = [best for best, *_ in model.continuations(model.encode(samples), prefixes, 1)]

    def read(outputs: Outputs) -> list[Scored]:
        rows = zip(outputs["translations"], outputs["probabilities"], strict=True)
        return [(texts[0], math.log(probabilities[0])) for texts, probabilities in rows]

    return Question(name, 1, PREFIX, [{"text": samples, "prefix": prefixes}], read, expected)


def best_translations(model: TextModel, samples: Sequence[str], beam_size: int) -> list[Scored]:
    """Return the run's translations; samples that are too long are truncated without a warning."""
    from tfformer.inference.translator import Translator

    assert isinstance(model, Translator)
    return [best for best, *_ in model.n_best(model.encode(samples), beam_size)]


def read_greedy(outputs: Outputs) -> list[Scored]:
    """Return the translations and their scores."""
    return list(zip(outputs["translation"], outputs["score"], strict=True))


def read_beam(outputs: Outputs) -> list[Scored]:
    """Return the best translation of each beam, and its score."""
    rows = zip(outputs["translations"], outputs["scores"], strict=True)
    return [(texts[0], scores[0]) for texts, scores in rows]


def random_samples(model: TextModel) -> list[str]:
    """Return reproducible random sentences of source pieces, up to twice the maximum length."""
    longest = model.max_length
    ids = range(END_ID + 1, model.tokenizers.source.vocab_size)
    dice = random.Random(1)
    lengths = [*(1 + n % longest for n in range(SAMPLES - 1)), 2 * longest]
    rows = [dice.choices(ids, k=length) for length in lengths]
    return [sentence for sentence in model.tokenizers.source.decode(rows) if sentence]
