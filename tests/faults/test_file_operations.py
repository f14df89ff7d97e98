"""Commands that are killed or fail at one of their file operations.

A kill leaves the files unchanged, so a process that stops before each operation shows the state
after every kill. Each distinct state of its folder is copied. A failure needs a separate process.
"""

import json
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.faults import check_without, record, size
from support.faulty_process import FULL_DISK, INPUT_OUTPUT, KILL, FaultyProcess, Outcome, spread
from support.nightly import is_night
from support.resume_state import state_of

from tfformer.run_directory import Run, check_free
from tfformer.storage.artifact_folders import check_files, read_manifest
from tfformer.storage.whole_files import TEMPORARY, file_digest, remove_leftovers

SAMPLES = {("corpus", FULL_DISK): 1, ("train", KILL): 1}  # of others only by scripts/faults.sh
MOST_KILLS = 8  # beside the stops
WRITER = re.compile(r"(?<=\.tfformer-)\w+-\d+-\w+-")  # of a leaving: the process, a random part
NAMES = {KILL: "killed", FULL_DISK: "full disk", INPUT_OUTPUT: "input/output error"}
kinds = pytest.mark.parametrize("kind", NAMES, ids=["kill", "full_disk", "io_error"])


def check_end(outcome: Outcome, kind: str) -> None:
    """Check that a kill ends by the signal, and a failure with one clear line or without harm."""
    check_without("tracebacks", "Traceback" not in outcome.printed, outcome.printed)
    check_without("hangs", outcome.code is not None, outcome)
    if kind == KILL:
        assert outcome.code == -9
    else:
        assert outcome.code in (0, 2), outcome
    if outcome.code == 2:
        assert outcome.printed.splitlines()[-1].startswith("tfformer: "), outcome.printed


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file below the folder by path, except temporary files."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    kept = [path for path in paths if not any(map(TEMPORARY.fullmatch, path.parts))]
    return {str(path.relative_to(folder)): file_digest(path) for path in kept}


def names(folder: Path) -> frozenset[str]:
    """Return the paths below the folder, except TensorBoard's and those in temporary folders."""
    paths = [path.relative_to(folder) for path in folder.rglob("*")]
    outer = [path for path in paths if not any(map(TEMPORARY.fullmatch, path.parts[:-1]))]
    return frozenset(WRITER.sub("", str(file)) for file in outer if file.parts[0] != "tensorboard")


def leavings(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if TEMPORARY.fullmatch(path.name)]


def state(folder: Path) -> tuple[frozenset, frozenset]:
    """Return the state that determines how the next start continues.

    It excludes TensorBoard's events and unfinished files.
    """
    paths = names(folder)
    return frozenset(entry for entry in contents(folder).items() if entry[0] in paths), paths


@pytest.fixture
def workspace(tmp_path) -> Iterator[Path]:
    """A folder whose surroundings must not change."""
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "notes").write_text("mine")
    (tmp_path / "place").mkdir()
    yield tmp_path / "place"
    beside_files = {path: path.read_text() for path in beside.iterdir()}
    folders = {path.name for path in tmp_path.iterdir()}
    is_untouched = beside_files == {beside / "notes": "mine"} and folders == {"beside", "place"}
    check_without("files outside touched", is_untouched, (beside_files, folders))


def tried(
    faulty: FaultyProcess,
    arguments: Callable[[Path], list],
    workspace: Path,
    kind: str,
) -> Iterator[tuple[Path, Outcome]]:
    """Make a folder `first` without a fault, then folders with faults.

    Yields:
        Each folder with a fault, which is then removed, and the end of its command line.
    """
    verb = arguments(workspace / "first")[0]
    sample = size("kills" if kind == KILL else "failures", SAMPLES.get((verb, kind), 0))
    if not sample:
        pytest.skip("only scripts/faults.sh tries this")
    ends = killed if kind == KILL else failed
    for folder, outcome in ends(faulty, arguments, workspace, kind, sample):
        check_end(outcome, kind)
        yield folder, outcome
        shutil.rmtree(folder, ignore_errors=True)


def failed(
    faulty: FaultyProcess,
    arguments: Callable[[Path], list],
    workspace: Path,
    kind: str,
    sample: int,
) -> Iterator[tuple[Path, Outcome]]:
    """Yield a command line for each operation of the sample, which fails."""
    first = faulty.run(arguments(workspace / "first"), workspace / "first")
    assert first.code == 0, first.printed
    numbers, codes = spread(first.operations, sample), Counter()
    for number in numbers:
        folder = workspace / f"at {number}"
        outcome = faulty.run(arguments(folder), folder, number, kind)
        codes[outcome.code] += 1
        yield folder, outcome
    verb = arguments(workspace / "first")[0]
    record(f"{verb}, {NAMES[kind]}", f"{len(numbers)} of {first.operations:,}: {dict(codes)}")


