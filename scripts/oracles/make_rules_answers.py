"""Write Transformers' answers under the rules of generation_config.json, as rules.json.

    oracle_venv/bin/python scripts/oracles/make_rules_answers.py tests/support/marian

The checkpoints and sentences come from `make_marian_fixtures.py` and `make_m2m100_fixtures.py`. As
in a run, a translation has at most 50 tokens more than its source.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM

NAMES = ("A", "B", "M2M")
SENTENCES = 8
BEAMS = (1, 4)
SETTINGS = (
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 1.3, "renormalize_logits": True},
    {"repetition_penalty": 0.8, "no_repeat_ngram_size": 3},
    {"min_length": 12},
    {"min_new_tokens": 12, "renormalize_logits": True},
    {"bad_words_ids": "frequent"},
    {"bad_words_ids": "frequent", "min_length": 9, "repetition_penalty": 1.1},
)


def main(folder: Path) -> None:
    """Write the answers of all checkpoints."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers = {name: answers_of(folder / name) for name in NAMES}
    (folder / "rules.json").write_text(json.dumps(answers, separators=(",", ":")) + "\n")


def answers_of(folder: Path) -> list[dict[str, Any]]:
    """Return the best ids and scores of greedy and beam search under each setting."""
    stored = json.loads((folder / "expected.json").read_text())
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    sources = stored["source_ids"][:SENTENCES]
    first, second, *_ = stored["greedy"][0][1:]  # after the language token of M2M
    token, repeated = stored["greedy"][1][1], stored["greedy"][2][1]
    padding = model.generation_config.bad_words_ids or []
    words = [*padding, [token], [first, second], [repeated, repeated]]
    answers = []
    for setting in SETTINGS:
        stated = dict(setting)
        if "bad_words_ids" in stated:
            stated["bad_words_ids"] = words
        ruled = {beams: [best(model, ids, beams, stated) for ids in sources] for beams in BEAMS}
        answers.append({"setting": stated, "found": ruled})
        print(folder.name, stated, flush=True)
    return answers


def best(
    model: torch.nn.Module, ids: list[int], beams: int, stated: dict[str, Any]
) -> tuple[list[int], float | None]:
    """Return the ids after the start token, and the score if it is a beam search."""
    output = model.generate(
        input_ids=torch.tensor([ids]),
        num_beams=beams,
        max_length=len(ids) + 51,
        return_dict_in_generate=True,
        output_scores=True,
        **stated,
    )
    score = output.sequences_scores[0].item() if beams > 1 else None
    return output.sequences[0].tolist()[1:], score


if __name__ == "__main__":
    main(Path(sys.argv[1]))
