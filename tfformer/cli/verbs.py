"""The command line: one function a verb, which checks, calls and prints.

A verb checks its paths before TensorFlow is loaded, and imports its own part of the package.
"""

from __future__ import annotations

import argparse
import functools
import io
import itertools
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tfformer.cli.arguments import parser
from tfformer.cli.checks import (
    EXPORT_OPTIONS,
    check_corpus_options,
    check_export_folder,
    check_export_options,
    check_folder,
    check_local,
    check_new_file,
    check_no_file,
    check_run,
    check_run_or_export,
    check_seed,
    check_text_files,
    check_training_texts,
    check_words,
    checked_format,
)
from tfformer.cli.terminal import (
    CorpusProgress,
    Progress,
    counted,
    input_document,
    input_lines,
    open_closed_streams,
    output_file,
    typed_lines,
)
from tfformer.runtime.tensorflow import import_tensorflow

if TYPE_CHECKING:
    from tfformer.config import Config
    from tfformer.corpora.parts import Part
    from tfformer.corpora.translation import Counts
    from tfformer.data.encoding import EncodedSentences
    from tfformer.engines import Artifact
    from tfformer.inference.translation import Translation
    from tfformer.inference.translator import ForcedScore, Translator
    from tfformer.run_directory import Run
    from tfformer.text import Align

HALF_MESSAGE = 1_000  # characters of each end of a longer message
CHUNK = 1_000  # sentences held in memory at a time, so that a text may be larger than memory
PORTION = 128  # sentences of like length between two reports of progress

