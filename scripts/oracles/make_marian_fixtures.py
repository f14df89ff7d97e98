"""Write small Marian checkpoints of many shapes, with the answers of Transformers.

PYTHONPATH is the root of the repository.

    oracle_venv/bin/python scripts/oracles/make_marian_fixtures.py tests/support/marian [IDS]

All parameters begin with random values, because Hugging Face's zeros (biases, logits bias) and ones
(norms) would hide an importer's errors. Each model is then trained for a few seconds, because a
random model repeats one token forever. The text is the phrasebook in lower case.
"""

import dataclasses
import json
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from fixture_texts import MARIAN_IDS, short_pairs, train_pieces
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

STEPS = 150
SENTENCES = 24  # sentences with greedy and beam answers
STATES = 2  # sentences with the states of every layer
MAX_LENGTH = 60
MARGIN = 1e-3  # minimum difference of the two highest logits; rounding cannot reverse them


@dataclasses.dataclass(frozen=True)
class Row:
    """One fixture: arguments of MarianConfig, and properties of the vocabulary."""

    config: dict[str, Any]
    separate: bool = False  # whether source and target have separate vocabularies
    pad: int | None = None  # the id of padding; None for the last id
    eos: int = 0
    unknown: int = 1
    # whether it has >>fra<<, >>deu<<, `<s>` and a character of the target, and lacks some pieces
    codes: bool = False
    random_pad: bool = False  # whether the row of padding is random, not zero


BASE = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "activation_function": "swish",
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
}
UNEQUAL = {
    "encoder_layers": 3,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 40,
}
ROWS = {
    "A": Row({}),
    "B": Row(UNEQUAL),
    "C": Row({"share_encoder_decoder_embeddings": False}, separate=True),
    "D": Row({"tie_word_embeddings": False}),
    "E": Row(
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, separate=True
    ),
    "F": Row({"activation_function": "relu", "scale_embedding": False}),
    "G": Row({"activation_function": "gelu"}),
    "H": Row({}, pad=5, random_pad=True),
    "I": Row({}, eos=17, unknown=40, codes=True),
}


def main(folder: Path, chosen: list[str]) -> None:
    """Write the chosen fixtures; all if `chosen` is empty."""
    torch.set_num_threads(1)
    sentences = short_pairs()[:4000]
    folder.mkdir(parents=True, exist_ok=True)
    for side, number in (("source", 0), ("target", 1)):
        file = folder / f"{side}.spm"
        if not file.exists():
            train_pieces(file, [pair[number] for pair in sentences], 72, **MARIAN_IDS)
    for name in chosen or [*ROWS, "K"]:
        if name == "K":
            torch_files(folder)
        else:
            make(folder, name, ROWS[name], sentences)


def torch_files(folder: Path) -> None:
    """Write some tensors of A in both layouts of `torch.save`, one as a view of another."""
    out = folder / "K"
    out.mkdir(exist_ok=True)
    state = load_file(folder / "A" / "model.safetensors")
    kept = {name: state[name] for name in sorted(state) if ".0." in name and "self_attn" in name}
    save_file(kept, out / "model.safetensors", metadata={"format": "pt"})
    matrix = next(tensor for tensor in kept.values() if tensor.ndim == 2)
    views = OrderedDict(kept) | {"view": matrix.T}
    torch.save(views, out / "zip.bin")
    torch.save(views, out / "legacy.bin", _use_new_zipfile_serialization=False)


