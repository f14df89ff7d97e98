"""From a finished run to an artefact that other software runs: written, loaded back, compared, then moved into place.

Knows no training, and of each format only who writes it and who runs it.
"""

import importlib.metadata
import importlib.util
import itertools
import math
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tfformer.config import DecodingConfig
from tfformer.data.sources import read_pairs
from tfformer.data.tokenizers import Tokenizer
from tfformer.export import ctranslate2_writer, parity, saved_model_writer, web_page
from tfformer.export.litert import writer as litert_writer
from tfformer.export.litert.model_card import model_card
from tfformer.export.manifest import file_digest, write_manifest
from tfformer.files import publish, temporary_folder, write_text
from tfformer.inference.evaluation import scores
from tfformer.inference.generator import Generator
from tfformer.inference.graphs import EXTRA_LENGTH
from tfformer.inference.translator import Translator
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.special_ids import END_ID
from tfformer.version import __version__

DTYPES = ("float32", "bfloat16")
SAMPLES = 32
VALIDATION = 1_000  # sentence pairs that quantisation is measured on


def saved_model(
    run: str | Path,
    output: str | Path,
    *,
    max_length: int | None = None,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    dtype: str = "float32",
    with_text: bool = True,
    samples: Sequence[str] | None = None,
) -> Path:
    """Write the run as a TensorFlow SavedModel to `output`/<next free number> and return that folder.

    The search options are the run's own where left out; a language model has none. `samples` are sentences to compare
    translations or continuations on, by default made of the vocabulary. With bfloat16 the comparison is measured and
    reported; with float32 every text must be the run's own. Raises ValueError or OSError, and then leaves nothing
    behind.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not known; choose one of {', '.join(DTYPES)}")
    own = _load(run, max_length, beam_size, length_penalty)
    with temporary_folder(Path(output)) as folder:
        saved_model_writer.write(folder, _with_model(own, _cast(own.model, dtype)), with_text)
        samples = samples or _sample_sentences(own)
        measured = parity.compare(
            own, samples, parity.run_saved_model(folder, own, samples, with_text)
        )
        if dtype == "float32":
            parity.check(measured)
        manifest = {
            "dtype": dtype,
            "signatures": saved_model_writer.signatures(folder),
            "parity": measured,
        }
        _complete(folder, own, {"format": "saved_model"} | manifest)
        return publish(folder, Path(output))


def ctranslate2(
    run: str | Path,
    output: str | Path,
    *,
    max_length: int | None = None,
    beam_size: int | None = None,
    samples: Sequence[str] | None = None,
) -> Path:
    """Write the run as a CTranslate2 model to `output`/<next free number> and return that folder.

    CTranslate2 divides by length^alpha, and a trained run as Wu et al. 2016, so the comparison is without a length
    penalty. Raises ValueError or OSError, and then leaves nothing behind.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        raise ValueError(
            "this format needs CTranslate2; install it with: pip install 'tfformer[ctranslate2]'"
        )
    Run.open(run).check_architecture("encoder-decoder")
    translator = _load(run, max_length, beam_size, length_penalty=0.0)
    with temporary_folder(Path(output)) as folder:
        ctranslate2_writer.write(
            folder, translator.model, translator.tokenizers, translator.max_length
        )
        samples = samples or _sample_sentences(translator)
        measured = parity.compare(
            translator, samples, parity.run_ctranslate2(folder, translator, samples)
        )
        parity.check(measured)
        _complete(
            folder, translator, {"format": "ctranslate2", "dtype": "float32", "parity": measured}
        )
        return publish(folder, Path(output))


def tflite(
    run: str | Path,
    output: str | Path,
    *,
    quantize: str = "none",
    max_length: int | None = None,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    static: bool = False,
    with_text: bool = False,
    samples: Sequence[str] | None = None,
) -> Path:
    """Write the run as a LiteRT file to `output`/<next free number>/model.tflite and return that folder.

    Beam search is in it if `beam_size` is given; see `litert_writer` for `static`. Quantised weights translate a little
    differently: what that costs in BLEU is measured on the run's validation text. Without quantisation every
    translation must be the run's own. Raises ValueError or OSError, and then leaves nothing behind.
    """
    _check_litert(run, quantize, static, with_text)
    translator = _load(run, max_length, 1 if beam_size is None else beam_size, length_penalty)
    with temporary_folder(Path(output)) as folder:
        _write_litert(folder, run, translator, quantize, static, with_text, samples)
        return publish(folder, Path(output))


