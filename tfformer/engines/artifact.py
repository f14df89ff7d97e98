"""Find artifacts (runs and exports) without loading them, and open them with their engine."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tfformer.data.imported_tokenizers import load_tokenizer
from tfformer.data.tokenizers import Tokenizers as Tokenizers
from tfformer.engines.engine import GREEDY, Engine
from tfformer.runtime.tensorflow import import_tensorflow
from tfformer.storage.artifact_folders import (
    MANIFEST,
    REMEDY,
    checked_manifest,
    exported_version,
    is_run,
    read_manifest,
)
from tfformer.storage.folders import folder_at
from tfformer.storage.whole_files import digest_of_values, file_digest

SAVED_MODEL = "saved_model.pb"  # without a manifest, it marks a SavedModel from another program


class Runtime(NamedTuple):
    """An engine's class and its requirements."""

    engine: str  # module and class in this package
    library: str
    extra: str  # for `pip install -e '.[...]'`


RUNTIMES = {  # format in the manifest -> runtime; "keras" is a run directory
    "keras": Runtime("keras.KerasEngine", "TensorFlow", "tensorflow"),
    "saved_model": Runtime("saved_model.SavedModelEngine", "TensorFlow", "tensorflow"),
    "litert": Runtime("litert.LitertEngine", "LiteRT", "litert"),
    "ctranslate2": Runtime("ctranslate2.CTranslate2Engine", "CTranslate2", "ctranslate2"),
}


class ArtifactError(ValueError):
    """An artifact that cannot be loaded, or was replaced by another one since it was found."""


class Artifact(NamedTuple):
    """A run or an export, and everything that decides its translations."""

    format: str  # one of `RUNTIMES`
    path: str  # a run directory, which may be remote, or the folder of one exported version
    beam_size: int  # number of beams; 1 is greedy search
    digest: str  # SHA-256 of its settings, vocabularies and weights
    languages: tuple[str, ...] = ()  # codes of source and target; empty if unknown

    def open(self, threads: int | None = None) -> Engine:
        """Load the artifact, possibly in a different process from the one that found it.

        It searches with `beam_size` beams by default. An artifact that was replaced, or that cannot
        be loaded, raises ArtifactError.
        """
        try:
            engine = _opened(self.format, self.path, threads)
            now = find_artifact(self.path, self.beam_size)
        except (ValueError, OSError) as error:
            raise ArtifactError(str(error)) from error
        except Exception as error:  # a runtime may raise any exception
            raise ArtifactError(f"{self.path} cannot be loaded ({error!r})") from error
        if now.digest != self.digest:
            engine.close()
            raise ArtifactError(f"{self.path} has changed since the job began; start a new job")
        engine.beam_size = self.beam_size
        return engine


def open_engine(path: str | Path, threads: int | None = None) -> Engine:
    """Open a run or an export.

    Args:
        path: A run directory, an exported version, a folder of versions (the newest is opened), or
            a SavedModel from another program.
        threads: Number of threads. By default, CTranslate2 uses all CPU cores and LiteRT at most 4.
            TensorFlow ignores this and follows `TF_NUM_INTRAOP_THREADS`.

    Raises:
        ValueError: There is no artifact at `path`, a file is damaged, or the runtime is not
            installed.
    """
    return _opened(*_located(path), threads)


def find_artifact(path: str | Path, beam_size: int | None = None) -> Artifact:
    """Find a translation model without loading it, at a `path` as for `open_engine`.

    Comparing its digest later shows whether it has changed. ValueError: there is no run or export
    at `path`, it does not translate text, or it has no search with `beam_size` beams.
    """
    format, folder = _located(path)
    if format == "keras":
        return _run_artifact(folder, beam_size)
    manifest = read_manifest(Path(folder))
    exported = manifest["decoding"].get("beam_size")
    if exported is None:
        raise ValueError(f"{folder} is an export of a language model, which does not translate")
    if format == "saved_model" and GREEDY not in manifest["signatures"]:
        raise ValueError(f"{folder} does not accept text; export the run again without --no-text")
    if format != "ctranslate2" and beam_size not in (None, 1, exported):
        supported = "greedy search" if exported == 1 else f"--beam-size 1 and {exported}"
        raise ValueError(
            f"{folder} supports only {supported}; omit --beam-size {beam_size}, or export the "
            "run again with it"
        )
    digest, languages = file_digest(Path(folder) / MANIFEST), manifest.get("languages") or ()
    return Artifact(format, folder, beam_size or exported, digest, tuple(languages))


def open_export(folder: Path) -> tuple[dict[str, Any], Tokenizers]:
    """Return the manifest and the tokenizers of an export whose files are unchanged."""
    manifest = checked_manifest(folder)
    tokenizers = exported_tokenizers(folder, manifest)
    if tokenizers is None:
        raise ValueError(f"{folder} contains no tokenizer; export the run again")
    return manifest, tokenizers


def exported_tokenizers(folder: Path, manifest: Mapping[str, Any]) -> Tokenizers | None:
    """Return the tokenizers of an export that `check_files` has checked; None if it has none."""
    names = sorted(manifest.get("tokenizers") or ())  # source before target, or one for both
    if not names:
        return None
    if unknown := [name for name in names if name not in manifest.get("digests", {})]:
        raise ValueError(
            f"{folder / MANIFEST} names the vocabulary {unknown[0]!r}, which is not among its "
            f"files; {REMEDY}"
        )
    tokenizers = [load_tokenizer(folder / name) for name in names]
    source = tokenizers[0]
    if tag := manifest.get("tag"):
        source = source.with_tag(tag)
    return Tokenizers(source, tokenizers[-1])


def _located(path: str | Path) -> tuple[str, str]:
    """Return the format of the artifact at a path, and its absolute path."""
    folder = folder_at(path)
    if is_run(path):
        return "keras", folder.absolute()
    version = exported_version(folder.path)
    if version is not None:
        format = str(read_manifest(version).get("format"))
        if format not in RUNTIMES:
            raise ValueError(
                f"{version} has the export format {format}, which tfformer cannot run; export the "
                f"run as one of {', '.join(name for name in RUNTIMES if name != 'keras')}"
            )
        return format, str(version.absolute())
    if (folder.path / SAVED_MODEL).is_file():
        return "saved_model", folder.absolute()
    raise ValueError(f"{folder} is neither a run directory nor an export; pass one of them")


def _opened(format: str, folder: str, threads: int | None) -> Engine:
    runtime = RUNTIMES[format]
    module, _, name = runtime.engine.partition(".")
    try:
        if runtime.library == "TensorFlow":
            import_tensorflow()
        engine = getattr(importlib.import_module(f"tfformer.engines.{module}"), name)
        return engine(folder, threads)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{folder} needs {runtime.library} ({error.name} is missing); install it with: "
            f"pip install -e '.[{runtime.extra}]'"
        ) from None


def _run_artifact(folder: str, beam_size: int | None) -> Artifact:
    from tfformer.run_directory import Run

    run = Run.open(folder)
    run.check_architecture("encoder-decoder")
    run.check_weights()
    decoding, data = run.config.decoding, run.config.data
    settings = {
        "model": run.model_digest,
        "decoding": decoding.to_dict(),
        "max_length": data.max_length,
        "languages": data.languages,
        "weights": file_digest(run.weights),
        "shortlist": file_digest(run.shortlist) if run.shortlist.is_file() else None,
    }
    beam_size = beam_size or decoding.beam_size
    languages = tuple(run.languages or ())
    return Artifact("keras", folder, beam_size, digest_of_values(settings), languages)
