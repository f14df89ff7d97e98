"""Translate a file with Marian, and with CTranslate2 if it can convert the model.

    oracle_venv/bin/python scripts/oracles/translate_marian.py FOLDER SENTENCES BEAM OUTPUT

FOLDER contains a model of train_marian.py. OUTPUT.pymarian.txt and OUTPUT.ctranslate2.txt have a
translation per line, which `diff` compares. As in Marian's default, the unknown token is never
generated. Marian translates one sentence at a time: its limit, three times the tokens of the
longest source, applies to the whole batch, so overlong translations would depend on the batch.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import sentencepiece
from pymarian import Translator


def main(folder: Path, sentences: Path, beam_size: int, output: Path) -> None:
    """Translate the sentences with both toolkits, and write the translations."""
    lines = sentences.read_text(encoding="utf-8").splitlines()
    separate = [folder / "source.spm", folder / "target.spm"]
    vocabularies = separate if separate[0].exists() else [folder / "joint.spm"] * 2
    for toolkit, translate in (("pymarian", by_marian), ("ctranslate2", by_ctranslate2)):
        translations = translate(folder, vocabularies, lines, beam_size)
        text = "".join(f"{translation}\n" for translation in translations)
        Path(f"{output}.{toolkit}.txt").write_text(text, encoding="utf-8")


def by_marian(
    folder: Path, vocabularies: list[Path], lines: list[str], beam_size: int
) -> list[str]:
    """Return pymarian's best translation of each line."""
    translator = Translator(
        models=[str(folder / "model.npz")],
        vocabs=list(map(str, vocabularies)),
        beam_size=beam_size,
        normalize=1,
        mini_batch=1,
        maxi_batch=1,
        cpu_threads=1,
        quiet=True,
    )
    return translator.translate(lines)


def by_ctranslate2(
    folder: Path, vocabularies: list[Path], lines: list[str], beam_size: int
) -> list[str]:
    """Return CTranslate2's translations; its converter reads only vocabularies in YAML."""
    import ctranslate2
    from ctranslate2.converters import MarianConverter

    processors = [sentencepiece.SentencePieceProcessor(model_file=str(f)) for f in vocabularies]
    with tempfile.TemporaryDirectory() as name:
        files = []
        for side, processor in zip(("source", "target"), processors, strict=True):
            pieces = [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
            files.append(Path(name) / f"{side}.yml")
            written = [
                f"{json.dumps(piece, ensure_ascii=False)}: {number}\n"
                for number, piece in enumerate(pieces)
            ]
            files[-1].write_text("".join(written), encoding="utf-8")
        readable = Path(name) / "model.npz"
        rewrite_options(folder / "model.npz", readable)
        MarianConverter(str(readable), list(map(str, files))).convert(f"{name}/converted")
        translator = ctranslate2.Translator(f"{name}/converted", intra_threads=1)
        rows = translator.translate_batch(
            processors[0].encode(lines, out_type=str),
            beam_size=beam_size,
            length_penalty=1,
            disable_unk=True,
        )
    return [processors[1].decode(row.hypotheses[0]) for row in rows]


def rewrite_options(model: Path, readable: Path) -> None:
    """Copy the model, with one NUL after its options and a key that the converter needs."""
    with np.load(model) as archive:
        tensors = dict(archive)
    options = tensors["special:model.yml"].tobytes().rstrip(b"\0")
    options += b"\ntransformer-guided-alignment-layer: last\n\0"
    tensors["special:model.yml"] = np.frombuffer(options, np.int8)
    np.savez(readable, **tensors)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
