"""The `translate` command for lines, a whole text, or the files of a corpus."""

from __future__ import annotations

import functools
import io
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tfformer.cli.options import (
    AT_LEAST_1,
    TEXT_FILE,
    beam_size,
    examples,
    languages,
    length_penalty,
    ray,
)
from tfformer.cli.terminal import (
    CorpusProgress,
    Progress,
    check_new_file,
    counted,
    input_document,
    input_lines,
    load_tensorflow,
    output_file,
    typed_lines,
)
from tfformer.runtime.devices import device_line
from tfformer.runtime.progress_lines import Steps
from tfformer.storage.artifact_folders import exported_version, is_run, run_folder
from tfformer.storage.folders import local_path

if TYPE_CHECKING:
    from tfformer.corpora.parts import Counts, Part
    from tfformer.corpora.teachers import Teacher
    from tfformer.engines import Engine
    from tfformer.inference import Translation
    from tfformer.text import TextTranslator

NOT_INFLECTED = "the translations in the glossary are inserted as they are, without inflection"
LINES_ONLY = ("n_best", "scores", "confidence", "alignments", "rerank")  # options

Advance = Callable[[int], None]  # called with the number of lines done since the last call


class Options(NamedTuple):
    """The command's options and argument."""

    run: str
    input: str | None
    output: str | None
    workers: int | None
    ray: str | None
    format: str | None
    keep: str | None
    glossary: str | None
    beam_size: int | None
    length_penalty: float | None
    n_best: int
    scores: bool
    confidence: bool
    alignments: bool
    rerank: str | None
    languages: tuple[str | None, str | None]


@click.command(
    epilog=examples(
        "tfformer translate runs/mine --input news.en --output news.de --beam-size 4",
        'echo "The animal is tired." | tfformer translate runs/phrasebook',
        "tfformer translate models/mine --format html --input page.html --output page.de.html",
        "tfformer translate models/mine --input 'news-*.en.gz' --output translated --workers 2",
    )
)
@click.argument("run", metavar="RUN")
@click.option(
    "--input",
    metavar="F",
    help="Text file; with --workers or --ray, a file name pattern such as 'part-*.en.gz'. "
    "Default: standard input, or a prompt.",
)
@click.option(
    "--output",
    metavar="F",
    help="File to write, compressed if its name ends in .gz; with --workers or --ray a folder. "
    "Default: standard output.",
)
@click.option(
    "--workers",
    type=AT_LEAST_1,
    metavar="N",
    help="Translate the files of a corpus in N processes, with one thread each.",
)
@ray("Translate the files")
@click.option(
    "--format",
    type=click.Choice(["lines", "text", "html", "xml", "markdown", "srt"]),
    help="One sentence per line, or a whole text, which is split into sentences. Default: lines, "
    "and text at a prompt.",
)
@click.option(
    "--keep",
    type=TEXT_FILE,
    metavar="F",
    help="File of words to leave untranslated, one per line. For whole texts only.",
)
@click.option(
    "--glossary",
    type=TEXT_FILE,
    metavar="F",
    help="File of terms: the term, a tab and its translation, one per line.",
)
@beam_size
@length_penalty
@click.option(
    "--n-best",
    type=AT_LEAST_1,
    default=1,
    metavar="K",
    help="Print the K best translations of each sentence, always K lines per sentence.",
)
@click.option("--scores", is_flag=True, help="Print score, tab, translation.")
@click.option(
    "--confidence",
    is_flag=True,
    help="Append a tab and how sure the model is, from 0 to 1: the mean probability of a token.",
)
@click.option(
    "--alignments", is_flag=True, help="Append a tab and the word alignment, such as 0-0 1-2."
)
@click.option(
    "--rerank",
    type=click.Choice(["chrf"]),
    help="Order the translations in the beam by their expected similarity (chrF) to the correct "
    "translation (minimum Bayes risk).",
)
@languages()
def translate(**values: object) -> None:
    """Translate lines, a whole text, or the files of a corpus.

    RUN is a run directory or an export. An export for LiteRT or CTranslate2 needs no TensorFlow.
    """
    options = Options(**values)  # type: ignore[arg-type]  # click has checked them
    if options.workers or options.ray:
        _translate_corpus(options)
        return
    if exported_version(options.run):
        _refuse(
            ("length_penalty", "languages"),
            f"requires a run directory, and {options.run} is an export; leave it out, or pass the "
            "run",
        )
    else:
        run_folder(options.run)
    if options.input is not None:
        TEXT_FILE.convert(options.input, None, click.get_current_context())
    check_new_file(options.output)
    is_typed = options.input is None and sys.stdin.isatty()
    format = _checked_format(options, is_typed)
    if format == "lines" and options.glossary is None:
        _translate_lines(options, is_typed)
    else:
        _translate_text(options, format, is_typed)