def pieces_of(path: Path) -> list[str]:
    """Return the ordinary pieces of a SentencePiece model."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(number) for number in range(2, model.get_piece_size())]


def vocabulary(row: Row, pieces: set[str]) -> dict[str, int]:
    """Return piece -> id, with the special tokens at the ids that the row states."""
    ordered = sorted(pieces)
    if row.codes:
        ordered = [piece for piece in ordered if piece not in ("z", "q", "▁w")]
        ordered = sorted([*ordered, "<s>", ">>fra<<", ">>deu<<", "猫"])
    special = {row.eos: "</s>", row.unknown: "<unk>"}
    if row.pad is not None:
        special[row.pad] = "<pad>"
    for number, piece in sorted(special.items()):
        ordered.insert(number, piece)
    if row.pad is None:
        ordered.append("<pad>")
    return {piece: number for number, piece in enumerate(ordered)}


def make(folder: Path, name: str, row: Row, sentences: list[tuple[str, str]]) -> None:
    """Write one fixture."""
    out = folder / name
    out.mkdir(exist_ok=True)
    source_pieces = set(pieces_of(folder / "source.spm"))
    target_pieces = set(pieces_of(folder / "target.spm"))
    union = source_pieces | target_pieces
    source = vocabulary(row, source_pieces if row.separate else union)
    target = vocabulary(row, target_pieces if row.separate else union)
    files = ["vocab.json", "target_vocab.json"] if row.separate else ["vocab.json"]
    for file, values in zip(files, (source, target), strict=False):
        (out / file).write_text(json.dumps(values, ensure_ascii=False, indent=0))
    pad = source["<pad>"]
    config = MarianConfig(
        **(BASE | row.config),
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        max_position_embeddings=128,
        dropout=0.0,
        pad_token_id=target["<pad>"],
        decoder_start_token_id=target["<pad>"],
        eos_token_id=row.eos,
        bos_token_id=0,
        forced_eos_token_id=row.eos,
    )
    tokenizer = MarianTokenizer(
        source_spm=str(folder / "source.spm"),
        target_spm=str(folder / "target.spm"),
        vocab=str(out / "vocab.json"),
        target_vocab_file=str(out / "target_vocab.json") if row.separate else None,
        separate_vocabs=row.separate,
        source_lang="en",
        target_lang="de",
    )
    texts = sentences
    if row.codes:
        codes = (">>deu<< ", ">>fra<< ")
        texts = [(codes[n % 2] + source, target) for n, (source, target) in enumerate(sentences)]
    model = MarianMTModel(config)
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    randomise(model, row, pad, generator)
    train(model, tokenizer, texts, row, generator)
    model.save_pretrained(out)
    search = GenerationConfig(
        num_beams=4,
        max_length=512,
        bad_words_ids=[[target["<pad>"]]],
        forced_eos_token_id=row.eos,
        eos_token_id=row.eos,
        pad_token_id=target["<pad>"],
        decoder_start_token_id=target["<pad>"],
        renormalize_logits=True,
    )
    search.save_pretrained(out)
    settings = {
        "separate_vocabs": row.separate,
        "source_lang": "en",
        "target_lang": "de",
        "model_max_length": 512,
        "tokenizer_class": "MarianTokenizer",
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    reloaded = MarianMTModel.from_pretrained(out).eval()
    for tensor, saved in zip(
        model.state_dict().values(), reloaded.state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, saved)
    answer(out, reloaded, tokenizer, texts[1::5], row, target)


def randomise(model: MarianMTModel, row: Row, pad: int, generator: torch.Generator) -> None:
    """Set every parameter to random values, including biases and norms."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "embed_positions" in name:
                continue
            if "layer_norm.weight" in name:
                weights.uniform_(0.5, 1.5, generator=generator)
            elif "layer_norm.bias" in name:
                weights.normal_(0, 0.2, generator=generator)
            elif name.endswith("bias"):
                weights.normal_(0, 0.3, generator=generator)
            elif "shared" in name or "embed_tokens" in name or "lm_head" in name:
                weights.normal_(0, weights.shape[1] ** -0.5, generator=generator)
                if not row.random_pad:
                    weights[-1 if pad == weights.shape[0] - 1 else pad].zero_()
            else:
                weights.normal_(0, weights.shape[1] ** -0.5, generator=generator)
        model.final_logits_bias.normal_(0, 0.7, generator=generator)
        model.final_logits_bias[0, row.eos] += 1.0


