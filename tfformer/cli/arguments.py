"""The verbs of the command line: their options, limits and examples."""

import argparse
import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from tfformer.cli.checks import EXPORT_OPTIONS
from tfformer.version import __version__

AddVerb = Callable[[str, str], argparse.ArgumentParser]  # name, description -> parser of the verb

PICTURES = (".png", ".svg", ".html")

EXAMPLES = """\
  tfformer recipes
  tfformer corpus phrasebook --output corpus
  tfformer train phrasebook --run-dir runs/phrasebook
  tfformer train recipe.yaml --run-dir runs/mine --set data.folder=corpus training.epochs=30
  tfformer train recipe.yaml --run-dir runs/mine --set data.folder=corpus training.epochs=30 --resume
  tfformer import opus-mt-en-de --run-dir runs/opus
  tfformer translate runs/mine --input news.en --output news.de --beam-size 4
  echo "The animal is tired." | tfformer translate runs/phrasebook
  tfformer translate runs/mine --format html --input page.html --output page.de.html
  tfformer evaluate runs/mine --source test.en --reference test.de
  tfformer score runs/mine --source test.en --target test.de --per-token
  tfformer attention runs/phrasebook "The animal is tired." --kind cross --word Tier --output tier.png
  tfformer inspect runs/mine --output pictures
  tfformer train phrasebook-lm --run-dir runs/lm
  tfformer generate runs/lm --prefix "The animal" --count 5 --seed 1
  tfformer export runs/mine --format saved_model --output models/mine
  tfformer export runs/mine --format litert --quantize int8 --output models/mine-litert
  tfformer export runs/mine --format web --output site
  tfformer serve runs/mine --port 8501
  tfformer serve en-de=runs/mine de-en=models/back
""".splitlines()  # noqa: E501  a command is one line

SCORE_FORMAT = """

a line has these columns, with tabs between them:
  log-probability of the translation given its source, in nats
  number of tokens of the translation, with the end token; 0 where the source is blank
  perplexity: e to the mean negative log-probability of a token; nan where there are no tokens
  with --per-token: the tokens, with spaces between them
  with --per-token: their log-probabilities, with spaces between them
The last line is JSON about the whole text; it goes to standard error where the lines go to
standard output.

example, to choose among translations that another run has written, four for each line of news.en:
  tfformer translate runs/one --input news.en --n-best 4 --output four.de
  sed 'p;p;p' news.en > four.en
  tfformer score runs/two --source four.en --target four.de | paste - four.de
"""


# --- The limits of the options ------------------------------------------------------------------


def _limited(
    kind: type[int] | type[float], is_allowed: Callable[[float], bool], rule: str
) -> Callable[[str], float]:
    """Return a parser of numbers for which `is_allowed` is true.

    Its error says that the number must be `rule`.
    """
    name = "a whole number" if kind is int else "a number"

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text} must be {name}") from None
        if not is_allowed(number):
            raise argparse.ArgumentTypeError(f"{text} must be {rule}")
        return number

    return parse


AT_LEAST_0 = _limited(int, lambda number: number >= 0, "at least 0")
AT_LEAST_1 = _limited(int, lambda number: number >= 1, "at least 1")
AT_LEAST_2 = _limited(int, lambda number: number >= 2, "at least 2")
PORT = _limited(int, lambda number: 0 <= number < 2**16, "a number from 0 to 65535")
FROM_0 = _limited(float, lambda number: 0 <= number < math.inf, "a number from 0 on")
ABOVE_0 = _limited(float, lambda number: 0 < number < math.inf, "above 0")
SHARE = _limited(float, lambda number: 0 < number <= 1, "above 0 and at most 1")


def _head(text: str) -> int | str:
    """Parse the number of a head, from 1, or "mean"."""
    if text == "mean":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 1, or mean")
    return int(text)


def _picture(text: str) -> str:
    """Parse a path with the suffix of a picture."""
    if Path(text).suffix not in PICTURES:
        known = ", ".join(PICTURES)
        raise argparse.ArgumentTypeError(f"{text} must end in one of {known}")
    return text


