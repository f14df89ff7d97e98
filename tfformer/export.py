"""From a finished run to an artefact that other software runs: written, loaded back, compared, then moved into place.

Knows no training, and of each format only who writes it and who runs it.
"""

import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
import math
import random
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import tfformer
from tfformer import ctranslate2_writer, litert_writer, saved_model_writer, web_page
from tfformer.checkpoints import Model, RunDirectory, Tokenizers
from tfformer.config import DecodingConfig
from tfformer.data import read_pairs
from tfformer.evaluation import scores
from tfformer.files import publish, temporary_folder, write_text
from tfformer.generator import Generator
from tfformer.model_card import model_card
from tfformer.special_ids import END_ID
from tfformer.tokenizers import Tokenizer
from tfformer.translator import EXTRA_LENGTH, Translator

DTYPES = ("float32", "bfloat16")
SAMPLES = 32
VALIDATION = 1_000  # sentence pairs that quantisation is measured on
SCORE_TOLERANCE = 1e-3  # of the score, or in nats below 1; a sum over 60 tokens in another order differs by about 1e-5
MANIFEST = "manifest.json"

Found = dict[str, tuple[int, list[tuple[str, float]]]]  # who translated -> its beam size, translations and scores


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
        parity = _parity(own, samples, _run_saved_model(folder, own, samples, with_text))
        if dtype == "float32":
            _check_parity(parity)
        manifest = {"dtype": dtype, "signatures": saved_model_writer.signatures(folder), "parity": parity}
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

    CTranslate2 divides by length^alpha where this package follows Wu et al. 2016, so the comparison is without a length
    penalty. Raises ValueError or OSError, and then leaves nothing behind.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        raise ValueError("this format needs CTranslate2; install it with: pip install 'tfformer[ctranslate2]'")
    RunDirectory.open(run).check_architecture("encoder-decoder")
    translator = _load(run, max_length, beam_size, length_penalty=0.0)
    with temporary_folder(Path(output)) as folder:
        ctranslate2_writer.write(folder, translator.model, translator.tokenizers, translator.max_length)
        samples = samples or _sample_sentences(translator)
        parity = _parity(translator, samples, _run_ctranslate2(folder, translator, samples))
        _check_parity(parity)
        _complete(folder, translator, {"format": "ctranslate2", "dtype": "float32", "parity": parity})
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
    quantize: str = "int8",
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
        _write_litert(model, run, translator, quantize, static=True, with_text=False, samples=samples)
        web_page.set_version(folder, _digest(model / MANIFEST))
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
    parity = _parity(translator, samples, _run_litert(file, translator, samples, static, with_text))
    described = {"format": "tflite", "quantize": quantize, "static": static, "parity": parity}
    if quantize == "none":
        _check_parity(parity)
    else:
        described["bleu"] = _bleu(run, translator, file, static)
    described["languages"] = RunDirectory.open(run).config().data.languages
    described["signatures"] = litert_writer.signatures(file)
    write_text(folder / "README.md", model_card(_complete(folder, translator, described)))


def _check_litert(run: str | Path, quantize: str, static: bool, with_text: bool) -> None:
    if quantize not in litert_writer.QUANTIZATIONS:
        known = ", ".join(litert_writer.QUANTIZATIONS)
        raise ValueError(f"quantize={quantize!r} is not known; choose one of {known}")
    if static and with_text:
        raise ValueError("text has no fixed shape; choose --static or --text, not both")
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise ValueError("this format needs LiteRT; install it with: pip install 'tfformer[litert]'")
    RunDirectory.open(run).check_architecture("encoder-decoder")
    if quantize != "none":
        _validation_text(run)


def _load(
    run: str | Path, max_length: int | None, beam_size: int | None, length_penalty: float | None
) -> Translator | Generator:
    """The run's own translator, with other settings where some are given, or its generator."""
    directory = RunDirectory.open(run)
    if not directory.result.is_file():
        raise ValueError(f"{run} is not finished: it has no result.json; go on with `tfformer train --resume` first")
    config, tokenizers = directory.config(), directory.tokenizers()
    max_length = config.data.max_length if max_length is None else max_length
    if max_length < 2:
        raise ValueError(f"max_length={max_length} must be at least 2: a token and the end token")
    if config.model.architecture == "decoder":
        if (beam_size, length_penalty) != (None, None):
            raise ValueError(f"{run} is a language model, which has no choice of beam size and length penalty")
        return Generator(directory.load_model(tokenizers), tokenizers, max_length)
    decoding = DecodingConfig(
        config.decoding.beam_size if beam_size is None else beam_size,
        config.decoding.length_penalty if length_penalty is None else length_penalty,
    )
    if decoding.beam_size < 1:
        raise ValueError(f"beam_size={decoding.beam_size} must be at least 1")
    if not 0 <= decoding.length_penalty < math.inf:
        raise ValueError(f"length_penalty={decoding.length_penalty} must be a number from 0 on")
    return Translator(directory.load_model(tokenizers), tokenizers, decoding, max_length)


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
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    manifest = described | {
        "decoding": _decoding(own),
        "tokenizers": {name: tokenizer.digest for name, tokenizer in _tokenizer_files(own.tokenizers).items()},
        "parameters": own.model.count_params(),
        "files": files,
        "digests": {name: _digest(folder / name) for name in files},
        "versions": _versions(),
    }
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return manifest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _decoding(own: Translator | Generator) -> dict:
    if isinstance(own, Generator):
        return {"max_length": own.max_length}
    return {
        "max_length": own.max_length,
        "extra_length": EXTRA_LENGTH,
        "beam_size": own.decoding.beam_size,
        "length_penalty": own.decoding.length_penalty,
    }


