"""Train a tiny student with simple recurrent units (SSRU) in Marian, and write Marian's answers.

PYTHONPATH is the root of the repository.

    oracle_venv/bin/python scripts/oracles/make_ssru_fixture.py tests/support/marian/SSRU

The text is the phrasebook in lower case. For each source, expected.json contains the translation of
a greedy search and all translations of a beam search, with the log-probability of each token.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from fixture_texts import MARIAN_IDS, short_pairs, train_pieces
from pymarian import Trainer, Translator

SENTENCES = 24
BEAM_SIZE = 4


def main(folder: Path) -> None:
    """Write model.npz, joint.spm, decoder.yml and expected.json."""
    pairs = short_pairs()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        train(folder, Path(name), pairs[:4000])
    sources = [source for source, _ in pairs[4000 : 4000 + SENTENCES]]
    answers = {
        "sources": sources,
        "greedy": translated(folder, sources, beam_size=1),
        "beams": translated(folder, sources, beam_size=BEAM_SIZE),
    }
    text = json.dumps(answers, ensure_ascii=False)
    (folder / "expected.json").write_text(text, encoding="utf-8")


def train(folder: Path, texts: Path, pairs: list[tuple[str, str]]) -> None:
    """Train the vocabulary, without normalisation, and the model."""
    files = [texts / "train.en", texts / "train.de"]
    for number, file in enumerate(files):
        file.write_text("".join(f"{pair[number]}\n" for pair in pairs), encoding="utf-8")
    text = [side for pair in pairs for side in pair]
    train_pieces(folder / "joint.spm", text, 96, **MARIAN_IDS)
    Trainer(
        model=f"{texts}/model.npz",
        type="transformer",
        train_sets=list(map(str, files)),
        vocabs=[str(folder / "joint.spm")] * 2,
        dim_emb=24,
        enc_depth=1,
        dec_depth=2,
        transformer_decoder_autoreg="rnn",
        dec_cell="ssru",
        transformer_heads=4,
        transformer_dim_ffn=32,
        transformer_ffn_activation="relu",
        tied_embeddings_all=True,
        learn_rate=0.01,
        lr_warmup="200",
        lr_decay_inv_sqrt=["200"],
        cost_type="ce-mean-words",
        mini_batch=64,
        mini_batch_fit=False,
        disp_freq=200,
        after="1500u",
        save_freq="100000u",
        overwrite=True,
        cpu_threads=1,
        seed=1,
        workspace=256,
    ).train()
    shutil.copy(texts / "model.npz", folder)
    lines = [
        "relative-paths: true",
        "models: [model.npz]",
        "vocabs: [joint.spm, joint.spm]",
        f"beam-size: {BEAM_SIZE}",
        "normalize: 1",
        "word-penalty: 0",
    ]
    (folder / "decoder.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def translated(folder: Path, sources: list[str], beam_size: int) -> list[list[object]]:
    """Return [text, log-probability of each token] of each translation, best first."""
    translator = Translator(
        models=[str(folder / "model.npz")],
        vocabs=[str(folder / "joint.spm")] * 2,
        beam_size=beam_size,
        normalize=1,
        n_best=True,
        word_scores=True,
        mini_batch=1,
        maxi_batch=1,
        cpu_threads=1,
        quiet=True,
    )
    answers: list[list[object]] = [[] for _ in sources]
    for line in translator.translate(sources):
        number, text, scores, *_ = line.split(" ||| ")
        answers[int(number)].append([text, list(map(float, scores.split()[1:]))])
    return answers


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
