"""What may be typed: the verbs, their options, examples. Knows nothing of what they do."""

import argparse
from collections.abc import Callable, Iterable

AddVerb = Callable[
    [str, str], argparse.ArgumentParser
]  # name, description -> the verb, for its options

EXAMPLES = """\
  tfformer recipes
  tfformer corpus phrasebook --output corpus
  tfformer train phrasebook --run-dir runs/phrasebook
  tfformer train recipe.yaml --run-dir runs/mine --set data.folder=corpus training.epochs=30
  tfformer train recipe.yaml --run-dir runs/mine --set data.folder=corpus training.epochs=30 --resume
  tfformer translate runs/mine --input news.en --output news.de --beam-size 4
  echo "The animal is tired." | tfformer translate runs/phrasebook
  tfformer evaluate runs/mine --source test.en --reference test.de
  tfformer score runs/mine --source test.en --target test.de --per-token
  tfformer attention runs/phrasebook "The animal is tired." --kind cross --word Tier --output tier.png
  tfformer inspect runs/mine --output pictures
  tfformer train phrasebook-lm --run-dir runs/lm
  tfformer generate runs/lm --prefix "The animal" --count 5 --seed 1
  tfformer export runs/mine --format saved_model --output models/mine
  tfformer export runs/mine --format tflite --quantize int8 --output models/mine-litert
  tfformer export runs/mine --format web --output site
  tfformer serve runs/mine --port 8501
""".splitlines()

SCORE_FORMAT = """

a line has these columns, with tabs between them:
  log-probability of the translation given its source, in nats
  number of tokens of the translation, with the end token; 0 where the source is blank
  perplexity: e to the mean negative log-probability of a token; nan where there are no tokens
  with --per-token: the tokens, with spaces between them
  with --per-token: their log-probabilities, with spaces between them
The last line, about the whole text, is JSON; it goes to standard error where the lines go to standard output.

example, to choose among translations that another run has written, four for each line of news.en:
  tfformer translate runs/one --input news.en --n-best 4 --output four.de
  sed 'p;p;p' news.en > four.en
  tfformer score runs/two --source four.en --target four.de | paste - four.de
"""


def examples(lines: Iterable[str]) -> str:
    return "\n".join(["examples:", *lines])


def parser() -> argparse.ArgumentParser:
    """Every verb with its options; what it returns says its verb by name."""
    everything = argparse.ArgumentParser(
        prog="tfformer",
        description="Train a Transformer on text, translate or continue text with it, and score it.",
        epilog=examples(EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = everything.add_subparsers(title="verbs", required=True, metavar="VERB")

    def verb(name: str, description: str) -> argparse.ArgumentParser:
        shown = examples(line for line in EXAMPLES if f"tfformer {name}" in line)
        raw = argparse.RawDescriptionHelpFormatter
        added = verbs.add_parser(
            name, help=description, description=description, epilog=shown, formatter_class=raw
        )
        added.set_defaults(verb=name)
        return added

    for add in (_add_training, _add_writing, _add_scoring, _add_looking, _add_shipping):
        add(verb)
    return everything


def _add_training(verb: AddVerb) -> None:
    """What makes a run."""
    verb("recipes", "list the built-in recipes")

    train = verb("train", "train on parallel text, or on text alone, as a recipe says")
    train.add_argument(
        "recipe", metavar="RECIPE", help="a YAML file or the name of a built-in recipe"
    )
    train.add_argument(
        "--run-dir", required=True, metavar="DIR", help="where the run goes; must be new or empty"
    )
    train.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change the recipe",
    )
    train.add_argument(
        "--resume", action="store_true", help="go on with the interrupted run in DIR"
    )
    train.add_argument(
        "--init-from", metavar="RUN", help="start from this run's vocabulary and weights"
    )

    corpus = verb("corpus", "write the built-in parallel corpus as text files")
    corpus.add_argument("name", choices=["phrasebook"])
    corpus.add_argument(
        "--output", required=True, metavar="DIR", help="gets {train,valid,test}.{en,de}"
    )


def _add_writing(verb: AddVerb) -> None:
    """What writes text."""
    translate = verb("translate", "translate one sentence a line")
    translate.add_argument("run", metavar="RUN", help="a run directory")
    translate.add_argument("--input", metavar="F", help="a text file; standard input if left out")
    translate.add_argument("--output", metavar="F", help="a new file; standard output if left out")
    _add_search(translate)
    translate.add_argument(
        "--n-best", type=int, default=1, metavar="K", help="print the K best, always K lines"
    )
    translate.add_argument("--scores", action="store_true", help="print score, tab, translation")
    translate.add_argument(
        "--alignments", action="store_true", help="add a tab and the words aligned, as 0-0 1-2"
    )

    generate = verb("generate", "continue text with a language model; one text a line")
    generate.add_argument("run", metavar="RUN", help="the run directory of a language model")
    generate.add_argument(
        "--prefix", default="", metavar="TEXT", help="how each text begins; anyhow if left out"
    )
    generate.add_argument(
        "--count", type=int, default=1, metavar="N", help="how many texts; 1 if left out"
    )
    generate.add_argument(
        "--seed", type=int, default=1, metavar="S", help="the same seed gives the same texts"
    )
    generate.add_argument(
        "--temperature", type=float, default=1.0, metavar="T", help="below 1 more likely texts"
    )
    generate.add_argument(
        "--top-k",
        type=int,
        default=0,
        metavar="K",
        help="the K likeliest tokens at each step alone",
    )
    generate.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="the fewest that reach the probability",
    )
    generate.add_argument(
        "--greedy", action="store_true", help="the likeliest token at each step: one text"
    )
    generate.add_argument(
        "--scores", action="store_true", help="print log-probability after the prefix, tab, text"
    )
    generate.add_argument("--output", metavar="F", help="a new file; standard output if left out")