EncodedSides = list["EncodedSentences"]  # the sources of a chunk, or sources and targets
Item = TypeVar("Item")
Result = TypeVar("Result")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        arguments: The words of the command line; those of this process if left out.

    Returns:
        The exit code: 0, 2 after one line about a mistake that the caller can put right, 130 after
        Ctrl-C, 141 if the reader of standard output has gone.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    open_closed_streams()
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        words = sys.argv[1:] if arguments is None else arguments
        check_words(words)
        options = parser().parse_args(words)
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        VERBS[options.verb](options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if not isinstance(error, (ValueError, OSError, MemoryError, *_tensorflow_errors())):
            raise
        print(f"tfformer: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tfformer: interrupted", file=sys.stderr)
        return 130
    return 0


def _one_line(error: Exception) -> str:
    """The message of an error; of a long one, such as a value's whole text, both ends."""
    message = " ".join(str(error).split()) or type(error).__name__
    if len(message) <= 2 * HALF_MESSAGE:
        return message
    return f"{message[:HALF_MESSAGE]} ... {message[-HALF_MESSAGE:]}"


def _tensorflow_errors() -> tuple[type[Exception], ...]:
    """TensorFlow's own errors, about memory or a full disk.

    There are none where TensorFlow has not been imported.
    """
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if tensorflow else ()


# --- Training -----------------------------------------------------------------------------------


def _recipes(options: argparse.Namespace) -> None:
    from tfformer.config import builtin_recipes

    for name, path in builtin_recipes().items():
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        print(f"{name:<20}{title}")


def _import(options: argparse.Namespace) -> None:
    check_local(options.run_dir)
    check_no_file(options.run_dir, "--run-dir")
    from tfformer.checkpoints.checkpoint import Choices
    from tfformer.checkpoints.import_model import checkpoint_at

    choices = Choices(
        positions=options.positions,
        untied=options.untied,
        normalize=options.normalize,
        source_language=options.source_language,
        target_language=options.target_language,
    )
    with checkpoint_at(options.model, options.run_dir, choices) as checkpoint:
        import_tensorflow()
        from tfformer.checkpoints.run_writer import write_run

        print(write_run(checkpoint, Path(options.run_dir)))


def _corpus(options: argparse.Namespace) -> None:
    from tfformer.data import phrasebook

    check_folder(options.output)
    phrasebook.write(Path(options.output), options.overwrite)


def _train(options: argparse.Namespace) -> None:
    from tfformer.config import find_recipe, read_recipe

    if options.workers and not options.ray:
        raise ValueError("--workers goes with --ray; see docs/scale.md for workers by hand")
    config = read_recipe(find_recipe(options.recipe), options.set)
    _check_training(options, config)
    arguments = (config, options.run_dir, options.resume, options.init_from)
    import_tensorflow()
    if options.ray:
        from tfformer.training.on_ray import train_on_ray

        result = train_on_ray(options.ray, options.workers or 1, *arguments)
    else:
        from tfformer.training.train import train

        result = train(*arguments)
    print(json.dumps(result))


def _check_training(options: argparse.Namespace, config: Config) -> None:
    """Check the paths of a training.

    Of several workers the first alone writes the run, so the others may find it begun.
    """
    from tfformer.storage.run_folders import check_free

    check_no_file(options.run_dir, "--run-dir")
    if options.resume:
        check_run(options.run_dir)
    elif config.training.strategy != "multi_worker":
        check_free(options.run_dir)
    if options.init_from is not None:
        check_run(options.init_from)
    if not options.ray:  # whose workers read the text on their machines
        check_training_texts(config)


# --- Writing ------------------------------------------------------------------------------------


def _translate(options: argparse.Namespace) -> None:
    if options.workers or options.ray or options.engine:
        _translate_corpus(options)
        return
    check_run(options.run)
    check_text_files(options.input, options.keep)
    check_new_file(options.output, options.overwrite)
    is_typed = options.input is None and sys.stdin.isatty()
    format = checked_format(options, is_typed)
    if format == "lines":
        _translate_lines(options, is_typed)
    else:
        _translate_text(options, format, is_typed)


def _translate_corpus(options: argparse.Namespace) -> None:
    """Translate the files of a corpus into a folder; files that are there are done."""
    check_corpus_options(options)
    from tfformer.engines import find_artifact
    from tfformer.storage.run_folders import is_run

    if is_run(options.run):  # an export may need no TensorFlow
        import_tensorflow()
    from tfformer.corpora.parts import find_parts, job_folder
    from tfformer.corpora.run_exports import checked_engine, for_engine

    model = find_artifact(options.run, options.beam_size)
    engine = checked_engine(model, options.engine)
    parts = find_parts(options.input, options.output)
    workers = options.workers or 1
    if workers > len(parts):
        raise ValueError(
            f"--workers {workers} is more than the {counted(len(parts), 'file')} of "
            f"{options.input}; give fewer, or split the files"
        )
    settings = {"model": model.digest, "beam_size": model.beam_size, "engine": engine}
    with job_folder(options.output, settings):
        model = for_engine(model, engine, options.output, progress=sys.stderr)
        print(json.dumps(_translate_parts(options, model, parts, workers)._asdict()))


def _translate_parts(
    options: argparse.Namespace, model: Artifact, parts: Sequence[Part], workers: int
) -> Counts:
    """Translate the parts that are not done yet, in processes or on a cluster."""
    left = [part for part in parts if not part.is_done]
    files = counted(len(parts), "file")
    print(f"{files}, of which {len(parts) - len(left):,} are done", file=sys.stderr)
    with CorpusProgress([part.source for part in left]) as progress:
        if options.ray:
            from tfformer.corpora import on_ray as translating

            return translating.translate_parts(options.ray, model, left, workers, progress.show)
        from tfformer.corpora import processes

        return processes.translate_parts(model, left, workers, progress.show)


def _translate_lines(options: argparse.Namespace, is_typed: bool) -> None:
    translator = _loaded(options, is_typed)
    with (
        output_file(options.output, options.overwrite) as output,
        Progress(output) as progress,
    ):

        def translated(sentences: list[str]) -> tuple[list[str], EncodedSides]:
            sources = translator.encode(sentences)
            n_best = _n_best(translator, sources, options, progress)
            return _translated_lines(translator, sources, n_best, options), [sources]

        if is_typed:
            print("One sentence a line; an empty line or Ctrl-D ends.", file=sys.stderr)
            for line in typed_lines():
                print(*_in_chunks([line], translated), sep="\n", file=output, flush=True)
        else:
            for line in _in_chunks(input_lines(options.input), translated):
                print(line, file=output)


def _translate_text(options: argparse.Namespace, format: str, is_typed: bool) -> None:
    translator = _loaded(options, is_typed)
    from tfformer.explain.alignment import nearest_targets

    texts = translator.text_translator(
        options.beam_size,
        options.length_penalty,
        align=functools.partial(nearest_targets, translator),
        keep=list(input_lines(options.keep)) if options.keep else (),
    )
    with (
        output_file(options.output, options.overwrite) as output,
        Progress(output) as progress,
    ):
        if is_typed:
            print("A line of text at a time; an empty line or Ctrl-D ends.", file=sys.stderr)
            for line in typed_lines():
                print(texts.translate(line, format), file=output, flush=True)
        else:
            parts, encoding = input_document(options.input, format)
            if encoding != "utf-8" and isinstance(output, io.TextIOWrapper):
                output.reconfigure(encoding=encoding, errors="xmlcharrefreplace")
            for piece in texts.stream(parts, format):
                output.write(piece)
                progress.advance(piece.count("\n"))


def _loaded(options: argparse.Namespace, is_typed: bool) -> Translator:
    """Return the translator of a run; at a prompt, say that it is being loaded."""
    from tfformer.runtime.steps import Steps

    with Steps(sys.stderr if is_typed else None)(f"loading {options.run}"):
        import_tensorflow()
        from tfformer.inference.translator import Translator

        return Translator.load(options.run, options.source_language, options.target_language)


def _translated_lines(
    translator: Translator,
    sources: EncodedSentences,
    n_best: list[list[Translation]],
    options: argparse.Namespace,
) -> list[str]:
    """Return the lines to print.

    Each source has `--n-best` lines, blank ones where it has fewer translations.
    """
    count = options.n_best
    blank = [("", 0.0)] * count
    hypotheses = [pair for best in n_best for pair in [*best, *blank][:count]]
    texts = [text for text, _ in hypotheses]
    columns = [texts]
    if options.scores:
        columns.insert(0, [f"{score:.4f}" for _, score in hypotheses])
    if options.alignments:
        repeated = [number for number in range(len(sources)) for _ in range(count)]
        columns.append(_alignments(translator, sources.take(repeated), texts))
    return ["\t".join(line) for line in zip(*columns, strict=True)]


def _alignments(
    translator: Translator, sources: EncodedSentences, translations: list[str]
) -> list[str]:
    from tfformer.explain.alignment import alignments, pharaoh

    targets = translator.encode_targets(translations)
    return [pharaoh(one) for one in alignments(translator, sources, targets)]


def _generate(options: argparse.Namespace) -> None:
    check_run(options.run)
    check_seed(options.seed, options.count)
    check_new_file(options.output, options.overwrite)
    import_tensorflow()
    from tfformer.inference.generator import Generator

    generator = Generator.load(options.run)
    if options.greedy:
        continuations = generator.complete([options.prefix])
    else:
        continuations = generator.sample(
            [options.prefix] * options.count,
            seed=options.seed,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
        )
    with output_file(options.output, options.overwrite) as output:
        for text, score in continuations:
            print(f"{score:.4f}\t{text}" if options.scores else text, file=output)


# --- Scoring ------------------------------------------------------------------------------------


def _evaluate(options: argparse.Namespace) -> None:
    check_run(options.run)
    check_text_files(options.source, options.reference)
    import_tensorflow()
    from tfformer.run_directory import Run

    run = Run.open(options.run).with_languages(options.source_language, options.target_language)
    if not run.config.model.has_encoder:
        if options.reference is not None:
            raise ValueError(f"{options.run} is a language model and takes no --reference")
        line, measured = _evaluate_language_model(options, run)
    else:
        if options.reference is None:
            raise ValueError(f"{options.run} is a translation model and needs --reference FILE")
        line, measured = _evaluate_translation(options, run)
    if not options.json:
        print(line)
    print(json.dumps(measured))


def _evaluate_translation(options: argparse.Namespace, run: Run) -> tuple[str, dict[str, Any]]:
    from tfformer.data.sources import read_aligned
    from tfformer.inference.evaluation import bleu_tokenizer, check_bleu, scores
    from tfformer.inference.translator import Translator

    check_bleu(run.config)
    pairs = list(read_aligned(options.source, options.reference))
    sources = [source for source, _ in pairs]
    references = [reference for _, reference in pairs]
    translator = Translator.of(run)

    def translated(sentences: list[str]) -> tuple[list[str], EncodedSides]:
        encoded = translator.encode(sentences)
        n_best = _n_best(translator, encoded, options, progress)
        return [best[0].text for best in n_best], [encoded]

    start = time.monotonic()
    with Progress() as progress:
        hypotheses = list(_in_chunks(sources, translated))
    seconds = round(time.monotonic() - start, 2)
    measured = scores(hypotheses, references, bleu_tokenizer(run.config))
    line = f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f} on {len(pairs)} sentences"
    return line, measured | {"sentences": len(pairs), "seconds": seconds}


