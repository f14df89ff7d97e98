"""A damaged checkpoint is refused in one line, or imported as its files say.

Without digests, a changed number in a file is accepted as the number of this file. Never accepted
are truncated files, files that contradict each other, and settings in a file that does not define
them. With a download's digests, every changed file is refused.
"""

import json
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from support.damage import counted, damaged, weights_of
from support.faults import check_without, record, size
from support.marian_checkpoints import every_kind, languages
from support.stated_digests import state_by_downloads

from tfformer.cli.main import main
from tfformer.run_directory import Run

NUMBERS = (".safetensors", ".bin", ".npz")
DECIDES = {  # file -> the parts of a run that are its own; numbers are those of any tensor
    "config.json": {"model"},
    "generation_config.json": {"decoding", "search"},
    "tokenizer_config.json": {"max_length"},
    "vocab.json": {"source pieces", "target pieces"},
    "target_vocab.json": {"target pieces"},
    "decoder.yml": {"decoding", "search"},
    "tokenizer.json": {"source pieces", "target pieces"},
    "special_tokens_map.json": {"source pieces", "target pieces"},
    "source.spm": {"source model", "source pieces"},
    "target.spm": {"target model", "target pieces"},
    "sentencepiece.bpe.model": {
        *("source model", "source pieces"),
        *("target model", "target pieces"),
    },
}


def content_of(path: Path) -> dict[str, object]:
    """Return everything of a run that determines its translations, by kind."""
    run = Run.open(path)
    config = run.config.to_dict()
    config["model"].pop("dropout")  # of training alone
    dialect = run.config.model.dialect
    search = dialect.search()
    config["model"]["dialect"] = {name: v for name, v in dialect if name not in search}
    content = {"numbers": weights_of(run.weights)}
    content |= {"model": config["model"], "decoding": config["decoding"]}
    content["search"] = search
    content["max_length"] = config["data"]["max_length"]
    for side in ("source", "target"):
        tokenizer = getattr(run.tokenizers, side)
        content[f"{side} pieces"] = tokenizer.pieces(range(tokenizer.vocab_size))
        content[f"{side} model"] = tokenizer.model
    return content


def edited(values: object, draw: random.Random) -> object:
    """Change one value or name at a random position in a JSON object."""
    if isinstance(values, dict) and values:
        key = draw.choice(sorted(values))
        kind = draw.choice(("value", "value", "away", "name"))
        without = {name: value for name, value in values.items() if name != key}
        if kind == "away":
            return without
        if kind == "name":
            return {**without, f"{key}_": values[key]}
        return {**values, key: edited(values[key], draw)}
    if isinstance(values, list) and values:
        index = draw.randrange(len(values))
        return [*values[:index], edited(values[index], draw), *values[index + 1 :]]
    if isinstance(values, bool):
        return not values
    if isinstance(values, int):
        return draw.choice((values + 1, values - 1, -values, 2 * values, 10**12, str(values), None))
    return draw.choice((None, 3, -1.5, True, f"{values}x", [], {}))


def damage(file: Path, originals: list[Path], draw: random.Random) -> None:
    """Damage a file's bytes, change a value of its JSON, or replace it by another checkpoint's."""
    kind = draw.choice(("bytes", "bytes", "swap", "edit"))
    strangers = [original for original in originals if original.read_bytes() != file.read_bytes()]
    if kind == "swap" and strangers:
        shutil.copy(draw.choice(strangers), file)
    elif kind == "edit" and file.suffix == ".json":
        values = edited(json.loads(file.read_text(encoding="utf-8")), draw)
        file.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    else:
        file.write_bytes(damaged(file.read_bytes(), draw))


def decided_by(file: str) -> set[str]:
    return {"numbers"} if file.endswith(NUMBERS) else DECIDES.get(file, set())


def words_of_languages(name: str) -> list[str]:
    """Return the command line options for a checkpoint's languages."""
    pair = list(languages(name).values())
    return ["--languages", ",".join(pair)] if pair else []


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, dict[str, object]]:
    """The parts of the run imported from each undamaged checkpoint."""
    folder, content = tmp_path_factory.mktemp("whole"), {}
    for name, checkpoint in every_kind(folder).items():
        run = folder / f"run of {name}"
        words = words_of_languages(name)
        assert main(["import", str(checkpoint), "--run-dir", str(run), *words]) == 0
        content[name] = content_of(run)
    return content


STATES = {"no digests": None, "a download's": state_by_downloads}


@pytest.mark.slow
@pytest.mark.parametrize("digests", STATES)
def test_a_damaged_checkpoint_is_refused_or_imported_as_its_files_say(
    tmp_path, capsys, expected, digests
):
    """With the command line and its exit code."""
    draw, outcomes, stated, wrong = random.Random(27), Counter(), Counter(), []
    folders = every_kind(tmp_path)
    words = {name: words_of_languages(name) for name in folders}
    if (state := STATES[digests]) is not None:
        for folder in folders.values():
            state(folder)
    for number in range(size("checkpoints", 12)):
        name = draw.choice(sorted(folders))
        copy, run = tmp_path / "copy", tmp_path / "run"
        shutil.copytree(folders[name], copy)
        file = draw.choice(sorted(path.name for path in copy.iterdir() if path.is_file()))
        twins = [twin / file for twin in folders.values() if (twin / file).is_file()]
        damage(copy / file, twins, draw)
        start, code = time.process_time(), None
        try:
            code = main(["import", str(copy), "--run-dir", str(run), *words[name]])
        finally:
            check_without("tracebacks", code is not None, (number, name, file))
        check_without("hangs", time.process_time() - start < 30, (number, name, file))
        error = capsys.readouterr().err
        if code == 0:
            content = content_of(run)
            changed = {key for key in content if content[key] != expected[name][key]}
            allowed = set() if STATES[digests] else decided_by(file)
            outcome = "harmless" if changed <= allowed else "wrong"
            stated["in all"] += bool(changed)
            stated.update(changed)
        else:
            lines = [line for line in error.splitlines() if not line.startswith("warning: ")]
            is_clear = (code, len(lines), run.exists()) == (2, 1, False)
            outcome, changed = "refused" if is_clear else "wrong", set()
        outcomes[outcome] += 1
        if outcome == "wrong":
            wrong.append((number, name, file, changed, error))
        shutil.rmtree(copy)
        shutil.rmtree(run, ignore_errors=True)
    content = f"{counted(outcomes)}; changed as the file says: {dict(stated)}"
    record(f"damaged checkpoints, {digests}", content)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not wrong, "\n".join(map(str, wrong))
    assert outcomes["refused"] > outcomes["harmless"]