def train(
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    texts: list[tuple[str, str]],
    row: Row,
    generator: torch.Generator,
) -> None:
    """Train for `STEPS` steps of Adam without changing the row of padding."""
    pad = model.config.pad_token_id
    tables = {id(w): w for w in (model.get_input_embeddings().weight, model.lm_head.weight)}
    tables |= {id(w): w for w in (model.model.decoder.embed_tokens.weight,)}
    before = {key: weights[pad].detach().clone() for key, weights in tables.items()}
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    for _ in range(STEPS):
        rows = torch.randint(len(texts), (32,), generator=generator).tolist()
        inputs = tokenizer([texts[n][0] for n in rows], return_tensors="pt", padding=True)
        labels = tokenizer(
            text_target=[texts[n][1] for n in rows], return_tensors="pt", padding=True
        ).input_ids
        starts = torch.full((len(rows), 1), pad)
        logits = model(**inputs, decoder_input_ids=torch.cat([starts, labels[:, :-1]], 1)).logits
        logits[..., pad] = -1e9
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.masked_fill(labels == pad, -100).flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for key, weights in tables.items():
                weights[pad] = before[key]
    model.eval()
    print(f"loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def answer(
    out: Path,
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    texts: list[tuple[str, str]],
    row: Row,
    target: dict[str, int],
) -> None:
    """Write the answers for sentences in which no greedy choice is close; skip others."""
    pad = target["<pad>"]
    kept: list[str] = []
    greedy: list[list[int]] = []
    for source, _ in texts:
        ids = tokenizer([source], return_tensors="pt")
        output = model.generate(
            **ids,
            num_beams=1,
            max_length=MAX_LENGTH,
            return_dict_in_generate=True,
            output_scores=True,
        )
        row_ids = output.sequences[0].tolist()[1:]
        best = torch.stack([scores[0].topk(2).values for scores in output.scores])
        if row_ids[-1] != row.eos or len(row_ids) > MAX_LENGTH - 5:
            continue
        if (best[:, 0] - best[:, 1]).min() > MARGIN and source not in kept:
            kept.append(source)
            greedy.append(row_ids)
        if len(kept) == SENTENCES:
            break
    encoded = [tokenizer(source).input_ids for source in kept]
    beams = {}
    for size, alpha, stops in ((2, 0.0, True), (4, 1.0, True), (8, 0.6, True), (4, 2.0, False)):
        rows = [beam(model, tokenizer, source, size, alpha, stops) for source in kept]
        beams[f"{size} {alpha}"] = rows
    special = {row.eos, row.unknown, pad}
    expected = {
        "sentences": kept,
        "source_ids": encoded,
        "greedy": greedy,
        "texts": [tokenizer.decode(ids, skip_special_tokens=True) for ids in greedy],
        "target_texts": [
            tokenizer.decode(without(special, ids), use_source_tokenizer=False) for ids in greedy
        ],
        "beams": beams,
    }
    (out / "expected.json").write_text(json.dumps(expected, ensure_ascii=False))
    states(out, model, tokenizer, kept[:STATES], greedy[:STATES])
    print(out.name, len(kept), "sentences,", sum(map(len, greedy)) / len(greedy), "tokens each")


def beam(
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    source: str,
    size: int,
    alpha: float,
    stops: bool,
) -> list[list[Any]]:
    """Return all hypotheses of one sentence as [ids, score]; [] if one of them did not end."""
    output = model.generate(
        **tokenizer([source], return_tensors="pt"),
        num_beams=size,
        num_return_sequences=size,
        length_penalty=alpha,
        early_stopping=stops,
        max_length=MAX_LENGTH,
        return_dict_in_generate=True,
        output_scores=True,
    )
    padding = {model.config.pad_token_id}
    rows = [without(padding, ids[1:]) for ids in output.sequences.tolist()]
    if max(map(len, rows)) >= MAX_LENGTH - 2:
        return []
    scores = [round(score, 6) for score in output.sequences_scores.tolist()]
    return [list(pair) for pair in zip(rows, scores, strict=True)]


def without(left_out: set[int], ids: list[int]) -> list[int]:
    """Return the ids that are not left out, in order."""
    return [number for number in ids if number not in left_out]


def states(
    out: Path,
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    sources: list[str],
    greedy: list[list[int]],
) -> None:
    """Write the states of every layer and the logits of a padded batch."""
    start = model.config.decoder_start_token_id
    inputs = tokenizer(sources, return_tensors="pt", padding=True)
    longest = max(map(len, greedy))
    target = [[start, *ids[:-1]] + [start] * (longest - len(ids)) for ids in greedy]
    output = model(
        **inputs,
        decoder_input_ids=torch.tensor(target),
        output_hidden_states=True,
    )
    np.savez_compressed(
        out / "expected.npz",
        source=inputs.input_ids.numpy(),
        mask=inputs.attention_mask.numpy(),
        target=np.array(target),
        lengths=np.array([len(ids) for ids in greedy]),
        encoder=torch.stack(output.encoder_hidden_states).numpy(),
        decoder=torch.stack(output.decoder_hidden_states).numpy(),
        logits=output.logits.numpy(),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
