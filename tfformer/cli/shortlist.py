"""The verb `shortlist`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tfformer.cli.options import TEXT_FILE, examples, run
from tfformer.cli.terminal import load_tensorflow


@click.command(
    epilog=examples("tfformer shortlist runs/student", "tfformer shortlist runs/student lex.s2t.gz")
)
@run
@click.argument("table", type=TEXT_FILE, required=False, metavar="[TABLE]")
def shortlist(run: str, table: str | None) -> None:
    """Let a run translate faster: it chooses among a few hundred pieces per sentence.

    These are the most frequent pieces and the likely translations of the sentence's pieces, learned
    from the run's training text, or read from TABLE, Marian's lex.s2t or Firefox's lex.bin. Exports
    contain them. The line of JSON states the share of the validation text that they cover.
    """
    load_tensorflow()
    from tfformer.checkpoints.foreign_order import vocabularies
    from tfformer.checkpoints.marian.shortlist import in_our_order, read_table
    from tfformer.data.translation_table import coverage, learn_table
    from tfformer.run_directory import Run
    from tfformer.training.training_data import encoded_text

    opened = Run.open(run)
    opened.check_architecture("encoder-decoder")
    config, tokenizers = opened.config, opened.tokenizers
    if config.model.dialect.rules.to_dict() or tokenizers.target.prefix_id is not None:
        raise ValueError(
            f"{run} was imported with language tokens or rules for single pieces, which a "
            "shortlist does not support; use a model that was trained here or by Marian"
        )
    if table:
        source, target = vocabularies(opened)
        found = read_table(Path(table), source.pieces, target.pieces)
        rows = in_our_order(found, source.order, target.order)
    else:
        rows = learn_table(encoded_text(config, "train", tokenizers), tokenizers)
    opened.save_shortlist(rows)
    measured: dict[str, float] = {"vocabulary": tokenizers.target.vocab_size}
    if config.data.valid:
        share, count = coverage(rows, encoded_text(config, "valid", tokenizers))
        measured |= {"candidates": round(count, 1), "coverage": round(share, 4)}
    print(json.dumps(measured))