def _checked_format(options: Options, is_typed: bool) -> str:
    """Return the format of the input: "lines", or "text" by default at an interactive prompt.

    ValueError: an option of lines is given for a whole text, or an option of texts for lines.
    """
    if options.glossary is not None:
        _refuse(LINES_ONLY, "cannot be used with --glossary; leave out one of them")
    is_text = options.keep or (is_typed and not any(map(_is_given, LINES_ONLY)))
    format = options.format or ("text" if is_text else "lines")
    if format != "lines":
        _refuse(LINES_ONLY, "needs one sentence per line; set --format lines")
    elif options.keep:
        raise ValueError("--keep needs a whole text; set --format text")
    return format


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _refuse(names: Sequence[str], reason: str) -> None:
    """Raise ValueError if one of these options is given."""
    for name in names:
        if _is_given(name):
            raise ValueError(f"--{name.replace('_', '-')} {reason}")


# --- Lines --------------------------------------------------------------------------------------


def _translate_lines(options: Options, is_typed: bool) -> None:
    with (
        _opened(options, is_typed) as engine,
        output_file(options.output) as output,
        Progress(output) as progress,
    ):
        _check_engine(options, engine)
        if is_typed:
            for line in typed_lines("Enter one sentence per line."):
                for lines in _translated_lines(engine, options, [line], progress.advance):
                    output.writelines(lines)
                output.flush()
        else:
            lines_read = input_lines(options.input)
            for lines in _translated_lines(engine, options, lines_read, progress.advance):
                output.writelines(lines)


def _translated_lines(
    engine: Engine, options: Options, sentences: Iterable[str], advance: Advance
) -> Iterator[list[str]]:
    """Yield the lines of output in chunks, always `options.n_best` lines per sentence."""
    from tfformer.inference.alignment import pharaoh

    count = options.n_best
    blank = [("", 0.0)] * count
    beam_size = _beam_size(options, engine)
    sentences, sources = itertools.tee(sentences)
    chunks = engine.stream(sentences, beam_size, advance)
    for n_best in _reranked(chunks) if options.rerank else chunks:
        chunk = list(itertools.islice(sources, len(n_best)))
        hypotheses = [pair for best in n_best for pair in [*best, *blank][:count]]
        texts = [text.replace("\n", " ").replace("\t", " ") for text, _ in hypotheses]
        columns = [texts]
        if options.scores:
            columns.insert(0, [f"{score:.4f}" for _, score in hypotheses])
        if options.confidence or options.alignments:
            repeated = [source for source in chunk for _ in range(count)]
            pairs = engine.aligned(repeated, texts)
            if options.confidence:
                columns.append([f"{pair.confidence:.3f}" for pair in pairs])
            if options.alignments:
                columns.append([pharaoh(pair.links()) for pair in pairs])
        yield ["\t".join(line) + "\n" for line in zip(*columns, strict=True)]


def _beam_size(options: Options, engine: Engine) -> int:
    return max(options.beam_size or engine.beam_size, options.n_best)


def _check_engine(options: Options, engine: Engine) -> None:
    """Raise ValueError, before the first sentence, if the engine cannot do what is asked."""
    if options.confidence or options.alignments:
        engine.aligned([], [])
    beam_size = _beam_size(options, engine)
    engine.check_beam_size(beam_size)
    if options.rerank and beam_size == 1:
        raise ValueError(
            "--rerank chrf compares several translations, and the beam size is 1; set --beam-size "
            "8, for example"
        )


def _reranked(chunks: Iterator[list[list[Translation]]]) -> Iterator[list[list[Translation]]]:
    """Yield the translations of each sentence in the order of their chrF; print its time."""
    from tfformer.inference.reranking import by_expected_chrf

    sentences, seconds = 0, 0.0
    for n_best in chunks:
        start = time.perf_counter()
        ordered = [by_expected_chrf(best) for best in n_best]
        seconds += time.perf_counter() - start
        sentences += len(n_best)
        yield ordered
    print(f"reranked {counted(sentences, 'sentence')} in {seconds:.2f} s", file=sys.stderr)


# --- Whole texts --------------------------------------------------------------------------------


