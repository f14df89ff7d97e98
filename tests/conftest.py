"""Fixtures shared by several test files: small trained runs, a server, a browser."""

import fcntl
import functools
import gc
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings
from support.nightly import leave_graphs_as_traced
from support.one_process import converted_in_one_process, in_one_process

# In CI, Hypothesis tests use the same examples each time; scripts/nightly.sh draws many more.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # on busy machines
settings.register_profile("ci", derandomize=True, max_examples=60, **patient)
settings.register_profile("here", **patient)
settings.register_profile("nightly", max_examples=500, **patient)
usual = "ci" if os.environ.get("CI") else "here"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))

pytest.register_assert_rewrite("support.browser", "support.servers")

# TensorFlow's graphs have so many objects that collecting garbage after every 700 allocations takes
# a twentieth of the time.
gc.set_threshold(50_000)

LONGEST = (
    *("test_train", "test_saved_model", "test_litert", "test_round_trip", "test_file_operations"),
    *("test_commands", "test_web_page", "test_strategies", "test_keras_hub"),
    *("test_generation_rules", "test_imported_runs", "test_hugging_face", "test_graphs"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, and mark nightly tests as slow, so `-m "not slow"` skips them.

    Otherwise one process could still be running a long file when the others have finished.
    """

    def turn(item: pytest.Item) -> int:
        return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=turn)
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    """Let each process of pytest-xdist import TensorFlow as programs do, in half the time."""
    if hasattr(config, "workerinput"):
        from tfformer.runtime.tensorflow import import_tensorflow

        import_tensorflow()


def pytest_collection_finish() -> None:
    if "tensorflow" in sys.modules:
        leave_graphs_as_traced()
        keep_names_of_attributes()


def keep_names_of_attributes() -> None:
    """Make Keras compute once per class which attributes a file of weights leaves out.

    Keras 3 looks its result up under another name than it has stored it, so computes it again for
    each layer, a fifth of the time in which a small model is saved and loaded.
    """
    from keras.src.saving import saving_lib

    saving_lib.get_attr_skipset = functools.cache(saving_lib.get_attr_skipset)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, request) -> Callable[[str, Callable[[Path], None]], Path]:
    """A function that returns the shared folder of a name, which the first process fills."""
    processes = hasattr(
        request.config, "workerinput"
    )  # with pytest-xdist, whose processes' folders share a parent
    parent = tmp_path_factory.getbasetemp()
    shared = parent.parent if processes else parent

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        made, done = shared / name, shared / f"{name}.done"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                made.mkdir()
                fill(made)
                done.touch()
        return made

    return folder


@pytest.fixture(scope="session")
def quickstart(made_once) -> tuple[Path, str]:
    """The phrasebook run trained by scripts/quickstart.sh. Also returns the script's output."""
    root = Path(__file__).parents[1]

    def fill(folder: Path) -> None:
        with open(folder / "stdout", "w") as stdout, open(folder / "stderr", "w") as stderr:
            done = subprocess.run(
                ["bash", "scripts/quickstart.sh", str(folder / "run")],
                cwd=root,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
                stdout=stdout,
                stderr=stderr,
            )
        assert done.returncode == 0, (folder / "stderr").read_text()[-2000:]

    folder = made_once("quickstart", fill)
    return folder / "run", (folder / "stdout").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def tiny_run(made_once) -> Path:
    """A finished run, trained on 2,000 sentences of the phrasebook; tests must not change it."""
    return made_once("tiny_run", train_tiny_run) / "run"


def train_tiny_run(folder: Path) -> None:
    """Train a translator in under half a minute."""
    from tfformer.config import Config
    from tfformer.data.sources import read_pairs
    from tfformer.inference.calibration import fit, measuring
    from tfformer.run_directory import Run
    from tfformer.training.train import train

    for split, count in (("train", 2000), ("valid", 50)):
        pairs = list(itertools.islice(read_pairs(f"phrasebook:{split}"), count))
        for number, language in enumerate(("en", "de")):
            text = "".join(pair[number] + "\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    recipe = {
        "model": {"num_layers": 1, "d_model": 64, "num_heads": 2, "d_ff": 128, "dropout": 0.0},
        "tokenizer": {"vocab_size": 500},
        "data": {
            "train": ["train.en", "train.de"],
            "valid": ["valid.en", "valid.de"],
            "folder": str(folder),
            "max_length": 40,
            "batch_tokens": 1024,
        },
        "training": {
            "epochs": 5,
            "schedule": "inverse_sqrt",
            "learning_rate": 0.006,
            "warmup_steps": 60,
            "validate_every": 5,
        },
        "decoding": {"beam_size": 3, "length_penalty": 1.0},
    }
    train(Config.from_dict(recipe), folder / "run")
    run = Run.open(folder / "run")
    measure = measuring(run.load_model(), run.tokenizers, pairs, 40)
    run.keep_calibration(fit(measure))  # which exports reuse


@pytest.fixture(scope="session")
def translator(tiny_run):
    """The tiny run's translator, shared with its graphs. Tests must not change it."""
    from tfformer.inference.translator import Translator

    return Translator.load(tiny_run)


@pytest.fixture(scope="session")
def generator(counting_run):
    """The generator of the counting run, shared with its graphs."""
    from tfformer.inference.generator import Generator

    return Generator.load(counting_run)


@pytest.fixture(scope="module")
def verbs_share_models(tiny_run, translator, counting_run, generator) -> Iterator[None]:
    """Commands and engines use the tests' translator and generator, with their traced graphs."""
    from tfformer.inference.text_model import TextModel

    models = {tiny_run: translator, counting_run: generator}
    load = TextModel.of.__func__

    def loaded(kind, run):
        shared = models.get(run.path)
        return shared if isinstance(shared, kind) else load(kind, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextModel, "of", classmethod(loaded))
        yield


# --- Exports, made once; tests must not change them -----------------------------------------------


@pytest.fixture(scope="session")
def tensorflow_text() -> ModuleType:
    """TensorFlow Text, whose operations tokenize in graphs. Not every TensorFlow has a release."""
    return pytest.importorskip("tensorflow_text", reason="TensorFlow Text is not installed")


@pytest.fixture(scope="session")
def saved_model_export(made_once, tiny_run, tensorflow_text) -> Path:
    """The tiny run as a SavedModel, with the default options."""
    with in_one_process():
        return exported(made_once, tiny_run, "saved_model")


@pytest.fixture(scope="session")
def language_model_export(made_once, counting_run, tensorflow_text) -> Path:
    """The counting language model as a SavedModel."""
    with in_one_process():
        return exported(made_once, counting_run, "saved_model", "counting")


@pytest.fixture(scope="session")
def ctranslate2_export(made_once, tiny_run) -> Path:
    """The tiny run for CTranslate2."""
    pytest.importorskip("ctranslate2")
    return exported(made_once, tiny_run, "ctranslate2")


@pytest.fixture(scope="session")
def dynamic_litert(made_once, tiny_run) -> Path:
    """The tiny run as a LiteRT file with dynamic shapes and a beam search."""
    from support.litert_samples import SENTENCES

    return exported_to_litert(made_once, tiny_run, "dynamic", beam_size=3, samples=SENTENCES)


@pytest.fixture(scope="session")
def static_litert(made_once, tiny_run) -> Path:
    """The tiny run as a LiteRT file with fixed shapes and only greedy search."""
    from support.litert_samples import SENTENCES

    with converted_in_one_process():
        return exported_to_litert(made_once, tiny_run, "static", static=True, samples=SENTENCES)


@pytest.fixture(scope="session")
def litert_int8(made_once, tiny_run) -> Path:
    """The tiny run as a LiteRT file in int8 with only greedy search."""
    with converted_in_one_process():
        return exported_to_litert(made_once, tiny_run, "int8", quantize="int8")


@pytest.fixture(scope="session")
def exported_page(made_once, tiny_run) -> Path:
    """The tiny run as a web page."""
    with converted_in_one_process():
        return exported(made_once, tiny_run, "web")


@pytest.fixture
def one_process() -> Iterator[None]:
    """Exports convert and check their files in the test's process, see `support.one_process`."""
    with in_one_process():
        yield


def exported_to_litert(made_once, run: Path, name: str, **options) -> Path:
    pytest.importorskip("ai_edge_litert")
    return exported(made_once, run, "litert", name, **options)


def exported(made_once, run: Path, format: str, name: str = "", **options) -> Path:
    from tfformer.export.pipeline import export_model

    def fill(folder: Path) -> None:
        export_model(run, folder, format, **options)

    return made_once(f"{format}_{name}", fill) / "1"


@pytest.fixture(scope="session")
def cpp_loader(made_once, tensorflow_text) -> Callable[[Path, str, list[str]], list[str]]:
    """A function (SavedModel, signature, sentences) -> texts, by TensorFlow's C++ loader."""
    from support import cpp_loader

    if not cpp_loader.COMPILER:
        pytest.skip("no g++; the export itself is still checked in a TensorFlow 1 session")
    program = made_once("cpp_loader", cpp_loader.compile_into) / cpp_loader.NAME
    return functools.partial(cpp_loader.texts, program)


NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="session")
def counting_run(made_once) -> Path:
    """A finished run of a language model that counts.

    A text is two to four ascending numbers, such as "three four five". The training and validation
    text is in the same folder. Tests must not change it.
    """
    return made_once("counting", train_counting_run) / "run"


def train_counting_run(folder: Path) -> None:
    """Train a language model in a few seconds."""
    from tfformer.config import Config
    from tfformer.training.train import train

    lines = [
        " ".join(NUMBERS[first : first + count])
        for count in (2, 3, 4)
        for first in range(11 - count)
    ]
    for split, times in (("train", 8), ("valid", 1)):
        (folder / f"{split}.txt").write_text("\n".join(lines * times) + "\n", encoding="utf-8")
    recipe = {
        "model": {
            "architecture": "decoder",
            "num_layers": 1,
            "d_model": 32,
            "num_heads": 2,
            "d_ff": 64,
            "dropout": 0,
        },
        "tokenizer": {"vocab_size": 29},
        "data": {
            "train": "train.txt",
            "valid": "valid.txt",
            "folder": str(folder),
            "max_length": 32,
            "batch_tokens": 256,
        },
        "training": {
            "epochs": 24,
            "schedule": "inverse_sqrt",
            "learning_rate": 0.01,
            "warmup_steps": 40,
            "label_smoothing": 0,
            "ema_momentum": 0.9,
            "validate_every": 12,
        },
    }
    train(Config.from_dict(recipe), folder / "run")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server of the newest two versions of an export with three versions of a scripted model."""
    from support.served_texts import in_thread
    from support.servers import save_scripted_model, write_manifest_of

    from tfformer.serving.served_models import ServedModel

    export = tmp_path_factory.mktemp("models") / "echo"
    for number in (8, 9, 10):
        save_scripted_model(export / str(number), f"v{number}")
    examples = ["The dog.", "The <b>cat</b>."]
    write_manifest_of(export / "10", languages=["en", "de"], examples=examples)
    with in_thread(ServedModel("echo", export)) as addresses:
        yield addresses


@pytest.fixture(scope="session")
def object_store(tmp_path_factory):
    """A local S3 server; copies of its folders are in the tests' temporary folder."""
    for module in ("s3fs", "moto"):
        pytest.importorskip(module, reason="pip install -e '.[test]'")
    from support.object_store import served

    with pytest.MonkeyPatch.context() as patch, served() as store:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("copies")))
        yield store


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium with one page."""
    from support.browser import CHROMIUM, Browser

    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; apt-get install chromium")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
