"""The command line: one function a verb, which calls and prints. Heavy imports stay inside the verb."""

import argparse
import contextlib
import inspect
import itertools
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tfformer.cli.arguments import parser

CHUNK = 1_000  # sentences read, translated and written at a time, so that input may be larger than memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb. Returns 0, or 2 after one line about what the caller can put right."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        sys.stdout.reconfigure(encoding="utf-8")
        VERBS[options.verb](options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, MemoryError, *_tensorflow_errors()) as error:
        print(f"tfformer: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tfformer: interrupted", file=sys.stderr)
        return 130
    return 0


def _tensorflow_errors() -> tuple[type[Exception], ...]:
    """TensorFlow's own errors, such as one about memory or a full disk, if it has been imported at all."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if tensorflow else ()


def import_tensorflow() -> None:
    """Import TensorFlow without the lines that its C++ side prints before its log level counts."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        import tensorflow as tf

        tf.config.list_physical_devices()
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _recipes(options: argparse.Namespace) -> None:
    from tfformer.config import builtin_recipes

    for name, path in builtin_recipes().items():
        print(f"{name:<20}{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")


def _train(options: argparse.Namespace) -> None:
    from tfformer.config import find_recipe, read_recipe

    config = read_recipe(find_recipe(options.recipe), options.set)
    import_tensorflow()
    from tfformer.training.train import train

    result = train(config, options.run_dir, options.resume, options.init_from)
    print(json.dumps(result))


def _translate(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.inference.translator import Translator

    if options.n_best < 1:
        raise ValueError(f"--n-best {options.n_best} must be at least 1")
    translator = Translator.load(options.run)
    n_best = _n_best(translator, options)

    def lines(sources: list[str]) -> list[str]:
        """The lines of a chunk: the same number for each sentence, whatever the search finds."""
        no_more = [("", 0.0)] * options.n_best
        found = [
            translation
            for best in n_best(sources)
            for translation in [*best, *no_more][: options.n_best]
        ]
        columns = [[text for text, _ in found]]
        if options.scores:
            columns.insert(0, [f"{score:.4f}" for _, score in found])
        if options.alignments:
            repeated = [source for source in sources for _ in range(options.n_best)]
            columns.append(_alignments(translator, repeated, columns[-1]))
        return ["\t".join(line) for line in zip(*columns, strict=True)]

    with _output(options.output) as output:
        for line in _in_chunks(_input_lines(options.input), lines):
            print(line, file=output)


def _alignments(translator, sources: list[str], translations: list[str]) -> list[str]:
    from tfformer.explain.alignment import alignments, pharaoh
    from tfformer.inference.translator import CutSentences

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutSentences)  # the translator has counted them
        return [pharaoh(one) for one in alignments(translator, sources, translations)]