def web(
    run: str | Path,
    output: str | Path,
    *,
    quantize: str = "float16",
    max_length: int | None = None,
    samples: Sequence[str] | None = None,
) -> Path:
    """Write a page that translates in the browser, with the run's model, to `output`/<next free number>; return that.

    Any server of static files can serve it; it needs no other. Raises ValueError or OSError, and then leaves nothing
    behind.
    """
    _check_litert(run, quantize, static=True, with_text=False)
    page = web_page.built()
    translator = _load(run, max_length, beam_size=1, length_penalty=None)
    with temporary_folder(Path(output)) as folder:
        model = web_page.write(page, folder)
        _write_litert(
            model, run, translator, quantize, static=True, with_text=False, samples=samples
        )
        web_page.set_version(folder)
        return publish(folder, Path(output))


def _write_litert(
    folder: Path,
    run: str | Path,
    translator: Translator,
    quantize: str,
    static: bool,
    with_text: bool,
    samples: Sequence[str] | None,
) -> None:
    """Fill the empty `folder` with the model, what belongs to it and what was found when it was read back."""
    file, samples = folder / "model.tflite", samples or _sample_sentences(translator)
    litert_writer.write(file, translator, quantize, static, with_text)
    measured = parity.compare(
        translator, samples, parity.run_litert(file, translator, samples, static, with_text)
    )
    described = {"format": "tflite", "quantize": quantize, "static": static, "parity": measured}
    if quantize == "none":
        parity.check(measured)
    else:
        described["bleu"] = _bleu(run, translator, file, static)
    described["languages"] = Run.open(run).config.data.languages
    described["signatures"] = litert_writer.signatures(file)
    write_text(folder / "README.md", model_card(_complete(folder, translator, described)))


def _check_litert(run: str | Path, quantize: str, static: bool, with_text: bool) -> None:
    if quantize not in litert_writer.QUANTIZATIONS:
        known = ", ".join(litert_writer.QUANTIZATIONS)
        raise ValueError(f"quantize={quantize!r} is not known; choose one of {known}")
    if static and with_text:
        raise ValueError("text has no fixed shape; choose --static or --text, not both")
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise ValueError(
            "this format needs LiteRT; install it with: pip install 'tfformer[litert]'"
        )
    Run.open(run).check_architecture("encoder-decoder")
    if quantize != "none":
        _validation_text(run)


def _load(
    run: str | Path, max_length: int | None, beam_size: int | None, length_penalty: float | None
) -> Translator | Generator:
    """The run's own translator, with other settings where some are given, or its generator."""
    directory = Run.open(run)
    if not directory.result.is_file():
        raise ValueError(
            f"{run} is not finished: it has no result.json; go on with `tfformer train --resume` first"
        )
    config = directory.config
    max_length = config.data.max_length if max_length is None else max_length
    if max_length < 2:
        raise ValueError(f"max_length={max_length} must be at least 2: a token and the end token")
    if config.model.architecture == "decoder":
        if (beam_size, length_penalty) != (None, None):
            raise ValueError(
                f"{run} is a language model, which has no choice of beam size and length penalty"
            )
        return Generator(directory.load_model(), directory.tokenizers, max_length)
    decoding = DecodingConfig(
        config.decoding.beam_size if beam_size is None else beam_size,
        config.decoding.length_penalty if length_penalty is None else length_penalty,
        config.decoding.length_normalization,
    )
    if decoding.beam_size < 1:
        raise ValueError(f"beam_size={decoding.beam_size} must be at least 1")
    if not 0 <= decoding.length_penalty < math.inf:
        raise ValueError(f"length_penalty={decoding.length_penalty} must be a number from 0 on")
    return Translator(directory.load_model(), directory.tokenizers, decoding, max_length)


