"""From a finished run to an artefact that other software runs.

Each export goes the same way: the run is opened once, its model loaded, the artefact written into a
temporary folder, read back by another process, compared with the run, described in a manifest, and
moved into place. Each format has a writer, and a module of requests that knows how to ask it.
"""

import importlib.metadata
import importlib.util
import itertools
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tfformer.checkpoints.export_model import write_hugging_face, write_marian
from tfformer.checkpoints.provenance import imported_from
from tfformer.data.piece_tokenizer import AnyTokenizer
from tfformer.data.sources import read_pairs
from tfformer.export import (
    ctranslate2_requests,
    ctranslate2_writer,
    parity,
    processor_speed,
    saved_model_requests,
    saved_model_writer,
    web_page,
)
from tfformer.export.litert import requests as litert_requests
from tfformer.export.litert import text_pieces
from tfformer.export.litert import writer as litert_writer
from tfformer.export.model_card import model_card
from tfformer.export.tasks import SearchOptions, Subject, Task, load
from tfformer.inference.evaluation import scores
from tfformer.inference.translator import Translator
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.runtime.steps import Steps
from tfformer.special_ids import END_ID
from tfformer.storage.manifest import write_manifest
from tfformer.storage.whole_files import file_digest, publish, temporary_folder, write_text
from tfformer.version import __version__

DTYPES = ("float32", "bfloat16")
SAMPLES = 32
VALIDATION = 1_000  # sentence pairs that quantisation is measured on
READING_BACK = "reading it back in another process"
EXAMPLES = {  # for a page to offer: sentences with their translations, by the validation text
    "phrasebook:valid": {
        "Good morning.": "Guten Morgen.",
        "How are you?": "Wie geht es Ihnen?",
        "Where is the station?": "Wo ist der Bahnhof?",
        "The animal did not cross the street because it was too tired.": (
            "Das Tier überquerte die Straße nicht, weil es zu müde war."
        ),
    }
}


