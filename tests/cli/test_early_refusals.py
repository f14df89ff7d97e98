"""Mistakes in paths and options are reported before TensorFlow is loaded."""

import subprocess
import sys

import click
import pytest

from tfformer import __version__
from tfformer.cli.main import main, program
from tfformer.export import NAMES, options_of
from tfformer.storage.artifact_folders import write_manifest

HEAVY = {"tensorflow", "keras"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run that consists of names only, a text, and an earlier output."""
    folder = tmp_path_factory.mktemp("checks")
    (folder / "run").mkdir()
    (folder / "run" / "config.json").write_text("{}")
    (folder / "text").write_text("Hello.\n")
    (folder / "empty").touch()
    (folder / "export" / "1").mkdir(parents=True)
    (folder / "export" / "1" / "manifest.json").write_text("{}")
    (folder / "generator").mkdir()
    write_manifest(folder / "generator", {"format": "saved_model", "decoding": {}})
    (folder / "ctranslate2").mkdir()
    for name in ("config.json", "manifest.json"):
        (folder / "ctranslate2" / name).write_text("{}")
    (folder / "old.svg").write_text("mine")
    return folder


RUN = "is not a run directory: it has no config.json; pass the --run-dir of a training run"
FILE = "File 'nowhere' does not exist; see tfformer"
OUTPUT = "exists already; choose another --output, or delete it"
FOLDER = "Invalid value for '--output': text is a file, not a folder; choose another folder"
RUN_FOLDER = "Invalid value for '--run-dir': text is a file, not a folder; choose another folder"
TEXT = "there is no such file; correct the path or fetch the data first"

STUDENT = "--text text --recipe phrasebook --run-dir new"

MISTAKES = [
    ("translate nowhere", RUN),
    ("inspect export", "export is an export, not a run directory; pass the run that was exported"),
    ("inspect export/1", "export/1 is an export, not a run directory"),
    ("inspect ctranslate2", "ctranslate2 is an export, not a run directory"),
    ("translate export", "export/1/manifest.json"),
    ("translate generator", "generator is an export of a language model, which does not translate"),
    ("translate export --languages en,de", "--languages requires a run directory, and export is"),
    ("corpus --output new", "Missing argument 'phrasebook'"),
    ("translate run --input nowhere", FILE),
    ("translate run --glossary text", "text, line 1: 'Hello.' must be a term, a tab and its"),
    ("translate run --glossary text --scores", "--scores cannot be used with --glossary; leave"),
    ("translate run --output text", OUTPUT),
    ("translate run --output run", "run exists already and is a folder"),
    ("translate run --output nowhere/out", "the folder nowhere does not exist; create it first"),
    ("translate run --input text --output file:///x", "file:///x is an address, not a path; write"),
    ("corpus phrasebook --output file:///x", "file:///x is an address, not a path; write to a"),
    ("translate run --input text --output s3://bucket/out", "s3://bucket/out is an address, not a"),
    (
        "translate run --input te* --output s3://bucket/out --workers 1",
        "s3://bucket/out is an address, not a path; write to a path on this machine, and copy the "
        "result if it belongs elsewhere",
    ),
    ("translate run --beam-size 0", "0 is not in the range x>=1; see tfformer translate --help"),
    ("translate run --n-best 0", "'--n-best': 0 is not in the range x>=1"),
    ("translate run --rerank bleu", "'--rerank': 'bleu' is not 'chrf'"),
    ("translate run --format pdf", "'--format': 'pdf' is not one of 'lines', "),
    ("translate run --beam-size four", "'--beam-size': 'four' is not a valid integer range"),
    ("translate run --beam", "No such option '--beam'. Did you mean '--beam-size'?"),
    ("translate run --lines", "No such option"),
    ("translate run run", "Got unexpected extra argument (run)"),
    ("nothing", "No such command 'nothing'; see tfformer --help"),
    ("generate nowhere", RUN),
    ("generate run --count 0", "'--count': 0 is not in the range x>=1"),
    ("generate run --seed -1", "--seed -1 must be from 0 to 2147483647"),
    ("generate run --temperature 0", "'--temperature': 0.0 is not in the range x>0"),
    ("generate run --top-p 0", "'--top-p': 0.0 is not in the range 0<x<=1"),
    ("generate run --top-k -1", "'--top-k': -1 is not in the range x>=0"),
    ("generate run --seed 2147483648", "--seed 2147483648 must be from 0 to 2147483647"),
    ("evaluate nowhere --source text", RUN),
    ("evaluate run --source nowhere", FILE),
    ("evaluate run --source text --reference nowhere", FILE),
    (
        "compare text nowhere --source text --reference text",
        "nowhere is neither a run directory, an",
    ),
    (
        "compare text generator --source text --reference text",
        "generator is an export of a language model, which does not translate",
    ),
    ("compare text text --source text --reference text", "A and B are both text; pass two differ"),
    ("compare text run --source text", "needs the correct translation; pass --reference FILE"),
    ("compare text run --source text --reference text --output old.svg", ".html, .json"),
    (
        "compare text run --source text --reference empty",
        "text has 1 lines and empty 0, but line n",
    ),
    ("score nowhere --source text --target text", RUN),
    ("score run --source text --target nowhere", FILE),
    ("attention nowhere Hello. --output new.svg", RUN),
    ("attention run Hello. --output old.svg", OUTPUT),
    ("attention run Hello. --output new.gif", "new.gif must end in one of .png, .svg, .html"),
    ("attention run Hello. --output new.html --kind influence", "must end in .png or .svg"),
    ("attention run Hello. --output new.svg --kind influence", "--kind influence needs --word: a"),
    ("attention run Hello. --output new.svg --kind all", "'--kind': 'all' is not one of"),
    ("inspect nowhere", RUN),
    ("export nowhere --format web --output new", RUN),
    ("export run --format web --output text", FOLDER),
    ("export run --format web --output run", "run is a run directory; choose another --output"),
    ("export run --format web --output export/1", "version; pass the folder above it as --output"),
    ("export run --format web --output text/new", FOLDER),
    ("export run --format web --output new --samples nowhere", FILE),
    ("export run --format web --output new --samples empty", "--samples empty has no sentence; "),
    (
        "export run --format web --output new --dtype bfloat16",
        "format='web' has no option 'dtype'; its options are",
    ),
    ("export run --format tar --output new", "'--format': 'tar' is not one of 'saved_model', "),
    ("import nowhere --run-dir new", "nowhere does not exist; pass a folder, a zip, or the name"),
    ("import text --revision v1 --run-dir new", "--revision is only for models on the hub, and"),
    ("import text --run-dir text/new", RUN_FOLDER),
    ("import text --run-dir run", "run exists and is not an empty folder; choose another"),
    ("serve nowhere", "nowhere is neither a run directory nor an export; pass one"),
    ("serve run --port 65536", "'--port': 65536 is not in the range 0<=x<=65535"),
    ("score run --source text --target text --languages en", "'--languages': en is not a source"),
    ("train --run-dir new", "Missing argument 'RECIPE'; see tfformer train --help"),
    ("train phrasebook --run-dir nowhere --resume", RUN),
    ("train phrasebook --run-dir new --init-from nowhere", RUN),
    ("train phrasebook --run-dir run", "run already contains a run; add --resume"),
    ("train phrasebook --run-dir text", RUN_FOLDER),
    ("train phrasebook --run-dir text/new", RUN_FOLDER),
    ("train phrasebook --run-dir new --set data.train=[text,nowhere]", f"nowhere: {TEXT}"),
    ("train multi30k-en-de --run-dir new", f"train.en.gz: {TEXT}"),
    (f"distill nowhere {STUDENT}", "the teacher nowhere is neither a run directory, an export"),
    (f"distill text {STUDENT}", "the teacher text is neither"),
    (f"distill cat {STUDENT} --beam-size 2", "--beam-size needs a model or a server, and cat"),
    (f"distill false {STUDENT}", "false answers 1 lines with 0; a teacher gives one line for each"),
    (f"distill generator {STUDENT}", "is an export of a language model, which does not translate"),
    ("distill cat --text no* --recipe phrasebook --run-dir new", "no*: no file matches"),
    ("distill cat --text text --recipe phrasebook-lm --run-dir new", "is a language model"),
    (
        "distill cat --text text --recipe student-tiny --run-dir new",
        "the recipe has no data.valid",
    ),
    (
        "distill cat --text text --recipe phrasebook --run-dir run",
        "contains a run without pairs; choose",
    ),
    (f"distill cat {STUDENT} --workers 2", "--workers 2 is more than the 1 file of the text"),
    (
        f"distill http://localhost:9 {STUDENT} --set data.languages=null",
        "http://localhost:9 needs two languages; set data.languages",
    ),
    (
        "distill cat --text text --recipe student-tiny --run-dir new --set model.decoder=attention",
        "model.decoder='attention' contradicts model.preset='student-tiny', whose decoder is ssru",
    ),
    ("corpus phrasebook --output text", FOLDER),
    ("", "Missing command; see tfformer --help"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_one_line(line, message, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tfformer: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_a_mistake_is_found_before_tensorflow_is_loaded(folder):
    """One process runs all command lines and then lists its imports."""
    program = (
        "import sys\n"
        "from tfformer.cli.main import main\n"
        f"codes = {{main(line.split()) for line in {[line for line, _ in MISTAKES]}}}\n"
        f"print(codes, {HEAVY} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{2} set()\n"


def test_import_and_version_load_nothing_heavy():
    program = (
        "import sys, tfformer.cli.main\n"
        "tfformer.cli.main.main(['--version'])\n"
        "tfformer.cli.main.main(['--help'])\n"
        f"assert not ({HEAVY} | {{'numpy', 'yaml', 'pydantic'}}) & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"tfformer {__version__}\nUsage: ")


def test_the_command_line_has_every_option_of_every_format():
    known = {option for name in NAMES for option in options_of(name)}
    languages = {"source_language", "target_language"}
    given = {option.name for option in program.commands["export"].params}
    assert given - {"run", "format", "output"} == known - languages | {"languages"}


def test_the_command_line_has_at_most_48_options():
    """Each additional option makes the others harder to find. Verbs share options by name."""
    parameters = [option for verb in program.commands.values() for option in verb.params]
    names = {parameter.name for parameter in parameters if isinstance(parameter, click.Option)}
    assert len(names) + len(program.params) <= 48


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a\0b", r"the argument 'a\x00b' contains a NUL character; leave it out"),
        ("caf\udce9", r"the argument 'caf\udce9' is not UTF-8; rename the file"),
        ("\ud800" * 500, "is not UTF-8"),
    ],
)
@pytest.mark.parametrize("option", ["--run-dir", "--set"])
def test_a_word_that_is_no_utf_8_is_one_line(word, message, option, capfd):
    """Python receives such bytes of the command line as unpaired surrogates."""
    assert main(["train", "phrasebook", option, word]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("tfformer: ")
    assert message in line
    assert len(line) < 200