def _cast(model: Model, dtype: str) -> Model:
    """The same model with its weights and its arithmetic in `dtype`."""
    cast = type(model).from_config(model.get_config() | {"dtype": dtype})
    cast.set_weights(model.get_weights())
    return cast


def _with_model(own: Translator | Generator, model: Model) -> Translator | Generator:
    if isinstance(own, Generator):
        return Generator(model, own.tokenizers, own.max_length)
    return Translator(model, own.tokenizers, own.decoding, own.max_length)


def _complete(folder: Path, own: Translator | Generator, described: dict) -> dict:
    """Add the tokenizers and the manifest to what the writer has written; returns the manifest."""
    for name, tokenizer in _tokenizer_files(own.tokenizers).items():
        tokenizer.save(folder / name)
    files = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = described | {
        "decoding": _decoding(own),
        "tokenizers": {
            name: tokenizer.digest for name, tokenizer in _tokenizer_files(own.tokenizers).items()
        },
        "parameters": own.model.count_params(),
        "files": files,
        "digests": {name: file_digest(folder / name) for name in files},
        "versions": _versions(),
    }
    return write_manifest(folder, manifest)


def _decoding(own: Translator | Generator) -> dict:
    if isinstance(own, Generator):
        return {"max_length": own.max_length}
    return {
        "max_length": own.max_length,
        "extra_length": EXTRA_LENGTH,
        "beam_size": own.decoding.beam_size,
        "length_penalty": own.decoding.length_penalty,
        "length_normalization": own.decoding.length_normalization,
    }


def _tokenizer_files(tokenizers: Tokenizers) -> dict[str, Tokenizer]:
    if tokenizers.shared:
        return {"tokenizer.model": tokenizers.source}
    return {"source.model": tokenizers.source, "target.model": tokenizers.target}


def _versions() -> dict[str, str]:
    versions = {"tfformer": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for library in (
        "tensorflow",
        "tensorflow-text",
        "keras",
        "sentencepiece",
        "ctranslate2",
        "ai-edge-litert",
    ):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    return versions


def _sample_sentences(own: Translator | Generator) -> list[str]:
    """Text of one to very many pieces, drawn from the vocabulary, always the same."""
    tokenizer, longest = own.tokenizers.source, own.max_length
    dice = random.Random(1)
    lengths = [*(1 + n % longest for n in range(SAMPLES - 1)), 2 * longest]
    rows = [dice.choices(range(END_ID + 1, tokenizer.vocab_size), k=length) for length in lengths]
    return [sentence for sentence in tokenizer.decode(rows) if sentence]


def _validation_text(run: str | Path) -> tuple[list[str], list[str]]:
    """Up to `VALIDATION` sources and their references; OSError where the run's validation text cannot be read."""
    data = Run.open(run).config.data
    languages = tuple(data.languages) if data.languages else None
    try:
        pairs = read_pairs(data.valid, folder=data.folder, languages=languages, split="validation")
        sources, references = zip(*itertools.islice(pairs, VALIDATION), strict=True)
    except OSError as error:
        raise OSError(
            f"quantised weights are measured on the run's validation text, which cannot be read ({error}); export from "
            "the folder in which the run was trained, or with --quantize none"
        ) from error
    return list(sources), list(references)


def _bleu(run: str | Path, translator: Translator, file: Path, static: bool) -> dict:
    """What quantisation costs: greedy BLEU of the run and of the file on up to `VALIDATION` pairs."""
    sources, references = _validation_text(run)
    own = scores(
        [text for text, _ in parity.own_texts(translator, "translate", sources, beam_size=1)],
        references,
    )
    ids, _ = parity.litert_greedy(file, translator, sources, static)
    its = scores(translator.tokenizers.target.decode(ids), references)
    return {
        "sentences": len(sources),
        "run": own["bleu"],
        "exported": its["bleu"],
        "loss": own["bleu"] - its["bleu"],
        "signature": own["signature"],
    }
