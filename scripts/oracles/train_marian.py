"""Train a small model of one of six shapes in Marian, on two text files.

    oracle_venv/bin/python scripts/oracles/train_marian.py NAME FOLDER train.en train.de [UPDATES]

The model, its SentencePiece vocabularies and decoder.yml are written to FOLDER/NAME. 1,500 updates
take a few minutes on one thread.
"""

import sys
from pathlib import Path
from typing import Any

from fixture_texts import MARIAN_IDS, train_pieces
from pymarian import Trainer

PRE = {
    "transformer_preprocess": "n",
    "transformer_postprocess": "da",
    "transformer_postprocess_top": "n",
}
SSRU = {"transformer_decoder_autoreg": "rnn", "dec_cell": "ssru", "enc_depth": 6}
SHARED = {"tied_embeddings_all": True}
# Name -> options; without `tied_embeddings_all` there are two vocabularies
SHAPES: dict[str, dict[str, Any]] = {
    "post-swish-shared": {"transformer_ffn_activation": "swish"} | SHARED,
    "post-relu-shared": {"transformer_ffn_activation": "relu"} | SHARED,
    "post-relu-separate": {"transformer_ffn_activation": "relu"},
    "ssru-relu-shared": {"transformer_ffn_activation": "relu"} | SHARED | SSRU,
    "pre-relu-shared": {"transformer_ffn_activation": "relu"} | SHARED | PRE,
    "pre-swish-tied": {"transformer_ffn_activation": "swish", "tied_embeddings": True} | PRE,
}


def main(name: str, folder: Path, texts: list[str], updates: str) -> None:
    """Train the vocabularies and the model."""
    out = folder / name
    out.mkdir(parents=True, exist_ok=True)
    shape = SHAPES[name]
    names = ["joint", "joint"] if "tied_embeddings_all" in shape else ["source", "target"]
    lines = [Path(text).read_text(encoding="utf-8").splitlines() for text in texts]
    if names[0] == "joint":
        lines = [lines[0] + lines[1]] * 2
    for file, learned in zip(names, lines, strict=True):
        pieces = out / f"{file}.spm"
        train_pieces(pieces, learned, 4000, normalization_rule_name="nmt_nfkc", **MARIAN_IDS)
    Trainer(
        **{
            "model": f"{out}/model.npz",
            "type": "transformer",
            "train_sets": texts,
            "vocabs": [f"{out}/{file}.spm" for file in names],
            "dim_emb": 96,
            "enc_depth": 2,
            "dec_depth": 2,
            "transformer_heads": 4,
            "transformer_dim_ffn": 256,
            "transformer_dropout": 0.1,
            "label_smoothing": 0.1,
            "learn_rate": 0.003,
            "lr_warmup": "300",
            "lr_decay_inv_sqrt": ["300"],
            "optimizer_params": [0.9, 0.98, "1e-09"],
            "clip_norm": 0,
            "cost_type": "ce-mean-words",
            "max_length": 60,
            "mini_batch": 64,
            "maxi_batch": 100,
            "mini_batch_fit": False,
            "exponential_smoothing": "0.003",
            "disp_freq": 100,
            "save_freq": "100000u",
            "after": f"{updates}u",
            "overwrite": True,
            "beam_size": 4,
            "normalize": 1,
            "cpu_threads": 1,
            "seed": 1,
            "workspace": 512,
        }
        | shape
    ).train()


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in SHAPES:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:5], *(sys.argv[5:] or ["1500"]))