def _translate_text(options: Options, format: str, is_typed: bool) -> None:
    with (
        _text_translator(options, is_typed) as texts,
        output_file(options.output) as output,
        Progress(output) as progress,
    ):
        if texts.glossary:
            print(NOT_INFLECTED, file=sys.stderr)
        if is_typed:
            for line in typed_lines("Enter one line of text at a time."):
                print(texts.translate(line, format), file=output, flush=True)
        else:
            with input_document(options.input, format) as (chunks, encoding):
                if encoding != "utf-8" and isinstance(output, io.TextIOWrapper):
                    output.reconfigure(encoding=encoding, errors="xmlcharrefreplace")
                for piece in texts.stream(chunks, format):
                    output.write(piece)
                    progress.advance(piece.count("\n"))


@contextmanager
def _text_translator(options: Options, is_typed: bool) -> Iterator[TextTranslator]:
    """Yield a translator of whole texts that uses the run or the export."""
    from tfformer.text import Glossary, TextTranslator

    keep = list(input_lines(options.keep)) if options.keep else []
    glossary = None
    if options.glossary:
        glossary = Glossary.read(input_lines(options.glossary), options.glossary)
    with _opened(options, is_typed) as engine:
        if is_run(options.run):
            from tfformer.engines.keras import KerasEngine

            assert isinstance(engine, KerasEngine)
            yield engine.translator.text_translator(
                options.beam_size, options.length_penalty, engine.nearest_targets, keep, glossary
            )
        else:
            source, target = engine.languages or ("en", None)
            yield TextTranslator(
                functools.partial(engine.translate, beam_size=options.beam_size),
                engine.nearest_targets if engine.can_align else None,
                count_tokens=engine.count_tokens if engine.tokenizers else None,
                max_tokens=engine.max_tokens,
                language=source or "en",
                target_language=target,
                keep=keep,
                placeholders=engine.placeholders,
                glossary=glossary,
                tags=engine.tags,
            )


def _opened(options: Options, is_typed: bool) -> Engine:
    """Open the run or the export; at a prompt, say so, and on a terminal, print the device."""
    with Steps(sys.stderr if is_typed else None)(f"loading {options.run}"):
        if is_run(options.run):
            load_tensorflow()
            from tfformer.engines.keras import KerasEngine
            from tfformer.run_directory import Run

            run = Run.open(options.run).with_languages(*options.languages)
            engine: Engine = KerasEngine(run, length_penalty=options.length_penalty)
        else:
            from tfformer.engines import find_artifact, open_engine

            find_artifact(options.run, options.beam_size)  # checks text and search
            engine = open_engine(options.run)
    if sys.stderr.isatty():
        print(f"translating on {device_line()}", file=sys.stderr)
    return engine


# --- A corpus -----------------------------------------------------------------------------------


def _translate_corpus(options: Options) -> None:
    """Translate the files of a corpus into a folder, except those that are already translated."""
    pattern, folder = _checked_files(options)
    from tfformer.engines import find_artifact

    if is_run(options.run):  # an export may need no TensorFlow
        load_tensorflow()
    from tfformer.corpora.parts import find_parts

    model = find_artifact(options.run, options.beam_size)
    parts = find_parts(pattern, folder)
    counts = translate_parts(model, parts, options.workers or 1, options.ray)
    print(json.dumps(counts._asdict()))


def _checked_files(options: Options) -> tuple[str, str]:
    """Return the pattern and the folder; raise ValueError for an option that corpora lack."""
    if options.input is None or options.output is None:
        raise ValueError("--workers and --ray translate files: pass --input PATTERN --output DIR")
    local_path(options.output)
    lacking = "cannot be used with --workers or --ray;"
    _refuse((*LINES_ONLY, "keep", "glossary", "format"), f"{lacking} leave it out")
    _refuse(
        ("length_penalty", "languages"),
        f"{lacking} export the run with it, and translate with the export",
    )
    return options.input, options.output


def translate_parts(
    teacher: Teacher, parts: Sequence[Part], workers: int, cluster: str | None, **settings: Any
) -> Counts:
    """Translate the parts that are not done yet, in processes or on a cluster.

    `settings` also determine the content of the output folder.
    """
    from tfformer.corpora.parts import job_folder

    files = counted(len(parts), "file")
    if workers > len(parts):
        raise ValueError(
            f"--workers {workers} is more than the {files} of the text; use fewer, or split the "
            "files"
        )
    settings |= {"model": teacher.digest, "beam_size": teacher.beam_size}
    with job_folder(parts[0].output.parent, settings):
        remaining = [part for part in parts if not part.is_done]
        print(f"{files}, of which {len(parts) - len(remaining):,} are done", file=sys.stderr)
        with CorpusProgress([part.source for part in remaining]) as progress:
            if cluster:
                from tfformer.corpora import on_ray

                return on_ray.translate_parts(cluster, teacher, remaining, workers, progress.show)
            from tfformer.corpora import workers as processes

            return processes.translate_parts(teacher, remaining, workers, progress.show)