# --- The parser ---------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser that raises ValueError for a mistake, so that every error is one line."""

    def error(self, message: str) -> NoReturn:
        """Raise ValueError with argparse's message and the remedy."""
        raise ValueError(f"{message.removeprefix('argument ')}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line.

    Its result has the verb's name in `verb`.

    Example:
        >>> options = parser().parse_args(["translate", "runs/mine", "--beam-size", "4"])
        >>> options.verb, options.run, options.beam_size
        ('translate', 'runs/mine', 4)
    """
    formatter = argparse.RawDescriptionHelpFormatter
    everything = Parser(
        prog="tfformer",
        description="Train a Transformer on text; translate, continue and score text with it.",
        epilog=examples(EXAMPLES),
        formatter_class=functools.partial(formatter, max_help_position=28),
    )
    everything.add_argument("--version", action="version", version=f"tfformer {__version__}")
    verbs = everything.add_subparsers(title="verbs", required=True, metavar="VERB")

    def add_verb(name: str, description: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(
            name,
            help=description,
            description=f"{description[0].upper()}{description[1:]}.",
            epilog=examples(line for line in EXAMPLES if f"tfformer {name}" in line),
            formatter_class=formatter,
        )
        verb.set_defaults(verb=name)
        return verb

    for add in (
        _add_recipes,
        _add_train,
        _add_import,
        _add_corpus,
        _add_translate,
        _add_generate,
        _add_evaluate,
        _add_score,
        _add_attention,
        _add_inspect,
        _add_export,
        _add_serve,
    ):
        add(add_verb)
    return everything


def examples(lines: Iterable[str]) -> str:
    """Join example commands to the text that ends a verb's help."""
    return "\n".join(["examples:", *lines])


# --- The verbs ----------------------------------------------------------------------------------


def _add_recipes(add_verb: AddVerb) -> None:
    add_verb("recipes", "list the built-in recipes")


def _add_train(add_verb: AddVerb) -> None:
    train = add_verb("train", "train on parallel text, or on text alone, as a recipe says")
    add = train.add_argument
    add("recipe", metavar="RECIPE", help="a YAML file, or the name of a built-in recipe")
    add(
        "--run-dir",
        required=True,
        metavar="DIR",
        help="the new run; must be new or empty; a folder, or an address such as s3://bucket/run",
    )
    add(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change the recipe, for example training.epochs=30",
    )
    add("--resume", action="store_true", help="go on with the interrupted run in DIR")
    add("--init-from", metavar="RUN", help="start from the vocabulary and weights of this run")
    add(
        "--ray",
        nargs="?",
        const="auto",
        metavar="HOST:PORT",
        help="train on a Ray cluster, that of this machine or of RAY_ADDRESS if no address "
        "follows; local begins one on this machine",
    )
    add("--workers", type=AT_LEAST_1, metavar="N", help="with --ray: their number, by default 1")


def _add_import(add_verb: AddVerb) -> None:
    bring = add_verb("import", "turn another toolkit's model (Marian, M2M100, NLLB) into a run")
    add = bring.add_argument
    add("model", metavar="PATH", help="the folder or zip of a Hugging Face or Marian checkpoint")
    add("--run-dir", required=True, metavar="DIR", help="the new run; must be new or empty")
    add(
        "--positions",
        choices=["auto", "marian", "hf"],
        default="auto",
        help="positions and search: marian-decoder's, Hugging Face's, or (auto) the format's own",
    )
    add("--untied", action="store_true", help="keep tied tensors apart where they differ")
    add(
        "--normalize",
        choices=["none", "opus-mt"],
        default="none",
        help="rewrite punctuation and blanks first, as OPUS-MT prepares a text",
    )
    _add_languages(bring, "the run's own from then on")


def _add_corpus(add_verb: AddVerb) -> None:
    corpus = add_verb("corpus", "write the built-in parallel corpus as text files")
    corpus.add_argument("name", choices=["phrasebook"], metavar="phrasebook")
    _add_output(corpus, "DIR", "the folder for {train,valid,test}.{en,de}", required=True)


def _add_translate(add_verb: AddVerb) -> None:
    translate = add_verb("translate", "translate one sentence a line, or a whole text")
    add = translate.add_argument
    add(
        "run", metavar="RUN", help="a run directory; with --workers, --ray, --engine also an export"
    )
    add(
        "--input",
        metavar="F",
        help="a text file; standard input, or a prompt, if left out; with --workers, --ray or "
        "--engine a pattern of files, such as 'part-*.en.gz'",
    )
    _add_output(
        translate,
        "F",
        "the file to write, standard output if left out; with --workers, --ray, --engine a folder",
    )
    add(
        "--workers",
        type=AT_LEAST_1,
        metavar="N",
        help="translate the files of a corpus, N at a time, each by one processor",
    )
    add(
        "--ray",
        nargs="?",
        const="auto",
        metavar="HOST:PORT",
        help="let a Ray cluster do so, that of this machine or of RAY_ADDRESS if no address "
        "follows; local begins one on this machine",
    )
    add(
        "--engine",
        choices=["keras", "saved_model", "litert", "ctranslate2"],
        help="translate the files of a corpus by this engine, for which a run is exported once, to "
        "the folder of the translations; Keras for a run if left out",
    )
    add(
        "--format",
        choices=["lines", "text", "html", "xml", "markdown", "srt"],
        help="lines: one sentence a line; the others: a whole text, which is divided into "
        "sentences; by default lines, and text at a prompt",
    )
    add("--keep", metavar="F", help="a file of words, one a line, that stay as they are in texts")
    _add_search(translate)
    add(
        "--n-best", type=AT_LEAST_1, default=1, metavar="K", help="print the K best, always K lines"
    )
    add("--scores", action="store_true", help="print score, tab, translation")
    add("--alignments", action="store_true", help="add a tab and the aligned words, as 0-0 1-2")
    _add_languages(translate)


def _add_generate(add_verb: AddVerb) -> None:
    generate = add_verb("generate", "continue text with a language model; one text a line")
    add = generate.add_argument
    add("run", metavar="RUN", help="the run directory of a language model")
    add("--prefix", default="", metavar="TEXT", help="the beginning of each text; none if left out")
    add(
        "--count", type=AT_LEAST_1, default=1, metavar="N", help="the number of texts, by default 1"
    )
    add("--seed", type=int, default=1, metavar="S", help="the same seed gives the same texts")
    add(
        "--temperature",
        type=ABOVE_0,
        default=1.0,
        metavar="T",
        help="below 1 for likelier texts, above 1 for more varied ones",
    )
    add(
        "--top-k",
        type=AT_LEAST_0,
        default=0,
        metavar="K",
        help="draw each token from the K likeliest; 0, the default, from all",
    )
    add(
        "--top-p",
        type=SHARE,
        default=1.0,
        metavar="P",
        help="draw each token from the fewest likeliest whose probabilities sum to P",
    )
    add("--greedy", action="store_true", help="take the likeliest token each time: one text")
    add("--scores", action="store_true", help="print log-probability after the prefix, tab, text")
    _add_output(generate, "F", "the file to write; standard output if left out")


def _add_evaluate(add_verb: AddVerb) -> None:
    evaluate = add_verb(
        "evaluate", "measure a run on a text: BLEU and chrF, or bits per byte; then a line of JSON"
    )
    add = evaluate.add_argument
    add("run", metavar="RUN", help="a run directory")
    add(
        "--source",
        required=True,
        metavar="F",
        help="the text to translate, or the text that a language model is to predict",
    )
    add("--reference", metavar="F", help="its correct translation, line by line")
    _add_search(evaluate)
    add("--json", action="store_true", help="print the JSON line alone")
    evaluate.set_defaults(n_best=1)
    _add_languages(evaluate)


def _add_score(add_verb: AddVerb) -> None:
    score = add_verb(
        "score", "print the log-probability of given translations: one line a pair, then JSON"
    )
    score.epilog = f"{score.epilog}{SCORE_FORMAT}"
    add = score.add_argument
    add("run", metavar="RUN", help="a run directory")
    add("--source", required=True, metavar="F", help="a text")
    add("--target", required=True, metavar="F", help="its translation, line by line")
    add("--per-token", action="store_true", help="add each token and its log-probability")
    _add_languages(score)
    _add_output(score, "F", "the file for the lines; standard output if left out")


def _add_attention(add_verb: AddVerb) -> None:
    attention = add_verb("attention", "draw where the heads look while they translate a sentence")
    add = attention.add_argument
    add("run", metavar="RUN", help="a run directory")
    add("sentence", metavar="SENTENCE", help="the source sentence")
    add("--target", metavar="SENTENCE", help="its translation; the model's own if left out")
    add(
        "--kind",
        choices=["encoder", "decoder", "cross"],
        default="encoder",
        help="source to source (the default), translation to translation, translation to source",
    )
    add("--word", metavar="WORD", help="draw where this word looks; heat maps if left out")
    add(
        "--layer",
        type=AT_LEAST_1,
        metavar="L",
        help="a number from 1; if left out all layers, or with --word the last",
    )
    add("--head", type=_head, metavar="H", help="a number from 1, or mean; all heads if left out")
    _add_output(
        attention, "F", "a .png, .svg or .html file (a page to explore)", True, type=_picture
    )


def _add_inspect(add_verb: AddVerb) -> None:
    inspect = add_verb(
        "inspect",
        "print the recipe, layers and files of a run; draw its training, positions and masks",
    )
    inspect.add_argument("run", metavar="RUN", help="a run directory; it may still be training")
    _add_output(inspect, "DIR", "the folder for the pictures; none are drawn if left out")


def _add_export(add_verb: AddVerb) -> None:
    export = add_verb(
        "export",
        "write a finished run for other software to run, and check that it translates the same",
    )
    add = export.add_argument
    add("run", metavar="RUN", help="a run directory")
    add(
        "--format",
        required=True,
        choices=list(EXPORT_OPTIONS),
        help="litert has a beam search only where --beam-size is given, web never",
    )
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="the folder of the versions; this one gets the next free number",
    )
    add(
        "--max-length",
        type=AT_LEAST_2,
        metavar="N",
        help="tokens of the longest sentence; the run's own if left out",
    )
    _add_search(export)
    _add_weights(export)
    add(
        "--no-text",
        dest="with_text",
        action="store_const",
        const=False,
        help="token ids only: nothing of TF Text",
    )
    add(
        "--text",
        dest="with_text",
        action="store_const",
        const=True,
        help="litert: a signature over text too",
    )
    shapes = export.add_mutually_exclusive_group()
    shapes.add_argument(
        "--static",
        action="store_const",
        const=True,
        help="litert: one sentence, fixed shapes (for CompiledModel)",
    )
    shapes.add_argument(
        "--dynamic",
        dest="static",
        action="store_const",
        const=False,
        help="litert: any batch and length, the default",
    )
    add(
        "--samples", metavar="F", help="sentences to check with; made of the vocabulary if left out"
    )
    _add_languages(export)


