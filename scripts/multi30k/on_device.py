#!/usr/bin/env python
"""Measure what a Multi30k run's LiteRT files are and do: scripts/multi30k/on_device.py RUN DATA

The float32 files, greedy and with five beams, must give the run's own translations of the first 200 test sentences, or
their export fails. Then of each kind of file the size, and how fast export/on_device/translate.py translates the whole
test set with it (two threads, one sentence after the other, the start of the program included) and its BLEU. Then how
many of the 200 sentences the exported page translates in headless Chromium as Python does with the same file, token for
token, and how fast. The last line is JSON. Needs: pip install -e '.[litert]', chromium, Node.js 20 or newer and npm
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfformer.cli.verbs import import_tensorflow

import_tensorflow()

from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.export import formats as export  # noqa: E402
from tfformer.export import parity, web_page  # noqa: E402
from tfformer.export.litert.writer import QUANTIZATIONS  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.inference.translator import Translator  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402

TEST, CHECKED = "test_2016_flickr", 200
TRANSLATE = Path(__file__).parents[2] / "export" / "on_device" / "translate.py"


def main(run: str, data: str) -> None:
    if missing := [program for program in ("chromium", "node", "npm") if not shutil.which(program)]:
        sys.exit(f"install {' and '.join(missing)}: the exported page is tried in a browser")
    directory, found = Run.open(run), {}
    sentences, references = (
        list(read_lines(Path(data, f"{TEST}.{name}.gz")))
        for name in directory.config.data.languages
    )
    for static in (False, True):
        shapes = "static" if static else "dynamic"
        with tempfile.TemporaryDirectory() as folder:
            export.tflite(run, folder, static=static, beam_size=5, samples=sentences[:CHECKED])
        print(
            f"float32, {shapes}: {CHECKED} of {CHECKED} sentences as the run translates them, greedy and with 5 beams"
        )
        for quantize in QUANTIZATIONS:
            with tempfile.TemporaryDirectory() as folder:
                version = export.tflite(run, folder, quantize=quantize, static=static)
                measured = measure(version, directory, sentences, references)
            print(f"{quantize}, {shapes}: {measured}", flush=True)
            found[f"{quantize} {shapes}"] = measured
    for quantize in QUANTIZATIONS:
        measured = in_chromium(run, quantize, sentences[:CHECKED])
        print(f"{quantize}, in Chromium: {measured}", flush=True)
        found[f"{quantize} in Chromium"] = measured
    print(json.dumps(found))


def measure(
    version: Path, run: Run, sentences: list[str], references: list[str]
) -> dict[str, float]:
    """The size of the file in bytes, target tokens a second, sacreBLEU 13a."""
    command, text = (
        [sys.executable, TRANSLATE, version, "--threads", "2"],
        "".join(f"{line}\n" for line in sentences),
    )
    start = time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True)
    seconds = time.perf_counter() - start
    translations = done.stdout.splitlines()
    tokens = sum(len(ids) + 1 for ids in run.tokenizers.target.encode(translations))
    return {
        "bytes": (version / "model.tflite").stat().st_size,
        "tokens_per_second": round(tokens / seconds),
        "bleu": round(scores(translations, references)["bleu"], 2),
    }


def in_chromium(run: str, quantize: str, sentences: list[str]) -> dict[str, int]:
    """How many translations of the page are LiteRT's in Python, token for token; the page's target tokens a second."""
    with tempfile.TemporaryDirectory() as folder:
        page = export.web(run, folder, quantize=quantize)
        command = [
            "node",
            web_page.SOURCES / "test" / "browser.mjs",
            page,
            shutil.which("chromium"),
        ]
        done = subprocess.run(
            command, input=json.dumps(sentences), capture_output=True, encoding="utf-8", check=True
        )
        model, translator = page / "model" / "model.tflite", Translator.load(run)
        expected, _ = parity.litert_greedy(model, translator, sentences, static=True)
    found = json.loads(done.stdout)
    if "translations" not in found:
        sys.exit(f"{quantize}, in Chromium: {found['state']}")
    ids, tokens, seconds = zip(
        *((t["ids"], t["tokens"], t["seconds"]) for t in found["translations"]), strict=True
    )
    same = sum(map(list.__eq__, expected, ids))
    return {
        "same": same,
        "of": len(sentences),
        "tokens_per_second": round(sum(tokens) / sum(seconds)),
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