def killed(
    faulty: FaultyProcess,
    arguments: Callable[[Path], list],
    workspace: Path,
    kind: str,
    sample: int,
) -> Iterator[tuple[Path, Outcome]]:
    """Yield a copy of each state, or of a sample, that a kill leaves.

    Then yield the folders of real kills. If the sample is 1, there is only a real kill.
    """
    copies, seen_names, stops = {}, set(), 0

    def look() -> None:
        nonlocal stops
        stops += 1
        snapshot = state(workspace / "first"), frozenset((workspace / "first").rglob("*"))
        seen_names.add(names(workspace / "first"))
        if snapshot not in copies:
            copies[snapshot] = workspace / f"at {stops}"
            if (workspace / "first").exists():
                shutil.copytree(workspace / "first", copies[snapshot], symlinks=True)

    first = faulty.run_with_stops(arguments(workspace / "first"), workspace / "first", look)
    assert first.code == 0, first.printed
    assert stops == first.operations
    folders, numbers = list(copies.values()), spread(len(copies), sample - 1)
    for number in numbers:
        yield folders[number - 1], Outcome(-9, 0, "")
    kills = spread(stops, min(sample, MOST_KILLS))
    for number in kills:
        folder = workspace / f"killed at {number}"
        outcome = faulty.run(arguments(folder), folder, number, kind)
        assert names(folder) in seen_names
        yield folder, outcome
    tried = f"{len(numbers)} of the {len(copies)} states before its {stops:,} operations"
    record(f"{arguments(folder)[0]}, {NAMES[kind]}", f"{tried}, and {len(kills)} kills")


@pytest.mark.slow
@kinds
def test_corpus(faulty, workspace, kind):
    def arguments(folder: Path) -> list:
        return ["corpus", "phrasebook", "--output", folder]

    for folder, outcome in tried(faulty, arguments, workspace, kind):
        complete = contents(workspace / "first")
        assert contents(folder).items() <= complete.items()
        if outcome.code != 0:
            faulty.run(arguments(folder), folder)
        assert contents(folder) == complete
        assert leavings(folder) == []


@pytest.mark.slow
@kinds
def test_translate(faulty, workspace, kind, tiny_run):
    (workspace / "text").write_text("The old dog sees the red house.\n" * 300)

    def arguments(folder: Path) -> list:
        folder.mkdir(exist_ok=True)
        return [
            *("translate", tiny_run, "--input", workspace / "text"),
            *("--output", folder / "output"),
        ]

    for folder, outcome in tried(faulty, arguments, workspace, kind):
        new = (workspace / "first" / "output").read_text()
        output = folder / "output"
        if outcome.code == 0 or output.exists():
            assert output.read_text() == new
        if kind == KILL and not output.exists():
            again = faulty.run(arguments(folder), folder)
            assert again.code == 0, again.printed
            assert output.read_text() == new
        assert leavings(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("export_format", ["ctranslate2", "litert", "saved_model"])
@kinds
def test_export(faulty, workspace, kind, tiny_run, export_format):
    (workspace / "samples").write_text("The dog.\n")

    def arguments(folder: Path) -> list:
        return [
            *("export", tiny_run, "--format", export_format),
            *("--output", folder, "--samples", workspace / "samples"),
        ]

    for folder, outcome in tried(faulty, arguments, workspace, kind):
        versions = list(folder.glob("[0-9]*"))
        assert outcome.code != 0 or len(versions) == 1
        for version in versions:
            check_files(version, read_manifest(version))
        if kind == KILL and folder.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of each that is removed
                remove_leftovers(folder)
        assert leavings(folder) == []


@pytest.mark.slow
@kinds
def test_train(faulty, workspace, kind, smallest_config):
    """Every state after a kill is consistent. The sampled states are resumed to the same bits.

    By day it is a language model, whose run has the same files; it translates no validation text.
    """
    recipe, values = workspace / "recipe.yaml", smallest_config.to_dict()
    if not is_night():
        values["model"]["architecture"] = "decoder"
        values["tokenizer"]["vocab_size"] = 18
        values["data"] |= {"train": "train.en", "valid": "valid.en"}
    values["training"] |= {"epoch_steps": 5, "accumulate_steps": 2, "clip_norm": 1.0}
    recipe.write_text(json.dumps(values))

    def arguments(folder: Path) -> list:
        return ["train", recipe, "--run-dir", folder]

    states = set()
    for folder, _ in tried(faulty, arguments, workspace, kind):
        check_whole(folder)
        if (snapshot := state(folder)) in states:
            continue
        states.add(snapshot)
        resume = ["--resume"] if is_run(folder) else []
        again = faulty.run([*arguments(folder), *resume], folder)
        assert again.code == 0, again.printed
        assert_same_training(folder, workspace / "first")
        assert leavings(folder) == []
    record(f"  states of the folder, {NAMES[kind]}", f"{len(states)}, all end bitwise equal")
    for folder in workspace.glob("at *"):  # the states outside the sample
        check_whole(folder)


def is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def check_whole(folder: Path) -> None:
    """Check that a folder without a run can be used again, and that a run's files are complete."""
    if not is_run(folder):
        check_free(folder)
        return
    run = Run.open(folder)
    run.history()
    if run.weights.exists():
        run.check_weights()


def assert_same_training(folder: Path, expected: Path) -> None:
    np.testing.assert_equal(state_of(folder), state_of(expected))
    weights = [Run.open(path).load_model().get_weights() for path in (folder, expected)]
    for weight, wanted in zip(*weights, strict=True):
        np.testing.assert_array_equal(weight, wanted)