def _add_weights(export: argparse.ArgumentParser) -> None:
    """Add the options of the type of an export's weights."""
    add = export.add_argument
    add(
        "--dtype",
        choices=["float32", "bfloat16"],
        help="the type of the weights; float32 if left out",
    )
    add(
        "--for-other-processors",
        action="store_const",
        const=True,
        help="write bfloat16 even if this processor multiplies it more slowly than float32",
    )
    add(
        "--quantize",
        choices=["none", "int8", "float16"],
        help="litert, web: the weights; if left out none, and float16 for web",
    )


def _add_serve(add_verb: AddVerb) -> None:
    serve = add_verb(
        "serve",
        "serve runs or exports: a page, and the APIs of TensorFlow Serving, LibreTranslate and "
        "DeepL",
    )
    add = serve.add_argument
    add(
        "models",
        nargs="+",
        metavar="[NAME=]RUN_OR_EXPORT",
        help="a run directory, or a SavedModel or LiteRT file of export; name each of several, as "
        "en-de=runs/a de-en=models/b",
    )
    add(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="the address to listen on; 127.0.0.1, this machine alone, if left out",
    )
    add("--port", type=PORT, default=8501, metavar="P", help="REST and the page; 8501 if left out")
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which browsers may call the server, such as a proxy's; may be repeated",
    )
    add(
        "--api-keys",
        metavar="F",
        help="a file of keys, one a line; a translation needs one",
    )


def _add_output(
    verb: argparse.ArgumentParser,
    metavar: str,
    description: str,
    required: bool = False,
    type: Callable[[str], str] = str,
) -> None:
    verb.add_argument("--output", required=required, type=type, metavar=metavar, help=description)
    verb.add_argument("--overwrite", action="store_true", help="replace an output that exists")


def _add_languages(verb: argparse.ArgumentParser, role: str = "the run's own if left out") -> None:
    """Add the pair of languages of a multilingual model."""
    for side, names in (("source", "en or eng_Latn"), ("target", "de or deu_Latn")):
        verb.add_argument(
            f"--{side}-language", metavar="L", help=f"of M2M100 and NLLB, such as {names}; {role}"
        )


def _add_search(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--beam-size", type=AT_LEAST_1, metavar="N", help="1 is greedy; the run's own if left out"
    )
    verb.add_argument(
        "--length-penalty",
        type=FROM_0,
        metavar="A",
        help="alpha of Wu et al. 2016; 0 is none; the run's own if left out",
    )
