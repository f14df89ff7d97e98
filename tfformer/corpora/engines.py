"""Engines that translate: a run by Keras, an export by its own runtime.

Shape letters: B sentences, S source tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfformer.config import RUN_CONFIG
from tfformer.data.piece_tokenizer import AnyTokenizer, load_tokenizer
from tfformer.export.manifest import MANIFEST, check_files, read_manifest
from tfformer.files import file_digest
from tfformer.special_ids import END_ID

Translate = Callable[[list[str]], list[str]]


class CountsTokens(Protocol):
    """A tokenizer, of which only the numbers of tokens count."""

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence."""


class Engine(NamedTuple):
    """A loaded model.

    Attributes:
        translate: Translates up to some dozens of sentences together, none of them blank.
        tokenizer: The tokenizer of the source.
        max_tokens: Tokens of the longest sentence that the model takes whole.
    """

    translate: Translate
    tokenizer: CountsTokens
    max_tokens: int


class Tokenizers(NamedTuple):
    """The tokenizers of an export."""

    source: AnyTokenizer
    target: AnyTokenizer


def find_model(path: str | Path) -> tuple[str, Path]:
    """Return the name of the engine for a run or an export, and its folder.

    Args:
        path: A run directory, the folder of an exported version, or one of several versions, of
            which the newest counts.

    Raises:
        ValueError: It is neither, or an export that translates nothing.
    """
    folder = Path(path)
    if (folder / RUN_CONFIG).is_file() and not (folder / MANIFEST).is_file():
        return "keras", folder
    if not (folder / MANIFEST).is_file():
        versions = [file.parent for file in folder.glob(f"*/{MANIFEST}")]
        numbered = [version for version in versions if version.name.isdecimal()]
        if not numbered:
            raise ValueError(f"{folder} is neither a run directory nor an export; give one of them")
        folder = max(numbered, key=lambda version: int(version.name))
    name = str(read_manifest(folder).get("format"))
    if name not in ENGINES:
        known = "saved_model, litert and ctranslate2"
        raise ValueError(f"{folder} is an export of format {name}; corpora need {known}")
    return name, folder


def model_digest(path: str | Path) -> str:
    """Return the SHA-256 of the files that decide a model's translations."""
    _, folder = find_model(path)
    names = [MANIFEST] if (folder / MANIFEST).is_file() else [RUN_CONFIG, "best.weights.h5"]
    digest = hashlib.sha256()
    for name in names:
        digest.update(file_digest(folder / name).encode())
    return digest.hexdigest()


def load_engine(path: str | Path, beam_size: int | None = None) -> Engine:
    """Load a run or an export.

    Args:
        path: As in `find_model`.
        beam_size: Number of beams; 1 is greedy search. By default the model's own.

    Returns:
        The engine, which uses one processor.

    Raises:
        ValueError: A file is damaged, or the export has no search with so many beams.
    """
    name, folder = find_model(path)
    return ENGINES[name](folder, beam_size)


def _keras(folder: Path, beam_size: int | None) -> Engine:
    from tfformer.inference.translator import Translator

    translator = Translator.load(folder)

    def translate(sentences: list[str]) -> list[str]:
        return translator.translate(translator.encode(sentences), beam_size)

    return Engine(translate, translator.tokenizers.source, translator.max_length - 1)


def _saved_model(folder: Path, beam_size: int | None) -> Engine:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the signatures over text

    manifest, tokenizers = _checked(folder)
    signature, output = "serving_default", "translation"
    if _beams(manifest, beam_size) > 1:
        signature, output = "translate_beam", "translations"
    model = tf.saved_model.load(str(folder))

    def translate(sentences: list[str]) -> list[str]:
        run = model.signatures[signature]  # which does not keep the model itself alive
        found = run(text=tf.constant(sentences))[output].numpy()
        best = found.reshape(len(sentences), -1)[:, 0]
        return [text.decode("utf-8") for text in best]

    return Engine(translate, tokenizers.source, _max_tokens(manifest))