def _generate(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.inference.generator import Generator

    if options.count < 1:
        raise ValueError(f"--count {options.count} must be at least 1")
    if not 0 <= options.seed < 2**31 - options.count:
        raise ValueError(f"--seed {options.seed} must be from 0 to {2**31 - options.count - 1}")
    with _output(options.output) as output:
        generator = Generator.load(options.run)
        if options.greedy:
            found = generator.complete([options.prefix])
        else:
            settings = (options.seed, options.temperature, options.top_k, options.top_p)
            found = generator.sample([options.prefix] * options.count, *settings)
        for text, score in found:
            print(f"{score:.4f}\t{text}" if options.scores else text, file=output)


def _corpus(options: argparse.Namespace) -> None:
    from tfformer import phrasebook

    phrasebook.write(Path(options.output))


def _evaluate(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.run_directory import Run

    translates = Run.open(options.run).config.model.architecture != "decoder"
    if translates != (options.reference is not None):
        raise ValueError(
            f"{options.run} {'needs a' if translates else 'is a language model and takes no'} --reference"
        )
    line, result = (_evaluate_translation if translates else _evaluate_language_model)(options)
    if not options.json:
        print(line)
    print(json.dumps(result))


def _evaluate_translation(options: argparse.Namespace) -> tuple[str, dict]:
    from tfformer.data.sources import read_pairs
    from tfformer.inference.evaluation import scores
    from tfformer.inference.translator import Translator

    sources, references = map(
        list, zip(*read_pairs([options.source, options.reference]), strict=True)
    )
    translator = Translator.load(options.run)
    start = time.monotonic()
    result = scores(
        [best.text for best, *_ in _in_chunks(sources, _n_best(translator, options))], references
    )
    line = f"BLEU {result['bleu']:.2f}, chrF {result['chrf']:.2f} on {len(sources)} sentences"
    return line, result | {"sentences": len(sources), "seconds": round(time.monotonic() - start, 2)}


def _evaluate_language_model(options: argparse.Namespace) -> tuple[str, dict]:
    from tfformer.data.sources import read_sentences
    from tfformer.inference.generator import Generator

    sentences = [sentence for (sentence,) in read_sentences(options.source)]
    bits = Generator.load(options.run).bits_per_byte(sentences)
    line = f"{bits:.4f} bits per byte on {len(sentences)} sentences"
    return line, {"bits_per_byte": bits, "sentences": len(sentences)}


def _score(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.data.sources import read_pairs
    from tfformer.inference.translator import Translator

    translator, pairs, tokens, log_prob = Translator.load(options.run), 0, 0, 0.0
    with _output(options.output) as output:
        texts = read_pairs([options.source, options.target])
        for found in _in_chunks(
            texts, lambda chunk: translator.score(*zip(*chunk, strict=True)), sides=2
        ):
            columns = [f"{found.log_prob:.4f}", len(found.tokens), f"{found.perplexity:.4f}"]
            if options.per_token:
                columns += [
                    " ".join(found.tokens),
                    " ".join(f"{token:.4f}" for token in found.log_probs),
                ]
            print(*columns, sep="\t", file=output)
            pairs, tokens, log_prob = (
                pairs + 1,
                tokens + len(found.tokens),
                log_prob + found.log_prob,
            )
    perplexity = math.exp(-log_prob / tokens) if tokens else None
    summary = {
        "pairs": pairs,
        "tokens": tokens,
        "log_prob": round(log_prob, 4),
        "perplexity": perplexity,
    }
    print(json.dumps(summary), file=sys.stdout if options.output else sys.stderr)


def _attention(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.explain.attention import attention
    from tfformer.explain.attention_pictures import draw
    from tfformer.inference.translator import Translator

    _check_new(options.output)
    layer, head = (
        int(text) if text and text.isdecimal() else text for text in (options.layer, options.head)
    )
    found = attention(Translator.load(options.run), options.sentence, options.target)
    draw(found, options.output, options.kind, options.word, layer, head)


def _inspect(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.explain.inspection import describe
    from tfformer.run_directory import Run

    run = Run.open(options.run)
    print(describe(run))
    if options.output:
        from tfformer.explain import run_pictures

        for path in run_pictures.draw(run, options.output):
            print(path)


def _export(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.data.sources import read_lines
    from tfformer.export import formats as export
    from tfformer.export.manifest import MANIFEST

    names = (
        "max_length",
        "beam_size",
        "length_penalty",
        "dtype",
        "with_text",
        "quantize",
        "static",
    )
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.samples:
        given["samples"] = list(read_lines(options.samples))
    write = getattr(export, options.format)
    if unknown := given.keys() - inspect.signature(write).parameters.keys():
        raise ValueError(
            f"--format {options.format} has no choice of {', '.join(sorted(unknown))}; leave it out"
        )
    version = write(options.run, options.output, **given)
    (manifest,) = (
        json.loads(path.read_text(encoding="utf-8")) for path in version.rglob(MANIFEST)
    )
    for name, measured in manifest["parity"].items():
        print(
            f"{name}: {measured['identical']} of {measured['sentences']} samples come out as the run's own"
        )
    if bleu := manifest.get("bleu"):
        print(
            f"BLEU on {bleu['sentences']} validation sentences: {bleu['run']:.2f}, exported {bleu['exported']:.2f}"
        )
    print(version)


def _serve(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tfformer.serving.server import serve

    ports = (options.port, options.grpc_port)
    serve(options.model, options.host, *ports, options.name, options.allow_host)


def _n_best(translator, options: argparse.Namespace) -> Callable[[list[str]], list[list]]:
    """The translator's n-best lists with the search that the options ask for."""
    beam_size = translator.decoding.beam_size if options.beam_size is None else options.beam_size
    beam_size = max(beam_size, options.n_best) if options.n_best > 1 else beam_size
    return lambda sentences: translator.n_best(sentences, beam_size, options.length_penalty)


def _in_chunks(items: Iterable, work: Callable[[list], list], sides: int = 1) -> Iterator:
    """What `work` makes of items with `sides` sentences each, a chunk at a time; tells a terminal how many are done,
    and at the end how many sentences were cut."""
    from tfformer.inference.translator import CutSentences

    items, done, cut = iter(items), 0, []
    while chunk := list(itertools.islice(items, CHUNK)):
        with warnings.catch_warnings(record=True) as caught:
            found = work(chunk)
        done += len(chunk)
        cut += [warning.message for warning in caught if isinstance(warning.message, CutSentences)]
        if sys.stderr.isatty() and not sys.stdout.isatty():
            print(f"{done:,} lines done", file=sys.stderr)
        yield from found
    if cut:
        warnings.warn(
            CutSentences(sum(one.cut for one in cut), sides * done, cut[0].most), stacklevel=1
        )


def _input_lines(path: str | None) -> Iterator[str]:
    from tfformer.data.sources import lines, read_lines

    return read_lines(path) if path else lines(sys.stdin.buffer, "standard input")


@contextlib.contextmanager
def _output(path: str | None):
    """Standard output, or a new file that appears whole when everything is written."""
    if path is None:
        yield sys.stdout
        return
    from tfformer.files import whole_file

    _check_new(path)
    with whole_file(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield file


def _check_new(path: str) -> None:
    if Path(path).exists():
        raise FileExistsError(f"{path} exists already; choose another --output")


VERBS = {
    "recipes": _recipes,
    "train": _train,
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
