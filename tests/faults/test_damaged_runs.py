"""A damaged run is refused in one line, or read as if it were undamaged."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.damage import counted, damaged, weights_of
from support.faults import check_without, record, size
from support.marian_checkpoints import checkpoint

from tfformer import __version__
from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.provenance import read_record
from tfformer.cli.main import main
from tfformer.config import Config, builtin_recipes, read_recipe
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import Run, Tokenizers, new_model
from tfformer.storage.artifact_folders import check_files, read_manifest, write_manifest
from tfformer.storage.whole_files import file_digest

FILES = ("best.weights.h5", "best.weights.h5", "config.json", "tokenizer.model")
LINES = ["one two three", "four five six", "eins zwei drei", "vier fünf sechs", "ten", "zehn"] * 20
RECIPE = {
    "model": {"num_layers": 2, "d_model": 16, "num_heads": 2, "d_ff": 24},
    "tokenizer": {"vocab_size": 29},
    "data": {"max_length": 20},
}


@pytest.fixture
def run(tmp_path) -> Run:
    tokenizer = Tokenizer.train(LINES, 29)
    run = Run.create(tmp_path / "run", Config.from_dict(RECIPE), Tokenizers(tokenizer, tokenizer))
    run.save_weights(new_model(run.config.model, run.tokenizers))
    return run


def meaning(path: Path) -> tuple:
    """Return everything of a run that determines its translations."""
    run = Run.open(path)
    run.check_weights()
    settings = run.config.model, run.config.decoding, run.config.data.max_length
    return *settings, run.tokenizers.digests, weights_of(run.weights)


def outcome_of(read: Callable[[], object], expected: object, errors: tuple) -> str:
    """Read damaged data, which is refused or has the same meaning, within five seconds."""
    start, outcome = time.process_time(), "traceback"
    try:
        outcome = "harmless" if read() == expected else "wrong"
    except errors as error:
        outcome = "refused" if len(str(error)) < 2_000 else "wrong"
    finally:
        check_without("tracebacks", outcome != "traceback", "an error of another type")
    check_without("hangs", time.process_time() - start < 5, "over 5 seconds")
    return outcome


@pytest.mark.slow
def test_no_damage_changes_the_meaning_of_a_run(run):
    draw, outcomes, expected = random.Random(25), Counter(), meaning(run.path)
    intact = {name: (run.path / name).read_bytes() for name in FILES}
    for _ in range(size("mutations", 60)):
        name = draw.choice(FILES)
        (run.path / name).write_bytes(damaged(intact[name], draw))
        outcomes[outcome_of(lambda: meaning(run.path), expected, (ValueError, OSError))] += 1
        (run.path / name).write_bytes(intact[name])
    record("damaged runs", counted(outcomes))
    assert outcomes["wrong"] == 0
    assert outcomes["refused"] > outcomes["harmless"]


def test_a_damaged_run_is_one_line_of_translate_and_leaves_the_output(run, tmp_path, capsys):
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_text("one\n", encoding="utf-8")
    output.write_text("before", encoding="utf-8")
    command = ["translate", run.path, "--input", source, "--output", output]
    for name in set(FILES):
        intact = (run.path / name).read_bytes()
        (run.path / name).write_bytes(intact[: len(intact) // 2])
        assert main([*map(str, command)]) == 2
        captured = capsys.readouterr()
        (line,) = captured.err.splitlines()
        assert line.startswith("tfformer: ")
        assert captured.out == ""
        assert output.read_text(encoding="utf-8") == "before"
        (run.path / name).write_bytes(intact)


@pytest.mark.nightly
def test_translate_refuses_a_damaged_run_in_a_line_or_translates_as_before(run, faulty):
    """The command line in a separate process: its exit code, output and files."""
    draw, outcomes = random.Random(29), Counter()
    intact = {name: (run.path / name).read_bytes() for name in FILES}
    source, output = run.path.parent / "source", run.path.parent / "output"
    source.write_text("\n".join(LINES[:6]) + "\n", encoding="utf-8")
    paths = [run.path, "--input", source, "--output", output]
    command = ["translate", *paths, "--beam-size", "2", "--scores"]  # which any weight changes

    def translated() -> tuple[int | None, str]:
        end = faulty.run(command, run.path.parent, seconds=60)
        check_without("hangs", end.code is not None, end)
        check_without("tracebacks", "Traceback" not in end.printed, end)
        if end.code == 2:
            assert end.printed.splitlines()[-1].startswith("tfformer: "), end
            assert not output.exists(), end
            return 2, ""
        translation = output.read_text(encoding="utf-8")
        output.unlink()
        return end.code, translation

    expected = translated()
    assert expected[0] == 0
    for _ in range(size("command_lines", 4)):
        name = draw.choice(FILES)
        (run.path / name).write_bytes(damaged(intact[name], draw))
        new = translated()
        (run.path / name).write_bytes(intact[name])
        outcomes["refused" if new[0] == 2 else "harmless" if new == expected else "wrong"] += 1
    record("damaged runs, by the command line", counted(outcomes))
    assert outcomes["wrong"] == 0
    assert outcomes["refused"] > outcomes["harmless"]


def test_no_damage_changes_the_state_that_a_training_resumes_from(run):
    draw, outcomes = random.Random(28), Counter()
    model = new_model(run.config.model, run.tokenizers)
    model.compile(optimizer="sgd")
    model.optimizer.build(model.trainable_variables)
    history = [{"epoch": 1, "loss": 6.5}, {"epoch": 2, "loss": 6.25}]
    run.save_resume_state(model, history)
    expected, intact = model.get_weights(), run.resume_state.read_bytes()

    def is_whole() -> bool:
        loaded = run.load_resume_state(model)
        pairs = zip(model.get_weights(), expected, strict=True)
        return loaded == history and all(np.array_equal(*pair) for pair in pairs)

    for _ in range(size("mutations", 60)):
        run.resume_state.write_bytes(damaged(intact, draw))
        outcomes[outcome_of(is_whole, True, (ValueError, OSError))] += 1
    record("damaged states to resume from", counted(outcomes))
    assert outcomes["wrong"] == 0
    assert outcomes["refused"] > outcomes["harmless"]


def test_no_damage_changes_the_record_of_an_import(tmp_path):
    """An export to the original toolkit uses its order of ids."""
    draw, outcomes = random.Random(29), Counter()
    run = Run.open(import_model(checkpoint("A", tmp_path), tmp_path / "run"))
    intact, expected = run.origin.read_bytes(), read_record(run)
    for _ in range(size("mutations", 60)):
        run.origin.write_bytes(damaged(intact, draw))
        outcomes[outcome_of(lambda: read_record(run), expected, (ValueError,))] += 1
    record("damaged records of imports", counted(outcomes))
    assert outcomes["wrong"] == 0
    rows = expected["source"]["rows"]
    rows[5], rows[6] = rows[6], rows[5]
    run.origin.write_text(json.dumps(json.loads(intact) | expected))
    with pytest.raises(ValueError, match=r"imported\.json is damaged \(its digest does not match"):
        read_record(run)


@pytest.mark.slow
def test_no_damage_changes_the_meaning_of_an_export(tmp_path):
    """Its files are checked with the manifest before an engine loads them."""
    draw, outcomes = random.Random(26), Counter()
    names = ("saved_model.pb", "variables/variables.index", "tokenizer.model", "manifest.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(draw.randbytes(3_000))
    digests = {name: file_digest(tmp_path / name) for name in names[:-1]}
    decoding = {"max_length": 60, "length_penalty": 0.6}
    described = {"decoding": decoding, "versions": {"tfformer": __version__}}
    write_manifest(tmp_path, {"digests": digests, "languages": ["en", "de"]} | described)
    intact = {name: (tmp_path / name).read_bytes() for name in names}

    def read() -> tuple:
        manifest = read_manifest(tmp_path)
        check_files(tmp_path, manifest)
        return manifest, [(tmp_path / name).read_bytes() for name in names[:-1]]

    expected = read()
    for _ in range(size("mutations", 60)):
        name = draw.choice(names)
        (tmp_path / name).write_bytes(damaged(intact[name], draw))
        outcomes[outcome_of(read, expected, (ValueError,))] += 1
        (tmp_path / name).write_bytes(intact[name])
    record("damaged exports", counted(outcomes))
    assert outcomes["wrong"] == 0
    assert outcomes["refused"] > outcomes["harmless"]


def test_a_damaged_recipe_is_refused_in_a_line_or_is_another_whole_recipe(tmp_path):
    """Digits may change, because a recipe has no digest.

    A recipe is validated and never executed.
    """
    draw, outcomes = random.Random(27), Counter()
    recipes = [path.read_bytes() for path in builtin_recipes().values()]
    path = tmp_path / "recipe.yaml"

    def read() -> bool:
        return isinstance(read_recipe(path), Config)

    for _ in range(size("mutations", 60)):
        path.write_bytes(damaged(draw.choice(recipes), draw))
        outcomes[outcome_of(read, True, (ValueError, OSError))] += 1
    record("damaged recipes", counted(outcomes))
    assert outcomes["wrong"] == 0
    assert min(outcomes["refused"], outcomes["harmless"]) > 10
