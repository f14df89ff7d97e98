"""The command `tfformer`: its verbs, and a one-line message for every mistake."""

import os
import reprlib
import sys
import warnings
from collections.abc import Sequence

import click

from tfformer import __version__
from tfformer.cli import doctor, evaluate, explain, generate, import_model, serve, train, translate
from tfformer.cli.distill import distill
from tfformer.cli.export import export
from tfformer.cli.options import examples
from tfformer.cli.shortlist import shortlist
from tfformer.cli.terminal import open_closed_streams
from tfformer.runtime.extras import install_line

END_CHARACTERS = 1_000  # characters shown from each end of a longer message
WIDTH = 100  # columns of the help pages


class Program(click.Group):
    """A group that lists its verbs in the order of a typical workflow."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=Program,
    commands=[
        train.recipes,
        train.corpus,
        train.train,
        distill,
        import_model.import_model,
        translate.translate,
        generate.generate,
        evaluate.evaluate,
        evaluate.compare,
        evaluate.score,
        explain.attention,
        explain.inspect,
        shortlist,
        export,
        serve.serve,
        doctor.doctor,
    ],
    no_args_is_help=False,
    subcommand_metavar="VERB ...",
    epilog=examples(
        "tfformer train phrasebook --run-dir runs/phrasebook",
        'echo "The animal is tired." | tfformer translate runs/phrasebook',
        "tfformer export runs/phrasebook --format saved_model --output models/phrasebook",
        "tfformer serve runs/phrasebook --port 8501",
    ),
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": WIDTH,
        "show_default": True,
    },
)
@click.version_option(__version__, message="tfformer %(version)s")
def program() -> None:
    """Train a Transformer on text; translate, continue and score text with it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    The code is 0 on success, 2 after a one-line message about a mistake that the caller can
    correct, 130 after Ctrl-C, and 141 if the reader of standard output has closed it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    open_closed_streams()
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        words = sys.argv[1:] if arguments is None else arguments
        _check_words(words)
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        with program.make_context("tfformer", list(words)) as context:
            program.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:  # after --help and --version
        return end.exit_code
    except click.UsageError as error:
        verb = error.ctx.command_path if error.ctx else "tfformer"
        message = " ".join(error.format_message().split()).removesuffix(".")
        print(f"tfformer: {message}; see {verb} --help", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ModuleNotFoundError as error:
        line = install_line(error)
        if line is None:
            raise
        print(f"tfformer: {line}", file=sys.stderr)
        return 2
    except Exception as error:
        tensorflow = sys.modules.get("tensorflow")  # its errors are such as for a full disk
        errors = (tensorflow.errors.OpError,) if tensorflow else ()
        if not isinstance(error, (ValueError, OSError, MemoryError, *errors)):
            raise
        print(f"tfformer: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tfformer: interrupted", file=sys.stderr)
        return 130
    return 0


def _one_line(error: Exception) -> str:
    """Return an error's message, shortened to its two ends if it is long."""
    message = " ".join(str(error).split()) or type(error).__name__
    if len(message) <= 2 * END_CHARACTERS:
        return message
    return f"{message[:END_CHARACTERS]} ... {message[-END_CHARACTERS:]}"


def _check_words(words: Sequence[str]) -> None:
    """Raise ValueError for a word that is not UTF-8, or contains a NUL character.

    TensorFlow and HDF5 cannot open a file with such a name, and a run cannot record it.
    """
    for word in words:
        shown = reprlib.repr(word)
        if "\0" in word:
            raise ValueError(f"the argument {shown} contains a NUL character; leave it out")
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"the argument {shown} is not UTF-8; rename the file, or correct the terminal's "
                "encoding"
            ) from None