def _evaluate_language_model(options: argparse.Namespace, run: Run) -> tuple[str, dict[str, Any]]:
    from tfformer.data.sources import read_sentences
    from tfformer.inference.generator import Generator

    sentences = [sentence for (sentence,) in read_sentences(options.source)]
    bits = Generator.of(run).bits_per_byte(sentences)
    line = f"{bits:.4f} bits per byte on {len(sentences)} sentences"
    return line, {"bits_per_byte": bits, "sentences": len(sentences)}


def _score(options: argparse.Namespace) -> None:
    check_run(options.run)
    check_text_files(options.source, options.target)
    check_new_file(options.output, options.overwrite)
    import_tensorflow()
    from tfformer.data.sources import read_aligned
    from tfformer.inference.translator import Translator

    translator = Translator.load(options.run, options.source_language, options.target_language)

    def scored(pairs: list[tuple[str, str]]) -> tuple[list[ForcedScore], EncodedSides]:
        sources = translator.encode([source for source, _ in pairs])
        targets = translator.encode_targets([target for _, target in pairs])
        scores = translator.score(sources, targets)
        progress.advance(len(pairs))
        return scores, [sources, targets]

    pairs = 0
    tokens = 0
    log_prob = 0.0
    with (
        output_file(options.output, options.overwrite) as output,
        Progress(output) as progress,
    ):
        texts = read_aligned(options.source, options.target)
        for score in _in_chunks(texts, scored):
            print(_score_line(score, options.per_token), file=output)
            pairs += 1
            tokens += len(score.tokens)
            log_prob += score.log_prob
    measured = {
        "pairs": pairs,
        "tokens": tokens,
        "log_prob": round(log_prob, 4),
        "perplexity": math.exp(-log_prob / tokens) if tokens else None,
    }
    print(json.dumps(measured), file=sys.stdout if options.output else sys.stderr)


