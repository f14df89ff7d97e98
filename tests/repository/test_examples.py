"""The examples and the scripts that measure or choose text run and reach their figures."""

import gzip
import json
import os
import random
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

from tfformer.cli import main as cli
from tfformer.data import phrasebook

ROOT = Path(__file__).parents[2]


def output_of(program: str, *arguments) -> list[str]:
    command = [sys.executable, ROOT / program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.nightly
def test_the_sentence_classifier_learns_what_a_question_is():
    """Far better than always answering "no question"."""
    right, none = (
        float(word.rstrip("%"))
        for word in output_of("examples/sentence_classifier.py")[-1].split()
        if "%" in word
    )
    assert right > 98 > none + 8


@pytest.mark.nightly
def test_both_arms_of_the_pretrained_encoder_are_trained_and_compared(tmp_path):
    for split, count in (("train", 100), ("val", 8)):
        for number, language in enumerate(("en", "de")):
            lines = [
                (pair.source, pair.target)[number]
                for pair in phrasebook.pairs(split.replace("val", "valid"))
            ]
            text = "".join(line + "\n" for line in lines[:count])
            (tmp_path / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    small = ["--pairs", 100, "--epochs", 1, "--minutes", 0.001, "--vocab-size", 120]
    printed = output_of(
        "examples/pretrained_encoder.py", "--data", tmp_path, "--output", tmp_path / "runs", *small
    )
    results = json.loads(printed[-1])
    assert list(results) == ["from nothing", "from the language model"]
    assert np.isfinite([result["val_loss"] for result in results.values()]).all()
    assert [line.split(":")[0] for line in printed[-3:-1]] == list(results)


def test_the_n_grams_that_are_left_out_change_no_probability():
    """Compared with NLTK's model of all n-grams, on other rows than those measured."""
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import everygrams, ngrams

    def grams_of(row):
        """Return all n-grams except those that end in the padding before a line."""
        return [gram for gram in everygrams(row, max_len=5) if gram[-1] != "<s>"]

    draw = random.Random(5)
    rows = [["<s>"] * 4 + draw.choices("abc", k=draw.randint(1, 6)) + ["</s>"] for _ in range(40)]
    train, held_out = rows[:30], rows[30:]
    model = KneserNeyInterpolated(5, discount=0.75)
    model.fit(map(grams_of, train), {piece for row in train for piece in row})
    asked = [gram for row in held_out for gram in ngrams(row, 5)]
    bits = -sum(model.logscore(gram[-1], gram[:-1]) for gram in asked)
    n_gram_bits = runpy.run_path(str(ROOT / "scripts" / "phrasebook_lm.py"))["n_gram_bits"]
    assert n_gram_bits(train, held_out) == pytest.approx(bits)


def test_of_each_beam_the_closest_to_the_reference_are_kept_and_equal_ones_count_once(tmp_path):
    dog, shorter, cat = "Ein Hund läuft im Schnee .", "Ein Hund im Schnee .", "Eine Katze schläft ."
    beams, references, kept = (tmp_path / name for name in ("beams", "references", "kept"))
    beams.write_text("\n".join([shorter, cat, dog, cat, cat, ""]) + "\n", "utf-8")
    references.write_text(f"{dog}\n{cat}\n", "utf-8")
    output_of("scripts/multi30k/closest_translations.py", beams, references, 2, kept)
    assert kept.read_text("utf-8").splitlines() == [dog, cat, shorter, ""]
    beams.write_text("\n".join([cat] * 4) + "\n", "utf-8")
    output_of("scripts/multi30k/closest_translations.py", beams, references, 2, kept)
    assert kept.read_text("utf-8").splitlines() == [cat] * 4


@pytest.mark.nightly
def test_the_phrasebooks_language_model_beats_five_grams_and_writes_by_the_grammar(tmp_path):
    assert cli.main(["train", "phrasebook-lm", "--run-dir", str(tmp_path / "run")]) == 0
    result = json.loads(output_of("scripts/phrasebook_lm.py", tmp_path / "run")[-1])
    assert result["bits_per_byte"] < 0.9 * result["n_gram_bits_per_byte"] < 0.9
    # 94 to 97.5 % by machine, and 200 samples have a standard error of 1.5 points.
    assert result["cautious"]["grammatical"] >= 0.9


def test_the_manifest_runs_a_command_of_ours_on_as_many_processors_as_its_machines_have():
    manifest = yaml.safe_load((ROOT / "examples/kuberay/translate.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayJob")
    program, *words = shlex.split(manifest["spec"]["entrypoint"])
    verb = cli.program.commands[words[0]]
    options, _, _ = verb.make_parser(click.Context(verb)).parse_args(words[1:])
    run = options["run"]
    assert (program, verb.name) == ("tfformer", "translate")
    assert "--ray" in words

    cluster = manifest["spec"]["rayClusterSpec"]
    [machines] = cluster["workerGroupSpecs"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], machines)]
    [container] = pods[1]["containers"]
    assert machines["replicas"] * int(container["resources"]["limits"]["cpu"]) == int(
        options["workers"]
    )
    for pod in pods:
        [mount] = pod["containers"][0]["volumeMounts"]
        assert mount["name"] in [volume["name"] for volume in pod["volumes"]]
        for path in (run, options["input"], options["output"]):
            assert path.startswith(f"{mount['mountPath']}/")


def test_a_host_of_sagemaker_trains_as_the_worker_that_it_is(tmp_path):
    program = tmp_path / "tfformer"
    program.write_text('#!/bin/sh\necho "$TF_CONFIG"\necho "$@"\n')
    program.chmod(0o755)
    hosts = {"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2"}
    done = subprocess.run(
        [sys.executable, ROOT / "examples/sagemaker/train.py", "recipe.yaml", "--resume"],
        env=os.environ | hosts | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    config, words = done.stdout.splitlines()
    assert json.loads(config) == {
        "cluster": {"worker": ["algo-1:2222", "algo-2:2222"]},
        "task": {"type": "worker", "index": 1},
    }
    assert words == "train recipe.yaml --resume"
