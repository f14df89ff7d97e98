"""The manifest of an artifact: what was written, and from which run."""

import importlib.metadata
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfformer.checkpoints.provenance import imported_from
from tfformer.data.piece_tokenizer import AnyTokenizer
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run, Tokenizers
from tfformer.storage.whole_files import file_digest
from tfformer.version import __version__

LIBRARIES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "sentencepiece",
    "ctranslate2",
    "ai-edge-litert",
)
EXAMPLES = {  # sentences with their translations, by the validation text
    "phrasebook:valid": {
        "Good morning.": "Guten Morgen.",
        "How are you?": "Wie geht es Ihnen?",
        "Where is the station?": "Wo ist der Bahnhof?",
        "The animal did not cross the street because it was too tired.": (
            "Das Tier überquerte die Straße nicht, weil es zu müde war."
        ),
    }
}


def first_manifest(folder: Path, run: Run, model: TextModel) -> dict[str, Any]:
    """Save the tokenizers beside a written artifact, and return the keys that every manifest has.

    export/README.md documents the keys.
    """
    form = model.model.dialect.search() if isinstance(model, Translator) else {}
    tokenizers = _tokenizer_files(model.tokenizers)
    for name, tokenizer in tokenizers.items():
        tokenizer.save(folder / name)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    return {
        "languages": run.languages,
        "examples": _examples(run, model),
        "decoding": {"max_length": model.max_length} | model.search_settings() | form,
        "tokenizers": {name: tokenizer.digest for name, tokenizer in tokenizers.items()},
        "parameters": model.model.count_params(),
        "run": _origin(run),
        "files": {name: path.stat().st_size for name, path in files.items()},
        "digests": {name: file_digest(path) for name, path in files.items()},
        "versions": _versions(),
        **imported_from(run),
    }


def _tokenizer_files(tokenizers: Tokenizers) -> dict[str, AnyTokenizer]:
    if tokenizers.shared:
        return {"tokenizer.model": tokenizers.source}
    return {"source.model": tokenizers.source, "target.model": tokenizers.target}


def _origin(run: Run) -> dict[str, Any]:
    """The digest of the run's weights, whose file seals their settings, and its measurements."""
    result = json.loads(run.result.read_text(encoding="utf-8"))
    measured = {name: value for name, value in result.items() if name.startswith("val_")}
    return {"digest": file_digest(run.weights), **measured}


def _examples(run: Run, model: TextModel) -> list[str]:
    """The sentences to be offered on a page, if the run's text is known to have them."""
    valid = run.config.data.valid
    if not isinstance(valid, str) or not isinstance(model, Translator):
        return []
    return right_examples(model, EXAMPLES.get(valid, {}))


def right_examples(translator: Translator, known: Mapping[str, str]) -> list[str]:
    """Return the sentences of `known` that the model translates as given."""
    translations = translator.translate(translator.encode(list(known)))
    pairs = zip(known.items(), translations, strict=True)
    return [source for (source, target), translation in pairs if translation == target]


def _versions() -> dict[str, str]:
    versions = {"tfformer": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for library in LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    return versions