def _score_line(score: ForcedScore, per_token: bool) -> str:
    columns = [f"{score.log_prob:.4f}", str(len(score.tokens)), f"{score.perplexity:.4f}"]
    if per_token:
        log_probs = (f"{log_prob:.4f}" for log_prob in score.log_probs)
        columns += [" ".join(score.tokens), " ".join(log_probs)]
    return "\t".join(columns)


# --- Looking inside -----------------------------------------------------------------------------


def _attention(options: argparse.Namespace) -> None:
    check_run(options.run)
    check_new_file(options.output, options.overwrite)
    import_tensorflow()
    from tfformer.explain.attention import attention
    from tfformer.explain.attention_pictures import draw
    from tfformer.inference.translator import Translator
    from tfformer.run_directory import Run

    run = Run.open(options.run)
    maps = attention(Translator.of(run), options.sentence, options.target)
    draw(
        maps,
        options.output,
        kind=options.kind,
        word=options.word,
        layer=options.layer,
        head=options.head,
        languages=run.languages,
    )
    print(options.output)


def _inspect(options: argparse.Namespace) -> None:
    check_run(options.run)
    check_folder(options.output)
    import_tensorflow()
    from tfformer.explain.inspection import describe
    from tfformer.run_directory import Run

    run = Run.open(options.run)
    print(describe(run))
    if options.output:
        from tfformer.explain import run_pictures

        for path in run_pictures.draw(run, options.output, options.overwrite):
            print(path)


# --- Shipping -----------------------------------------------------------------------------------


