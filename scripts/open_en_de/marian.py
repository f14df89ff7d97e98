"""Train Marian on half a million pairs, and translate with it. Needs pymarian.

    marian_venv/bin/python scripts/open_en_de/marian.py train TEXT MODELS
    marian_venv/bin/python scripts/open_en_de/marian.py translate TEXT MODEL BEAM < INPUT > OUTPUT

TEXT contains train.en, train.de and vocabulary.spm, tfformer's vocabulary. Training writes a model
to the folder MODELS every 400 updates, until it is stopped. The shape is that of recipe.yaml.
"""

import sys
from pathlib import Path

from pymarian import Trainer, Translator

LEARNING_RATE = 0.002  # the peak
BATCH_WORDS = 1024  # target tokens
WARMUP_UPDATES = 300  # 75 minutes allow about 3,000 updates


def train(text: Path, models: Path) -> None:
    """Train until the process is stopped."""
    Trainer(
        model=f"{models}/model.npz",
        type="transformer",
        train_sets=[f"{text}/train.en", f"{text}/train.de"],
        vocabs=[f"{text}/vocabulary.spm"] * 2,
        dim_emb=256,
        enc_depth=6,
        dec_depth=2,
        transformer_heads=4,
        transformer_dim_ffn=1024,
        transformer_ffn_activation="relu",
        transformer_preprocess="n",
        transformer_postprocess="da",
        transformer_postprocess_top="n",
        transformer_dropout=0.1,
        tied_embeddings_all=True,
        label_smoothing=0.1,
        learn_rate=LEARNING_RATE,
        lr_warmup=f"{WARMUP_UPDATES}",
        lr_decay_inv_sqrt=[f"{WARMUP_UPDATES}"],
        optimizer_params=[0.9, 0.98, "1e-09"],
        clip_norm=0,
        cost_type="ce-mean-words",
        exponential_smoothing="0.001",
        max_length=128,
        mini_batch=1000,
        mini_batch_words=BATCH_WORDS,
        mini_batch_fit=False,
        maxi_batch=100,
        disp_freq="50u",
        save_freq="400u",
        overwrite=False,
        after="0e",
        cpu_threads=1,
        workspace=1024,
        seed=1,
    ).train()


def translate(text: Path, model: Path, beam_size: int) -> None:
    """Translate standard input, a sentence per line, to standard output."""
    translator = Translator(
        models=[f"{model}"],
        vocabs=[f"{text}/vocabulary.spm"] * 2,
        beam_size=beam_size,
        normalize=1,
        mini_batch=64,
        maxi_batch=100,
        maxi_batch_sort="src",
        cpu_threads=1,
        quiet=True,
    )
    for translation in translator.translate(sys.stdin.read().rstrip("\n").split("\n")):
        print(translation)


if __name__ == "__main__":
    match sys.argv[1:]:
        case "train", text, models:
            train(Path(text), Path(models))
        case "translate", text, model, beam_size:
            translate(Path(text), Path(model), int(beam_size))
        case _:
            sys.exit(__doc__)