def _litert(folder: Path, beam_size: int | None) -> Engine:
    from ai_edge_litert.interpreter import Interpreter

    manifest, tokenizers = _checked(folder)
    name = "translate_beam" if _beams(manifest, beam_size) > 1 else "translate"
    interpreter = Interpreter(model_path=str(folder / "model.tflite"), num_threads=1)
    widths = _widths(manifest, name) if manifest.get("static") else {}
    longest = _max_tokens(manifest)

    def translate(sentences: list[str]) -> list[str]:
        rows = [ids[:longest] for ids in tokenizers.source.encode(sentences)]
        batches = [[row] for row in rows] if widths else [rows]
        found = [ids for batch in batches for ids in best(batch)]
        return tokenizers.target.decode(found)

    def best(rows: list[list[int]]) -> list[list[int]]:
        """Return the ids of the best translations, without their end tokens."""
        most = max(map(len, rows))
        width = min((width for width in widths if width > most), default=max(widths, default=most))
        ids = np.full((len(rows), width), END_ID, np.int32)  # (B, S)
        for row, values in zip(ids, rows, strict=True):
            row[: len(values)] = values[:width]
        lengths = np.array(list(map(len, rows)), np.int32)
        runner = interpreter.get_signature_runner(widths.get(width, name))
        found = runner(ids=ids, lengths=lengths)["ids"]
        first = found.reshape(len(rows), -1, found.shape[-1])[:, 0].tolist()
        return [row[: row.index(END_ID)] if END_ID in row else row for row in first]

    return Engine(translate, tokenizers.source, longest)


def _ctranslate2(folder: Path, beam_size: int | None) -> Engine:
    import ctranslate2

    manifest, tokenizers = _checked(folder)
    source, target = tokenizers
    decoding = manifest["decoding"]
    translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    number_of = {piece: n for n, piece in enumerate(target.pieces(range(target.vocab_size)))}
    longest = _max_tokens(manifest)

    def translate(sentences: list[str]) -> list[str]:
        rows = [ids[:longest] for ids in source.encode(sentences)]
        results = translator.translate_batch(
            [source.pieces(ids) for ids in rows],
            beam_size=decoding["beam_size"] if beam_size is None else beam_size,
            length_penalty=decoding["length_penalty"],
            min_decoding_length=0,
            max_decoding_length=decoding["max_length"],
        )
        best = [result.hypotheses[0] for result in results]
        return target.decode([[number_of[piece] for piece in pieces] for pieces in best])

    return Engine(translate, source, longest)


ENGINES: dict[str, Callable[[Path, int | None], Engine]] = {  # by the format of a manifest
    "keras": _keras,
    "saved_model": _saved_model,
    "tflite": _litert,
    "ctranslate2": _ctranslate2,
}


def _checked(folder: Path) -> tuple[dict[str, Any], Tokenizers]:
    """Return the manifest and the tokenizers, once each file has its digest."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    names = sorted(manifest.get("tokenizers") or ())  # source before target, or one for both
    if not names:
        raise ValueError(f"{folder} has no tokenizer beside the model; export the run again")
    loaded = [load_tokenizer(folder / name) for name in names]
    return manifest, Tokenizers(loaded[0], loaded[-1])


def _beams(manifest: dict[str, Any], wanted: int | None) -> int:
    """Return the number of beams to use; ValueError if the export has not so many."""
    exported = manifest["decoding"]["beam_size"]
    if wanted not in (None, 1, exported):
        raise ValueError(
            f"the export has a search with --beam-size {exported}, and with 1; choose one of the "
            f"two, or export the run again with --beam-size {wanted}"
        )
    return exported if wanted is None else wanted


def _max_tokens(manifest: dict[str, Any]) -> int:
    """Return the tokens of the longest sentence; the end token needs one place."""
    return manifest["decoding"]["max_length"] - 1


def _widths(manifest: dict[str, Any], name: str) -> dict[int, str]:
    """Return the places of ids of each signature of a static file, and its name."""
    return {
        signature["inputs"]["ids"]["shape"][1]: each
        for each, signature in manifest["signatures"].items()
        if each == name or each.removeprefix(f"{name}_").isdecimal()
    }
