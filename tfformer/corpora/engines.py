"""Engines that translate: a run by Keras, an export by its own runtime."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tfformer.engines.artifact import open_export, read_manifest
from tfformer.export.litert.search import BEAM, GREEDY, LitertSearch
from tfformer.runtime.tensorflow import import_tensorflow
from tfformer.storage.folders import folder_at
from tfformer.storage.run_folders import MANIFEST, exported_version, is_run
from tfformer.storage.whole_files import file_digest

SIGNATURE = "serving_default"  # of a SavedModel over text, by greedy search

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


class ModelError(ValueError):
    """A model that cannot be loaded, or is another one than when the job was begun."""


class Model(NamedTuple):
    """A run or an export, and all that decides its translations.

    Attributes:
        engine: Its name among `ENGINES`.
        place: A run directory, which may be an address, or one exported version.
        beam_size: Number of beams; 1 is greedy search.
        digest: SHA-256 of its settings, vocabularies and weights.
    """

    engine: str
    place: str
    beam_size: int
    digest: str


def find_model(path: str | Path, beam_size: int | None = None) -> Model:
    """Return the model at a path, without loading it.

    Args:
        path: A run directory, the folder of an exported version, or one of several versions, of
            which the newest counts.
        beam_size: Number of beams; by default the model's own.

    Returns:
        The model; see `load_engine`.

    Raises:
        FileNotFoundError: The run has no weights yet.
        ValueError: It is neither a run nor an export, translates no text, or has no search with so
            many beams.
    """
    place = folder_at(path)
    if is_run(path):
        return _model_of_run(place.absolute(), beam_size)
    version = exported_version(place.path)
    if version is None:
        raise ValueError(f"{place} is neither a run directory nor an export; give one of them")
    return _model_of_export(version, beam_size)


def _model_of_run(place: str, beam_size: int | None) -> Model:
    from tfformer.run_directory import Run

    run = Run.open(place)
    run.check_architecture("encoder-decoder")
    run.check_weights()
    decoding, data = run.config.decoding, run.config.data
    settings = {
        "model": run.model_digest,
        "decoding": dataclasses.asdict(decoding),
        "max_length": data.max_length,
        "languages": data.languages,
        "weights": file_digest(run.weights),
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return Model("keras", place, beam_size or decoding.beam_size, digest)


def _model_of_export(folder: Path, beam_size: int | None) -> Model:
    manifest = read_manifest(folder)
    name = str(manifest.get("format"))
    if name not in ENGINES:
        known = "saved_model, litert and ctranslate2"
        raise ValueError(f"{folder} is an export of format {name}; corpora need {known}")
    exported = manifest["decoding"].get("beam_size")
    if exported is None:
        raise ValueError(f"{folder} is of a language model, which translates nothing")
    if name == "saved_model" and SIGNATURE not in manifest["signatures"]:
        raise ValueError(f"{folder} takes no text; export the run again without --no-text")
    if name != "ctranslate2" and beam_size not in (None, 1, exported):
        raise ValueError(
            f"{folder} has {_searches(exported)}; leave out --beam-size {beam_size}, or export the "
            "run again with it"
        )
    return Model(
        name, str(folder.absolute()), beam_size or exported, file_digest(folder / MANIFEST)
    )


def _searches(beam_size: int) -> str:
    return (
        f"searches with --beam-size 1 and {beam_size}" if beam_size > 1 else "greedy search alone"
    )


def load_engine(model: Model) -> Engine:
    """Load a run or an export.

    Args:
        model: As `find_model` has returned it, maybe in another process.

    Returns:
        The engine, which uses one processor.

    Raises:
        ModelError: The model cannot be loaded, or is not the one that was found.
    """
    try:
        engine = ENGINES[model.engine](model.place, model.beam_size)
        now = find_model(model.place, model.beam_size)
    except (ValueError, OSError) as error:
        raise ModelError(str(error)) from error
    except Exception as error:  # whatever a runtime has of its own
        raise ModelError(f"{model.place} cannot be loaded ({error!r})") from error
    if now.digest != model.digest:
        raise ModelError(f"{model.place} was changed after the job was begun; begin another job")
    return engine


def _keras(place: str, beam_size: int) -> Engine:
    import_tensorflow()
    from tfformer.inference.translator import Translator

    translator = Translator.load(place)

    def translate(sentences: list[str]) -> list[str]:
        return translator.translate(translator.encode(sentences), beam_size)

    return Engine(translate, translator.tokenizers.source, translator.max_length - 1)


def _saved_model(place: str, beam_size: int) -> Engine:
    import_tensorflow()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the signatures over text

    manifest, tokenizers = open_export(Path(place))
    signature, output = SIGNATURE, "translation"
    if beam_size > 1:
        signature, output = "translate_beam", "translations"
    model = tf.saved_model.load(place)

    def translate(sentences: list[str]) -> list[str]:
        run = model.signatures[signature]  # which does not keep the model itself alive
        found = run(text=tf.constant(sentences))[output].numpy()
        best = found.reshape(len(sentences), -1)[:, 0]
        return [text.decode("utf-8") for text in best]

    return Engine(translate, tokenizers.source, _max_tokens(manifest))


def _litert(place: str, beam_size: int) -> Engine:
    manifest, tokenizers = open_export(Path(place))
    search = LitertSearch(Path(place), manifest)
    signature = BEAM if beam_size > 1 else GREEDY

    def translate(sentences: list[str]) -> list[str]:
        found = search.run(tokenizers.source.encode(sentences), signature)
        return tokenizers.target.decode(found.ids[:, 0].tolist())

    return Engine(translate, tokenizers.source, _max_tokens(manifest))


def _ctranslate2(place: str, beam_size: int) -> Engine:
    import ctranslate2

    manifest, tokenizers = open_export(Path(place))
    source, target = tokenizers.source, tokenizers.target
    decoding = manifest["decoding"]
    translator = ctranslate2.Translator(place, device="cpu", intra_threads=1)
    number_of = {piece: n for n, piece in enumerate(target.pieces(range(target.vocab_size)))}
    longest = _max_tokens(manifest)
    prefix = None if target.prefix_id is None else target.pieces([target.prefix_id])

    def ids_of(pieces: list[str]) -> list[int]:
        return [number_of[piece] for piece in pieces]

    def translate(sentences: list[str]) -> list[str]:
        rows = [ids[:longest] for ids in source.encode(sentences)]
        results = translator.translate_batch(
            [source.pieces(ids) for ids in rows],
            target_prefix=[prefix] * len(rows) if prefix else None,
            beam_size=beam_size,
            length_penalty=decoding["length_penalty"],
            min_decoding_length=0,
            max_decoding_length=decoding["max_length"],
        )
        return target.decode([ids_of(result.hypotheses[0]) for result in results])

    return Engine(translate, source, longest)


ENGINES: dict[str, Callable[[str, int], Engine]] = {  # by the format of a manifest
    "keras": _keras,
    "saved_model": _saved_model,
    "litert": _litert,
    "ctranslate2": _ctranslate2,
}


def _max_tokens(manifest: dict[str, Any]) -> int:
    """Return the tokens of the longest sentence; the end token needs one place."""
    return manifest["decoding"]["max_length"] - 1