def saved_model(
    run: str | Path,
    output: str | Path,
    *,
    max_length: int | None = None,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    dtype: str = "float32",
    for_other_processors: bool = False,
    with_text: bool = True,
    samples: Sequence[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    progress: TextIO | None = None,
) -> Path:
    """Write a run as a TensorFlow SavedModel.

    In float32 every sample's text must be the run's own, read back by another process. In bfloat16
    the comparison is measured and reported, and so is the speed of this processor's products.

    Args:
        run: The run directory of a finished training.
        output: The folder of versions, made if it is not there.
        max_length: Maximum tokens of a sentence, the end token included; by default the run's.
        beam_size: Beams of `translate_beam`; the run's own if None. A language model has none.
        length_penalty: The alpha of Wu et al. 2016; by default the run's. Not of a language model.
        dtype: `float32` or `bfloat16`, of weights and arithmetic.
        for_other_processors: Whether to write bfloat16 even if this processor multiplies it more
            slowly than float32.
        with_text: Whether to write signatures over text, which need TensorFlow Text.
        samples: Sentences to compare; by default random ones from the vocabulary.
        source_language: Of a multilingual model, the language to translate from; by default the
            run's own.
        target_language: The language to translate into.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: An argument is wrong, the run is not finished, a text differs, or this processor
            is slower in `dtype` than in float32.
        OSError: A file cannot be read or written. Nothing is left behind after either error.

    Example:
        >>> import tfformer.export
        >>> tfformer.export.saved_model("no/such/run", "models")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        FileNotFoundError: no/such/run is not a run directory: ...
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not known; choose one of {', '.join(DTYPES)}")
    opened = Run.open(run).with_languages(source_language, target_language)
    step = Steps(progress)
    speed = _speed_beside_float32(step, dtype)
    if not for_other_processors:
        processor_speed.check_not_slower(dtype, speed)
    with step(f"loading {run}"):
        task, subject = load(opened, SearchOptions(max_length, beam_size, length_penalty))
    samples = samples or _sample_sentences(subject)
    with temporary_folder(Path(output)) as folder:
        with step("writing the SavedModel"):
            exported = subject.with_model(_cast(subject.model, dtype))
            saved_model_writer.write(folder, exported, task, with_text)
        with step(READING_BACK):
            requests = task.requests(subject, samples)
            by_loader = saved_model_requests.run(folder, requests, with_text)
        measured = _compared(step, task, subject, samples, *by_loader)
        described: dict[str, Any] = {
            "format": "saved_model",
            "dtype": dtype,
            "signatures": saved_model_writer.signatures(folder),
            "parity": measured,
        }
        if dtype == "float32":
            parity.check(measured)
        else:
            described["speed_beside_float32"] = speed
        _complete(folder, opened, task, subject, described)
        return publish(folder, Path(output))


def ctranslate2(
    run: str | Path,
    output: str | Path,
    *,
    max_length: int | None = None,
    beam_size: int | None = None,
    samples: Sequence[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    progress: TextIO | None = None,
) -> Path:
    """Write a run as a CTranslate2 model in float32.

    Every sample's text must be the run's own. CTranslate2 divides by length^alpha, and a trained
    run as Wu et al. 2016, so the comparison is without a length penalty; and without the narrowing
    beam of Marian's models and their ban on the unknown token.

    Args:
        run: The run directory of a finished translation model.
        output: The folder of versions, made if it is not there.
        max_length: Maximum tokens of a sentence, the end token included; by default the run's.
        beam_size: Beams to compare with; the run's own if None.
        samples: Sentences to compare; by default random ones from the vocabulary.
        source_language: Of a multilingual model, the language to translate from; by default the
            run's own.
        target_language: The language to translate into.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: CTranslate2 is not installed, an argument is wrong, or a text differs.
        OSError: A file cannot be read or written. Nothing is left behind after either error.

    Example:
        >>> import tfformer.export
        >>> version = tfformer.export.ctranslate2("runs/phrasebook", "models")  # doctest: +SKIP
        >>> tfformer.export.ctranslate2("no/such/run", "models")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        FileNotFoundError: no/such/run is not a run directory: ...
    """
    opened = Run.open(run).with_languages(source_language, target_language)
    opened.check_architecture("encoder-decoder")
    if importlib.util.find_spec("ctranslate2") is None:
        raise ValueError(
            "this format needs CTranslate2; install it with: pip install 'tfformer[ctranslate2]'"
        )
    step = Steps(progress)
    with step(f"loading {run}"):
        options = SearchOptions(max_length, beam_size, length_penalty=0.0, is_plain=True)
        task, subject = load(opened, options)
    samples = samples or _sample_sentences(subject)
    with temporary_folder(Path(output)) as folder:
        with step("writing the CTranslate2 model"):
            ctranslate2_writer.write(folder, subject.model, subject.tokenizers, subject.max_length)
        with step(READING_BACK):
            hypotheses = ctranslate2_requests.run(folder, subject, samples)
        measured = _compared(step, task, subject, samples, hypotheses)
        parity.check(measured)
        described = {"format": "ctranslate2", "dtype": "float32", "parity": measured}
        _complete(folder, opened, task, subject, described)
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
    source_language: str | None = None,
    target_language: str | None = None,
    progress: TextIO | None = None,
) -> Path:
    """Write a run as a LiteRT file, `model.tflite` (`--format litert`).

    Without quantisation every sample's translation must be the run's own. Quantised weights
    translate a little differently: their cost in BLEU is measured on the run's validation text.

    Args:
        run: The run directory of a finished translation model.
        output: The folder of versions, made if it is not there.
        quantize: `none`, `int8` (dynamic range, a scale for each row) or `float16`.
        max_length: Maximum tokens of a sentence, the end token included; by default the run's.
        beam_size: Beams of `translate_beam`; no beam search is in the file if None.
        length_penalty: The alpha of Wu et al. 2016; the run's own if None.
        static: Whether all shapes are fixed, as browsers and `CompiledModel` need it.
        with_text: Whether to write a signature over text, which needs TF Text's operators.
        samples: Sentences to compare; by default random ones from the vocabulary.
        source_language: Of a multilingual model, the language to translate from; by default the
            run's own.
        target_language: The language to translate into.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: LiteRT is not installed, an argument is wrong, or a translation differs.
        OSError: A file cannot be read or written. Nothing is left behind after either error.

    Example:
        >>> import tfformer.export
        >>> tfformer.export.tflite("runs/phrasebook", "models", quantize="int4")
        Traceback (most recent call last):
            ...
        ValueError: quantize='int4' is not known; choose one of none, int8, float16
    """
    _check_litert_options(quantize, static, with_text)
    opened = Run.open(run).with_languages(source_language, target_language)
    _check_litert(opened, quantize, with_text)
    step = Steps(progress)
    beam_size = 1 if beam_size is None else beam_size
    with step(f"loading {run}"):
        task, subject = load(opened, SearchOptions(max_length, beam_size, length_penalty))
    with temporary_folder(Path(output)) as folder:
        litert_options = LiteRTOptions(quantize, static, with_text)
        _write_litert(folder, opened, task, subject, litert_options, samples, step)
        return publish(folder, Path(output))


litert = tflite  # LiteRT is the other name of the format
hugging_face = write_hugging_face
marian = write_marian


def web(
    run: str | Path,
    output: str | Path,
    *,
    quantize: str = "float16",
    max_length: int | None = None,
    samples: Sequence[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    progress: TextIO | None = None,
) -> Path:
    """Write a page that translates in the browser with the run's model.

    Any server of static files can serve it; it needs no other.

    Args:
        run: The run directory of a finished translation model.
        output: The folder of versions, made if it is not there.
        quantize: `none`, `int8` (dynamic range, a scale for each row) or `float16`.
        max_length: Maximum tokens of a sentence, the end token included; by default the run's.
        samples: Sentences to compare; by default random ones from the vocabulary.
        source_language: Of a multilingual model, the language to translate from; by default the
            run's own.
        target_language: The language to translate into.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: LiteRT or npm is not installed, an argument is wrong, or a translation differs.
        OSError: A file cannot be read or written. Nothing is left behind after either error.

    Example:
        >>> import tfformer.export
        >>> version = tfformer.export.web("runs/phrasebook", "models")  # doctest: +SKIP
        >>> tfformer.export.web("no/such/run", "models")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        FileNotFoundError: no/such/run is not a run directory: ...
    """
    _check_litert_options(quantize)
    opened = Run.open(run).with_languages(source_language, target_language)
    _check_litert(opened, quantize)
    step = Steps(progress)
    page = web_page.built(progress=progress)
    with step(f"loading {run}"):
        task, subject = load(opened, SearchOptions(max_length, beam_size=1))
    with temporary_folder(Path(output)) as folder:
        model = web_page.write(page, folder)
        litert_options = LiteRTOptions(quantize, static=True, with_text=False)
        _write_litert(model, opened, task, subject, litert_options, samples, step)
        web_page.set_version(folder)
        return publish(folder, Path(output))


def _speed_beside_float32(step: Steps, dtype: str) -> float:
    """Return the speed of this processor in `dtype`; that in float32 is 1."""
    if dtype == "float32":
        return 1.0
    with step(f"measuring the speed of {dtype}"):
        return processor_speed.beside_float32(dtype)


# --- LiteRT ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LiteRTOptions:
    """The form of a LiteRT file; see `tflite`."""

    quantize: str
    static: bool
    with_text: bool


def _write_litert(
    folder: Path,
    run: Run,
    task: Task,
    translator: Translator,
    options: LiteRTOptions,
    samples: Sequence[str] | None,
    step: Steps,
) -> None:
    """Fill the empty `folder` with the model and the files beside it.

    Those are its tokenizers, its manifest and its card.

    Args:
        folder: The new version's folder.
        run: The run to be exported.
        task: The functions of the run's task.
        translator: The run's model, its tokenizers and its search.
        options: The choices about the file.
        samples: Sentences to compare; by default random ones from the vocabulary.
        step: Shows a line for each step.
    """
    file = folder / "model.tflite"
    quantize, static, with_text = options.quantize, options.static, options.with_text
    known = text_pieces.source_ids(translator.tokenizers) if with_text else None
    samples = samples or _sample_sentences(translator, known)
    with step("writing the LiteRT file"):
        litert_writer.write(file, translator, quantize, static, with_text)
    with step(READING_BACK):
        hypotheses = litert_requests.run(file, translator, samples, static, with_text)
    measured = _compared(step, task, translator, samples, hypotheses)
    described = {"format": "litert", "quantize": quantize, "static": static, "parity": measured}
    if quantize == "none":
        parity.check(measured)
    elif run.config.data.valid:
        with step("measuring BLEU on the validation text"):
            described["bleu"] = _bleu(run, translator, file, static)
    else:
        warnings.warn(
            f"{run.path} names no validation text, so the cost of --quantize {quantize} in BLEU is "
            "not measured",
            stacklevel=4,
        )
    described["signatures"] = litert_writer.signatures(file)
    _complete(folder, run, task, translator, described)


def _check_litert_options(quantize: str, static: bool = True, with_text: bool = False) -> None:
    if quantize not in litert_writer.QUANTIZATIONS:
        known = ", ".join(litert_writer.QUANTIZATIONS)
        raise ValueError(f"quantize={quantize!r} is not known; choose one of {known}")
    if static and with_text:
        raise ValueError("text has no fixed shape; choose --static or --text, not both")


def _check_litert(run: Run, quantize: str, with_text: bool = False) -> None:
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise ValueError(
            "this format needs LiteRT; install it with: pip install 'tfformer[litert]'"
        )
    run.check_architecture("encoder-decoder")
    if with_text:
        text_pieces.check(run.tokenizers)
    if quantize != "none" and run.config.data.valid:
        _validation_text(run)


def _validation_text(run: Run) -> tuple[list[str], list[str]]:
    """Return up to `VALIDATION` sources and their references.

    It raises OSError if the text cannot be read.
    """
    data = run.config.data
    languages = (data.languages[0], data.languages[1]) if data.languages else None
    try:
        pairs = read_pairs(data.valid, folder=data.folder, languages=languages, split="validation")
        sources, references = zip(*itertools.islice(pairs, VALIDATION), strict=True)
    except OSError as error:
        raise OSError(
            "quantised weights are measured on the run's validation text, which cannot be read "
            f"({error}); export from the folder in which the run was trained, or with "
            "--quantize none"
        ) from error
    return list(sources), list(references)


def _bleu(run: Run, translator: Translator, file: Path, static: bool) -> dict[str, Any]:
    """Return the cost of quantisation.

    It is the greedy BLEU of run and file on up to `VALIDATION` pairs.
    """
    sources, references = _validation_text(run)
    reference = [best.text for best, *_ in translator.n_best(sources, beam_size=1)]
    ids, _ = litert_requests.greedy(file, translator, sources, static)
    hypotheses = translator.tokenizers.target.decode(ids)
    of_run, of_file = scores(reference, references), scores(hypotheses, references)
    return {
        "sentences": len(sources),
        "run": of_run["bleu"],
        "exported": of_file["bleu"],
        "loss": float(of_run["bleu"]) - float(of_file["bleu"]),
        "signature": of_run["signature"],
    }


# --- For every format -----------------------------------------------------------------------------


def _compared(
    step: Steps,
    task: Task,
    subject: Subject,
    samples: Sequence[str],
    *hypotheses: Mapping[str, parity.Hypotheses],
) -> dict[str, dict[str, Any]]:
    with step(f"comparing {len(samples)} samples"):
        return parity.compare(
            lambda name, beam_size: task.texts(subject, name, samples, beam_size), *hypotheses
        )


def _cast(model: Model, dtype: str) -> Model:
    """The same model with its weights and its arithmetic in `dtype`."""
    cast = type(model).from_config(model.get_config() | {"dtype": dtype})
    cast.set_weights(model.get_weights())
    return cast


def _complete(
    folder: Path, run: Run, task: Task, subject: Subject, described: Mapping[str, Any]
) -> None:
    """Add the tokenizers, the manifest and the model card to the writer's files."""
    tokenizers = _tokenizer_files(subject.tokenizers)
    for name, tokenizer in tokenizers.items():
        tokenizer.save(folder / name)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    valid = run.config.data.valid
    known = EXAMPLES.get(valid, {}) if isinstance(valid, str) else {}
    manifest = (
        dict(described)
        | {
            "languages": run.languages,
            "examples": task.examples(subject, known),
            "decoding": task.decoding(subject),
            "tokenizers": {name: tokenizer.digest for name, tokenizer in tokenizers.items()},
            "parameters": subject.model.count_params(),
            "files": {name: path.stat().st_size for name, path in files.items()},
            "digests": {name: file_digest(path) for name, path in files.items()},
            "versions": _versions(),
        }
        | imported_from(run)
    )
    write_text(folder / "README.md", model_card(manifest))
    write_manifest(folder, manifest)


def _tokenizer_files(tokenizers: Tokenizers) -> dict[str, AnyTokenizer]:
    if tokenizers.shared:
        return {"tokenizer.model": tokenizers.source}
    return {"source.model": tokenizers.source, "target.model": tokenizers.target}


def _versions() -> dict[str, str]:
    versions = {"tfformer": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for library in (
        *("tensorflow", "tensorflow-text", "keras"),
        *("sentencepiece", "ctranslate2", "ai-edge-litert"),
    ):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    return versions


def _sample_sentences(subject: Subject, ids: Sequence[int] | None = None) -> list[str]:
    """Return texts of one to very many pieces, always the same.

    The pieces are drawn from `ids` or all of them.
    """
    tokenizer = subject.tokenizers.source
    longest = subject.max_length
    dice = random.Random(1)
    lengths = [*(1 + n % longest for n in range(SAMPLES - 1)), 2 * longest]
    ids = ids or range(END_ID + 1, tokenizer.vocab_size)
    rows = [dice.choices(ids, k=length) for length in lengths]
    return [sentence for sentence in tokenizer.decode(rows) if sentence]
