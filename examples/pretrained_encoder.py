"""A translator whose encoder starts from a language model of the source language.

    python examples/pretrained_encoder.py --data multi30k --output runs/pretrained

The language model reads all sentences of the source side, the translators only the first few pairs:
as where there is much text of one language, and little that is translated. In shell the same is

    tfformer train lm.yaml --run-dir runs/lm
    tfformer train recipe.yaml --run-dir runs/mine --init-from runs/lm

Beside it a translator starts from nothing. Multi30k English-German, 2,000 pairs, 40 epochs, one
seed, after only two passes of the language model over the 29,000 English sentences: validation BLEU
14.6 against 13.9 from nothing, loss 4.07 against 4.13. One seed does not tell whether such a
difference is more than chance; the source's vocabulary differs too.
"""

import argparse
import itertools
import json
from pathlib import Path

from tfformer.config import Config
from tfformer.data.sources import read_lines

STACK = {"num_layers": 2, "d_model": 128, "num_heads": 4, "d_ff": 256, "norm": "pre"}


def recipe(
    options: argparse.Namespace, model: dict, tokenizer: dict, data: dict, training: dict
) -> Config:
    """Join the settings of one run to those that all runs have in common."""
    schedule = {
        "schedule": "inverse_sqrt",
        "learning_rate": 0.003,
        "warmup_steps": 200,
        "ema_momentum": 0.99,
    }
    return Config.from_dict(
        {
            "model": STACK | model,
            "tokenizer": {"vocab_size": options.vocab_size} | tokenizer,
            "data": {"folder": str(options.data), "max_length": 100, "batch_tokens": 2048} | data,
            "training": schedule | training,
        }
    )


def language_model(options: argparse.Namespace) -> Config:
    """The recipe of the language model, which reads the whole source side."""
    return recipe(
        options,
        model={"architecture": "decoder", "dropout": 0.1},
        tokenizer={},
        data={"train": "train.en.gz", "valid": "val.en.gz"},
        training={"epochs": 1000, "max_minutes": options.minutes, "label_smoothing": 0},
    )


def translator(options: argparse.Namespace) -> Config:
    """The recipe of both translators, which read the first pairs."""
    return recipe(
        options,
        model={"tie_embeddings": "output", "dropout": 0.3},
        tokenizer={"shared": False},
        data={"train": first_lines(options), "valid": ["val.en.gz", "val.de.gz"]},
        training={"epochs": options.epochs, "validate_every": 10},
    )


def first_lines(options: argparse.Namespace) -> list[str]:
    """Write the first lines of both sides into files of their own; return their paths."""
    paths = [options.output / f"train.{language}" for language in ("en", "de")]
    for path in paths:
        lines = itertools.islice(read_lines(options.data / f"{path.name}.gz"), options.pairs)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return [str(path.resolve()) for path in paths]


def main() -> None:
    """Train the language model and both translators.

    Print their validation scores.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="with {train,val}.{en,de}.gz"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="the new folder of the runs"
    )
    parser.add_argument(
        "--pairs", type=int, default=2000, metavar="N", help="sentence pairs to translate from"
    )
    parser.add_argument("--epochs", type=int, default=40, metavar="N", help="of each translator")
    parser.add_argument(
        "--minutes", type=float, default=2.5, metavar="M", help="for the language model"
    )
    parser.add_argument(
        "--vocab-size", type=int, default=2000, metavar="N", help="of each language"
    )
    options = parser.parse_args()

    from tfformer.training.train import train

    options.output.mkdir(parents=True)
    train(language_model(options), options.output / "lm")
    results = {}
    origins = {"from nothing": None, "from the language model": options.output / "lm"}
    for name, origin in origins.items():
        run = options.output / name.replace(" ", "-")
        results[name] = train(translator(options), run, init_from=origin)
    for name, result in results.items():
        print(f"{name}: validation BLEU {result['val_bleu']:.2f}, loss {result['val_loss']:.3f}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
