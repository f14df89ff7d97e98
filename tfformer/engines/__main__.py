"""Answer requests to an artifact; the check of an export runs this in a new process.

    python -m tfformer.engines FOLDER < requests.json > answers.json

Requests are [[signature, {input: values}], ...]; the answers are [[{output: values}, ...], ...],
with a list per loader. A SavedModel is read by two loaders, see `saved_model.Session`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.engines import open_engine
from tfformer.engines.engine import as_text

Request = tuple[str, Mapping[str, Any]]
Answers = list[dict[str, Any]]


def main(folder: str) -> None:
    """Answer the requests on standard input with the artifact in a folder."""
    requests = json.load(sys.stdin)
    by_loader = []
    with open_engine(folder) as engine:
        if engine.manifest["format"] == "saved_model":
            from tfformer.engines.saved_model import Session

            by_loader.append(_answers(Session(Path(folder)), requests))
        by_loader.append(_answers(engine, requests))
    print(json.dumps(by_loader))


def _answers(engine: Any, requests: Sequence[Request]) -> Answers:
    answers = []
    for signature, inputs in requests:
        arrays = {name: _array(values) for name, values in inputs.items()}
        outputs = engine.run(signature, arrays)
        answers.append({name: as_text(values.tolist()) for name, values in outputs.items()})
    return answers


def _array(values: Sequence[Any]) -> np.ndarray:
    """Return JSON's nested lists as an array of UTF-8 bytes or 32-bit integers."""
    if isinstance(values[0], str):
        return np.array([text.encode() for text in values], object)
    return np.array(values, np.int32)


if __name__ == "__main__":
    main(*sys.argv[1:])
