"""The verb `shortlist`."""

from __future__ import annotations

import json
import sys

import click

from tfformer.cli.options import examples, run
from tfformer.cli.terminal import load_tensorflow


@click.command(epilog=examples("tfformer shortlist runs/student"))
@run
def shortlist(run: str) -> None:
    """Let a run translate faster: it chooses among a few hundred pieces per sentence.

    These are the most frequent pieces and the likely translations of the sentence's pieces, learned
    from the run's training text. Exports contain them. The line of JSON states the share of the
    validation text that they cover.
    """
    load_tensorflow()
    from tfformer.data.translation_table import coverage, learn_table
    from tfformer.run_directory import Run
    from tfformer.runtime.progress_lines import Steps
    from tfformer.training.training_data import encoded_text

    opened = Run.open(run)
    opened.check_architecture("encoder-decoder")
    config, tokenizers = opened.config, opened.tokenizers
    if config.model.dialect.rules.to_dict():
        raise ValueError(
            f"{run} was imported with rules for its search, which a shortlist does not support; "
            "use a model that was trained here or by Marian"
        )
    valid = encoded_text(config, "valid", tokenizers)
    train = encoded_text(config, "train", tokenizers)
    with Steps(sys.stderr)(f"learning translations from {train.kept:,} sentence pairs"):
        table = learn_table(train, tokenizers)
    share, count = coverage(table, valid)
    opened.save_shortlist(table)
    print(json.dumps({"candidates": round(count, 1), "coverage": round(share, 4)}))