def _export(options: argparse.Namespace) -> None:
    names = itertools.chain(*EXPORT_OPTIONS.values())
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    check_export_options(options.format, given)
    check_run(options.run)
    check_text_files(options.samples)
    check_export_folder(options.output)
    import_tensorflow()
    from tfformer.data.sources import read_lines
    from tfformer.export import formats
    from tfformer.storage.run_folders import MANIFEST

    if options.samples:
        given["samples"] = list(read_lines(options.samples))
    write = getattr(formats, options.format)
    version = write(options.run, options.output, progress=sys.stderr, **given)
    (manifest,) = version.rglob(MANIFEST)
    for line in _parity_lines(json.loads(manifest.read_text(encoding="utf-8"))):
        print(line)
    print(version)


def _parity_lines(manifest: dict[str, Any]) -> Iterator[str]:
    for name, measured in manifest["parity"].items():
        counts = f"{measured['identical']} of {measured['sentences']}"
        if name == "tensors":  # of a checkpoint for another toolkit, which is not run here
            yield f"tensors: {counts} were read back bit-equal"
        else:
            yield f"{name}: {counts} samples have the same output as the run"
    if bleu := manifest.get("bleu"):
        before_and_after = f"run {bleu['run']:.2f}, export {bleu['exported']:.2f}"
        yield f"BLEU on {bleu['sentences']} validation sentences: {before_and_after}"


def _serve(options: argparse.Namespace) -> None:
    for place in options.models:
        check_run_or_export(place)
    check_text_files(options.api_keys)
    from tfformer.serving.server import serve

    serve(
        options.models,
        options.host,
        options.port,
        allowed_hosts=options.allow_host,
        api_keys=options.api_keys,
        open_aligner=_opened_aligner,
    )


def _opened_aligner(path: Path) -> Align | None:
    """The alignments of a run directory; a language model has none."""
    from tfformer.explain.alignment import compiled_aligner
    from tfformer.inference.translator import Translator
    from tfformer.run_directory import Run

    run = Run.open(path)
    if not run.config.model.has_encoder:
        return None
    return compiled_aligner(Translator.of(run))


# --- Shared by several verbs --------------------------------------------------------------------


def _n_best(
    translator: Translator,
    sources: EncodedSentences,
    options: argparse.Namespace,
    progress: Progress,
) -> list[list[Translation]]:
    """Find the best translations of a chunk, with the search of the options.

    Sentences are translated in portions of like length, small enough to report progress.
    """
    from tfformer.data.batches import by_length

    beam_size = translator.decoding.beam_size if options.beam_size is None else options.beam_size
    if options.n_best > 1:
        beam_size = max(beam_size, options.n_best)
    order = by_length(sources.ids)
    n_best: list[list[Translation]] = [[] for _ in order]
    for start in range(0, len(order), PORTION):
        numbers = order[start : start + PORTION]
        portion = translator.n_best(sources.take(numbers), beam_size, options.length_penalty)
        for number, best in zip(numbers, portion, strict=True):
            n_best[number] = best
        progress.advance(len(numbers))
    return n_best


def _in_chunks(
    items: Iterable[Item], work: Callable[[list[Item]], tuple[list[Result], EncodedSides]]
) -> Iterator[Result]:
    """Yield the results of `work`, called with a chunk of the items at a time.

    `work` returns the results and the encoded sentences. Sentences that were truncated are counted
    over all chunks, for a single warning.
    """
    from tfformer.data.encoding import truncation_report

    items = iter(items)
    sentences = 0
    truncated = 0
    max_tokens = 0
    while chunk := list(itertools.islice(items, CHUNK)):
        results, sides = work(chunk)
        sentences += sum(len(side) for side in sides)
        truncated += sum(side.truncated for side in sides)
        max_tokens = sides[0].max_tokens
        yield from results
    if truncated:
        warnings.warn(truncation_report(truncated, sentences, max_tokens), stacklevel=1)


VERBS = {
    "recipes": _recipes,
    "train": _train,
    "import": _import,
    "translate": _translate,
    "generate": _generate,
    "corpus": _corpus,
    "evaluate": _evaluate,
    "score": _score,
    "attention": _attention,
    "inspect": _inspect,
    "export": _export,
    "serve": _serve,
}