def _add_scoring(verb: AddVerb) -> None:
    """What measures a run or a text."""
    evaluate = verb(
        "evaluate", "score a run on a text: BLEU and chrF, or bits per byte; the last line is JSON"
    )
    evaluate.add_argument("run", metavar="RUN", help="a run directory")
    evaluate.add_argument(
        "--source", required=True, metavar="F", help="the text to translate, or a language model's"
    )
    evaluate.add_argument("--reference", metavar="F", help="its correct translation, line by line")
    _add_search(evaluate)
    evaluate.add_argument("--json", action="store_true", help="print the JSON line alone")
    evaluate.set_defaults(n_best=1)

    score = verb(
        "score",
        "say how likely given translations are: one line a pair, and a last JSON line for the text",
    )
    score.epilog += SCORE_FORMAT
    score.add_argument("run", metavar="RUN", help="a run directory")
    score.add_argument("--source", required=True, metavar="F", help="a text")
    score.add_argument("--target", required=True, metavar="F", help="its translation, line by line")
    score.add_argument(
        "--per-token", action="store_true", help="add each token and its log-probability"
    )
    score.add_argument(
        "--output", metavar="F", help="a new file for the lines; standard output if left out"
    )


def _add_looking(verb: AddVerb) -> None:
    """What shows how a run works."""
    attention = verb("attention", "draw what the heads look at while they translate a sentence")
    attention.add_argument("run", metavar="RUN", help="a run directory")
    attention.add_argument("sentence", metavar="SENTENCE", help="the source sentence")
    attention.add_argument(
        "--target", metavar="SENTENCE", help="its translation; the model's own if left out"
    )
    attention.add_argument("--kind", choices=["encoder", "decoder", "cross"], default="encoder")
    attention.add_argument(
        "--word", metavar="WORD", help="the word whose attention is drawn; heat maps if left out"
    )
    attention.add_argument("--layer", metavar="L", help="counted from 1")
    attention.add_argument(
        "--head", metavar="H", help="counted from 1, or mean; all heads if left out"
    )
    attention.add_argument(
        "--output", required=True, metavar="F", help="a new .png, .svg or .html (a page to explore)"
    )

    looks = verb(
        "inspect",
        "say what a run is made of, and draw its training, learning rate, positions and masks",
    )
    looks.add_argument("run", metavar="RUN", help="a run directory; it may still be training")
    looks.add_argument(
        "--output", metavar="DIR", help="gets the pictures; none are drawn if left out"
    )


def _add_shipping(verb: AddVerb) -> None:
    """What brings a run to others."""
    export = verb(
        "export",
        "write a finished run for other software to run, and check that it translates the same",
    )
    export.add_argument("run", metavar="RUN", help="a run directory")
    export.add_argument(
        "--format",
        required=True,
        choices=["saved_model", "ctranslate2", "tflite", "web"],
        help="tflite has a beam search only where --beam-size is given, web never",
    )
    export.add_argument(
        "--output", required=True, metavar="DIR", help="gets a folder named by the next free number"
    )
    export.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="tokens in a sentence; the run's own if left out",
    )
    _add_search(export)
    export.add_argument(
        "--dtype", choices=["float32", "bfloat16"], help="of the weights; float32 if left out"
    )
    export.add_argument(
        "--no-text",
        dest="with_text",
        action="store_const",
        const=False,
        help="token ids only: nothing of TF Text",
    )
    export.add_argument(
        "--text",
        dest="with_text",
        action="store_const",
        const=True,
        help="tflite: a signature over text too",
    )
    export.add_argument(
        "--quantize",
        choices=["none", "int8", "float16"],
        help="tflite, web: the weights; if left out none, and float16 for web",
    )
    shapes = export.add_mutually_exclusive_group()
    shapes.add_argument(
        "--static",
        action="store_const",
        const=True,
        help="tflite: one sentence, fixed shapes (for CompiledModel)",
    )
    shapes.add_argument(
        "--dynamic",
        dest="static",
        action="store_const",
        const=False,
        help="tflite: any batch and length, the default",
    )
    export.add_argument(
        "--samples", metavar="F", help="sentences to check with; made of the vocabulary if left out"
    )

    serve = verb(
        "serve",
        "try a run or an export in the browser and over TensorFlow Serving's REST and gRPC API",
    )
    serve.add_argument(
        "model", metavar="RUN_OR_EXPORT", help="a run directory, or what export has written"
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="127.0.0.1, this machine alone, if left out",
    )
    serve.add_argument(
        "--port", type=int, default=8501, metavar="P", help="of REST and the page; 8501 if left out"
    )
    serve.add_argument("--grpc-port", type=int, metavar="P", help="of gRPC; none if left out")
    serve.add_argument(
        "--name", metavar="NAME", help="what clients call the model; the folder's name if left out"
    )
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which browsers may call the server, such as a proxy's; may be repeated",
    )


def _add_search(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--beam-size", type=int, metavar="N", help="1 is greedy; the run's own if left out"
    )
    verb.add_argument(
        "--length-penalty", type=float, metavar="A", help="alpha of Wu et al. 2016; 0 is none"
    )
