"""Translates 1,000 sentences with each small checkpoint, by Transformers.

PYTHONPATH is the root of the repository.

    oracle_venv/bin/python scripts/oracles/answer_transformers.py tests/support/marian FOLDER [IDS]

Writes FOLDER/ID.json and FOLDER/ID.npz, which compare_transformers.py reads: the ids of the
sentences, of the greedy and of four beams' translations with their scores, and the logits of the
greedy ones. The sentences are the phrasebook's, the shortest first; one of which a translation does
not end within 50 tokens is passed over, as the small models repeat themselves on some.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from make_m2m100_fixtures import END, SPECIAL, UNKNOWN
from transformers import AutoModelForSeq2SeqLM, MarianTokenizer, PreTrainedModel

from tfformer.data import phrasebook

SENTENCES = 1_000
BATCH = 50
MAX_LENGTH = 60  # with the start; a longer translation is passed over from 50 on
LONGEST = 50
BEAMS, ALPHA = 4, 1.0
SIDES = ("source.spm", "target.spm")

Encode = Callable[[str], list[int]]


def main(fixtures: Path, out: Path, chosen: list[str]) -> None:
    """Answer for the chosen checkpoints, or all."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    texts = sorted({pair.source.lower() for pair in phrasebook.pairs("train")}, key=by_length)
    names = sorted(path.parent.name for path in fixtures.glob("*/config.json"))
    for name in chosen or names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            shutil.copytree(fixtures / name, folder)
            for side in SIDES:
                shutil.copy(fixtures / side, folder)
            answer(folder, texts, out / name)


def by_length(text: str) -> tuple[int, str]:
    """Order texts by their length."""
    return len(text), text


@torch.no_grad()
def answer(folder: Path, texts: list[str], out: Path) -> None:
    """Write one checkpoint's answers."""
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    encode = encoder(folder)
    kept: list[tuple[dict, np.ndarray]] = []
    tried = 0
    while len(kept) < SENTENCES:
        rows = [encode(text) for text in texts[tried : tried + BATCH]]
        tried += len(rows)
        for found in translated(model, rows):
            hypotheses = [found[0]["greedy"], *(ids for ids, _ in found[0]["beams"])]
            if max(map(len, hypotheses)) < LONGEST:
                kept.append(found)
    kept = kept[:SENTENCES]
    out.with_suffix(".json").write_text(json.dumps([answers for answers, _ in kept]))
    np.savez(out.with_suffix(".npz"), logits=np.concatenate([logits for _, logits in kept]))
    print(out.name, f"{SENTENCES} sentences of the first {tried}", flush=True)


def encoder(folder: Path) -> Encode:
    """The cutting of a text into ids, as Transformers cuts it for this family."""
    if (folder / "sentencepiece.bpe.model").exists():
        return multilingual_encoder(folder)
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    begin = ">>deu<< " if ">>deu<<" in vocabulary else ""
    tokenizer = MarianTokenizer.from_pretrained(folder)
    return lambda text: tokenizer(begin + text).input_ids


def multilingual_encoder(folder: Path) -> Encode:
    """M2M100's and NLLB's: a language, SentencePiece's pieces, the end."""
    file = folder / "sentencepiece.bpe.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    own = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    pieces = [*SPECIAL, *own]
    if (folder / "vocab.json").exists():
        pieces = list(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    ids = {piece: number for number, piece in enumerate(pieces)}
    language = len(pieces)  # the first one's token, which is the source's here

    def encode(text: str) -> list[int]:
        cut = processor.encode(text, out_type=str)
        return [language, *(ids.get(piece, UNKNOWN) for piece in cut), END]

    return encode


def translated(model: PreTrainedModel, rows: list[list[int]]) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield each sentence's answers, and its logits (tokens, V)."""
    pad = model.config.pad_token_id
    longest = max(map(len, rows))
    source = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    inputs = {"input_ids": source, "attention_mask": (source != pad).long()}
    settings = {"max_length": MAX_LENGTH, "return_dict_in_generate": True, "output_scores": True}
    greedy = model.generate(**inputs, num_beams=1, **settings)
    beams = model.generate(
        **inputs,
        num_beams=BEAMS,
        num_return_sequences=BEAMS,
        length_penalty=ALPHA,
        early_stopping=True,
        **settings,
    )
    best = torch.stack([scores.topk(2).values for scores in greedy.scores], 1)  # (B, L, 2)
    margins = (best[..., 0] - best[..., 1]).tolist()
    logits = model(**inputs, decoder_input_ids=greedy.sequences[:, :-1]).logits.numpy()
    scores = beams.sequences_scores.tolist()
    for number, row in enumerate(rows):
        ids = without_padding(greedy.sequences[number], pad)
        places = range(number * BEAMS, (number + 1) * BEAMS)
        answers = {
            "source": row,
            "greedy": ids,
            "margin": min(margins[number][: len(ids)]),
            "beams": [[without_padding(beams.sequences[n], pad), scores[n]] for n in places],
        }
        yield answers, logits[number, : len(ids)]


def without_padding(ids: torch.Tensor, pad: int) -> list[int]:
    """A translation's ids behind the start."""
    return [number for number in ids.tolist()[1:] if number != pad]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
