"""Write small checkpoints of M2M100 and NLLB, with the answers of Transformers.

    PYTHONPATH=. oracle_venv/bin/python scripts/oracles/make_m2m100_fixtures.py tests/support/marian

All parameters of both models begin with random values. For a few seconds, the models learn to
translate short sentences of the phrasebook from English to German and back. The vocabulary is BPE.
M2M100 lists it in vocab.json; the ids of NLLB are SentencePiece's ids plus 1.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from fixture_texts import short_pairs, train_pieces
from make_marian_fixtures import Row, answer
from transformers import BatchEncoding, M2M100Config, M2M100ForConditionalGeneration

STEPS = 250
SIZE = 120  # pieces in the SentencePiece model
PAD, END, UNKNOWN = 1, 2, 3
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LANGUAGES = {  # family -> its language tokens; the model learns the first and the last language
    "M2M": ["__en__", "__fr__", "__de__"],
    "NLLB": ["eng_Latn", "fra_Latn", "deu_Latn"],
}
UNUSED = 3  # unused rows after the languages, as in M2M100


class Cutter:
    """A tokenizer that encodes and decodes with the given functions."""

    def __init__(self, encode: Callable[[str], list[int]], decode: Callable[..., Any]) -> None:
        self.encode = encode
        self._decode = decode

    def __call__(self, texts: str | list[str], **_: object) -> BatchEncoding:
        """Return the ids of a text, or the padded ids of several texts as tensors."""
        if isinstance(texts, str):
            return BatchEncoding({"input_ids": self.encode(texts)})
        ids = padded([self.encode(text) for text in texts])
        return BatchEncoding({"input_ids": ids, "attention_mask": (ids != PAD).long()})

    def decode(self, ids: list[int], **_: bool) -> str:
        """Return the text of ids, without special tokens."""
        return self._decode(ids)


def main(folder: Path) -> None:
    """Write both fixtures."""
    torch.set_num_threads(1)
    pairs = short_pairs()[:4000]
    for name in LANGUAGES:
        make(folder / name, name, pairs)


def make(out: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    """Write one fixture."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "sentencepiece.bpe.model"
    train_pieces(file, [text for pair in pairs for text in pair], SIZE, model_type="bpe")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    ordinary = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    if name == "M2M":
        ordinary.sort()
    pieces = [*SPECIAL, *ordinary]
    languages = LANGUAGES[name]
    write_names(out, name, pieces, languages)
    ids = {piece: number for number, piece in enumerate([*pieces, *languages])}

    def encode(language: str, text: str) -> list[int]:
        cut = processor.encode(text, out_type=str)
        return [ids[language], *(ids.get(piece, UNKNOWN) for piece in cut), END]

    def decode(row: list[int]) -> str:
        kept = [pieces[number] for number in row if UNKNOWN < number < len(pieces)]
        return processor.decode(kept)

    # Encoder and decoder differ in depth, width and heads.
    config = M2M100Config(
        vocab_size=len(ids) + UNUSED,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=32,
        activation_function="relu",
        max_position_embeddings=128,
        dropout=0.0,
        attention_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
    )
    model = M2M100ForConditionalGeneration(config)
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    randomise(model, generator)
    both = [(languages[0], languages[-1], *pair) for pair in pairs]
    both += [(languages[-1], languages[0], target, source) for source, target in pairs]
    train(model, encode, both, generator)
    model.generation_config.update(
        num_beams=4, max_length=200, early_stopping=True, forced_bos_token_id=ids[languages[-1]]
    )
    model.save_pretrained(out)
    cutter = Cutter(lambda text: encode(languages[0], text), decode)
    answer(out, model, cutter, pairs[1::5], Row({}, eos=END, unknown=UNKNOWN), {"<pad>": PAD})


def write_names(out: Path, name: str, pieces: list[str], languages: list[str]) -> None:
    """Write the files that list the tokens, in the format of the family."""
    if name == "M2M":
        ids = {piece: number for number, piece in enumerate(pieces)}
        (out / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False, indent=0))
        special = {"additional_special_tokens": languages}
        (out / "special_tokens_map.json").write_text(json.dumps(special))
        return
    listed = [*SPECIAL, *languages, "<mask>"]
    numbers = [*range(len(SPECIAL)), *range(len(pieces), len(pieces) + len(languages) + 1)]
    added = [
        {"id": number, "content": token, "special": True}
        for number, token in zip(numbers, listed, strict=True)
    ]
    (out / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))


def randomise(model: M2M100ForConditionalGeneration, generator: torch.Generator) -> None:
    """Set every parameter to random values, including biases and norms."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "layer_norm.weight" in name:
                weights.uniform_(0.5, 1.5, generator=generator)
            elif name.endswith("bias"):
                weights.normal_(0, 0.2, generator=generator)
            else:
                weights.normal_(0, weights.shape[1] ** -0.5, generator=generator)


def train(
    model: M2M100ForConditionalGeneration,
    encode: Callable[[str, str], list[int]],
    both: list[tuple[str, str, str, str]],
    generator: torch.Generator,
) -> None:
    """Train for `STEPS` steps of Adam."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    for _ in range(STEPS):
        chosen = [both[n] for n in torch.randint(len(both), (32,), generator=generator).tolist()]
        sources = [encode(source_language, text) for source_language, _, text, _ in chosen]
        targets = [encode(target_language, text) for _, target_language, _, text in chosen]
        inputs, labels = padded(sources), padded(targets)
        starts = torch.full((len(chosen), 1), END)
        logits = model(
            input_ids=inputs,
            attention_mask=(inputs != PAD).long(),
            decoder_input_ids=torch.cat([starts, labels[:, :-1]], 1),
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.masked_fill(labels == PAD, -100).flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    print(f"loss {loss.item():.3f}", flush=True)


def padded(rows: list[list[int]]) -> torch.Tensor:
    """Return rows of ids as one padded tensor."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