def _tokenizer_files(tokenizers: Tokenizers) -> dict[str, Tokenizer]:
    if tokenizers.shared:
        return {"tokenizer.model": tokenizers.source}
    return {"source.model": tokenizers.source, "target.model": tokenizers.target}


def _versions() -> dict[str, str]:
    versions = {"tfformer": tfformer.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for library in ("tensorflow", "tensorflow-text", "keras", "sentencepiece", "ctranslate2", "ai-edge-litert"):
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


def _run(program: str, arguments: Sequence[str | Path], requests: list) -> list:
    """The answers of the program `<program>.py` beside this file, in a new process that has not imported tfformer."""
    code = (Path(__file__).parent / f"{program}.py").read_text(encoding="utf-8")
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ValueError(f"what was written cannot be run by another process, so it is not kept: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def _run_saved_model(folder: Path, own: Translator | Generator, samples: Sequence[str], with_text: bool) -> Found:
    pieces = own.tokenizers.source.encode(samples)
    longest = max(map(len, pieces))
    padded = [row + [END_ID] * (longest - len(row)) for row in pieces]  # past its length a row may hold anything
    ids, text = {"ids": padded, "lengths": list(map(len, pieces))}, {"text": samples}
    if isinstance(own, Generator):
        read, requests = _continuations, {"continue_ids": ids, "serving_default": text, "score": text}
    else:
        pairs = {"source": samples, "target": samples}  # any text has a probability as a translation
        over_text = {"serving_default": text, "translate_beam": text, "score": pairs}
        read, requests = _translations, {"translate_ids": ids} | over_text
    modules = ["tensorflow_text"] if with_text else []
    asked = list(requests.items()) if with_text else list(requests.items())[:1]
    return read(own, samples, *_run("saved_model_runner", [folder.resolve(), *modules], asked))


def _continuations(generator: Generator, samples: Sequence[str], by_ids: dict, *by_text: dict) -> Found:
    found = {"continue_ids": (1, list(zip(generator.tokenizer.decode(by_ids["ids"]), by_ids["score"], strict=True)))}
    if by_text:
        greedy, scored = by_text
        found["serving_default"] = (1, list(zip(greedy["generated_text"], greedy["score"], strict=True)))
        found["score"] = (1, list(zip(samples, scored["log_prob"], strict=True)))
    return found


def _translations(translator: Translator, samples: Sequence[str], by_ids: dict, *by_text: dict) -> Found:
    target = translator.tokenizers.target
    found = {"translate_ids": (1, list(zip(target.decode(by_ids["ids"]), by_ids["score"], strict=True)))}
    if by_text:
        greedy, beam, scored = by_text
        best = [(texts[0], scores[0]) for texts, scores in zip(beam["translations"], beam["scores"], strict=True)]
        found["serving_default"] = (1, list(zip(greedy["translation"], greedy["score"], strict=True)))
        found["translate_beam"] = (translator.decoding.beam_size, best)
        found["score"] = (1, list(zip(samples, scored["log_prob"], strict=True)))
    return found


def _run_litert(file: Path, translator: Translator, samples: Sequence[str], static: bool, with_text: bool) -> Found:
    target, beam_size = translator.tokenizers.target, translator.decoding.beam_size
    found = {"translate": (1, list(zip(*_litert_greedy(file, translator, samples, static), strict=True)))}
    if beam_size > 1:
        answers = _run(
            "litert_runner", [file.resolve()], _litert_requests("translate_beam", translator, samples, static)
        )
        texts = target.decode([answer["ids"][0][0] for answer in answers])
        found["translate_beam"] = (beam_size, list(zip(texts, [a["scores"][0][0] for a in answers], strict=True)))
    if with_text:
        requests = [["translate_text", {"text": [sentence]}] for sentence in samples]
        answers = _run("litert_runner", [file.resolve(), "tensorflow_text"], requests)
        found["translate_text"] = (1, [(answer["translation"][0], answer["score"][0]) for answer in answers])
        _check_text(found)
    return found


def _check_text(found: Found) -> None:
    (_, by_ids), (_, by_text) = found["translate"], found["translate_text"]
    other = sum(text != its_text for (text, _), (its_text, _) in zip(by_ids, by_text, strict=True))
    if other:
        raise ValueError(
            f"{other} of {len(by_ids)} samples come out otherwise with TF Text's tokenizer than by SentencePiece, as "
            "they do with some vocabularies; leave out --text and use the tokenizer beside the model"
        )


def _litert_greedy(
    file: Path, translator: Translator, sentences: Sequence[str], static: bool
) -> tuple[list[str], list[float]]:
    requests = _litert_requests("translate", translator, sentences, static)
    answers = _run("litert_runner", [file.resolve()], requests)
    texts = translator.tokenizers.target.decode([answer["ids"][0] for answer in answers])
    return texts, [answer["score"][0] for answer in answers]


def _litert_requests(signature: str, translator: Translator, sentences: Sequence[str], static: bool) -> list:
    """One for each sentence; of a static file the narrowest signature that it fits in."""
    longest, requests = translator.max_length, []
    for pieces in translator.tokenizers.source.encode(sentences):
        lengths = [len(pieces)]
        if static:
            width = next((width for width in litert_writer.widths(longest) if len(pieces) < width), longest)
            pieces = [*pieces, *[END_ID] * width][:width]  # past its length a row may hold anything
            requests.append([litert_writer.name(signature, width, longest), {"ids": [pieces], "lengths": lengths}])
        else:
            requests.append([signature, {"ids": [pieces or [END_ID]], "lengths": lengths}])
    return requests


def _validation_text(run: str | Path) -> tuple[list[str], list[str]]:
    """Up to `VALIDATION` sources and their references; OSError where the run's validation text cannot be read."""
    data = RunDirectory.open(run).config().data
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
    own = scores([text for text, _ in _own_texts(translator, "translate", sources, beam_size=1)], references)
    its = scores(_litert_greedy(file, translator, sources, static)[0], references)
    return {
        "sentences": len(sources),
        "run": own["bleu"],
        "exported": its["bleu"],
        "loss": own["bleu"] - its["bleu"],
        "signature": own["signature"],
    }


def _run_ctranslate2(folder: Path, translator: Translator, samples: Sequence[str]) -> Found:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    number_of = {piece: number for number, piece in enumerate(target.pieces(range(target.vocab_size)))}
    rows = [row[: translator.max_length - 1] for row in source.encode(samples)]
    limits = [min(len(row) + 1 + EXTRA_LENGTH, translator.max_length) for row in rows]

    def best(beam_size: int) -> list[tuple[str, float]]:
        requests = [[source.pieces(row), beam_size, limit] for row, limit in zip(rows, limits, strict=True)]
        answers = _run("ctranslate2_runner", [folder.resolve()], requests)
        texts = target.decode([[number_of[piece] for piece in pieces] for pieces, _ in answers])
        return [(text, score) for text, (_, score) in zip(texts, answers, strict=True)]

    beam_size = translator.decoding.beam_size
    return {"greedy": (1, best(1)), "beam": (beam_size, best(beam_size))}


def _parity(own: Translator | Generator, samples: Sequence[str], found: Found) -> dict[str, dict]:
    """How many of the samples have the run's own translation, and the largest difference of their scores."""
    parity = {}
    for name, (beam_size, translations) in found.items():
        pairs = zip(_own_texts(own, name, samples, beam_size), translations, strict=True)
        differences = [
            abs(score - its_score) / max(1.0, abs(score))
            for (text, score), (its_text, its_score) in pairs
            if text == its_text
        ]
        parity[name] = {
            "beam_size": beam_size,
            "sentences": len(translations),
            "identical": len(differences),
            "largest_score_difference": max(differences, default=0.0),
        }
    return parity


def _own_texts(
    own: Translator | Generator, name: str, samples: Sequence[str], beam_size: int
) -> Sequence[tuple[str, float]]:
    """What the signature of this name should give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that some samples are cut: they are meant to be
        if name == "score":
            return list(zip(samples, _own_log_probs(own, samples), strict=True))
        if isinstance(own, Translator):
            return [translations[0] for translations in own.n_best(samples, beam_size)]
        return own.complete(samples)


def _own_log_probs(own: Translator | Generator, samples: Sequence[str]) -> Sequence[float]:
    if isinstance(own, Translator):
        return [found.log_prob for found in own.score(samples, samples)]
    return own.log_prob(samples)


def _check_parity(parity: dict[str, dict]) -> None:
    for name, measured in parity.items():
        if measured["identical"] < measured["sentences"] or measured["largest_score_difference"] > SCORE_TOLERANCE:
            raise ValueError(
                f"{name} gave the run's translation for {measured['identical']} of {measured['sentences']} samples, "
                f"with scores up to {measured['largest_score_difference']:.2g} apart; what was written is not kept"
            )
