"""Train Marian on half a million pairs until it is stopped. Needs pymarian.

    marian_venv/bin/python scripts/open_en_de/marian.py TEXT MODELS

TEXT contains train.en, train.de and vocab.spm, tfformer's vocabulary. A model is written to the
folder MODELS every 400 updates, and at the end. The shape is that of recipe.yaml.
"""

import sys

from pymarian import Trainer

LEARNING_RATE = 0.002  # the peak
BATCH_WORDS = 1024  # target tokens
WARMUP_UPDATES = 300  # 75 minutes allow about 3,000 updates


def main(text: str, models: str) -> None:
    """Train until the process is stopped."""
    Trainer(
        model=f"{models}/model.npz",
        type="transformer",
        train_sets=[f"{text}/train.en", f"{text}/train.de"],
        vocabs=[f"{text}/vocab.spm"] * 2,
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


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
