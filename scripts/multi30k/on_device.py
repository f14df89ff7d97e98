#!/usr/bin/env python
"""Measure size, speed and quality of a Multi30k run's LiteRT files.

scripts/multi30k/on_device.py RUN DATA

The float32 files, greedy and with five beams, must give the run's own translations of the first 200
test sentences, or their export fails. Then of each kind of file the size, and how fast
export/on_device/sample.py translates the whole test set with it (two threads, one sentence
after the other, the start of the program included) and its BLEU. Then how many of the 200 sentences
the exported page translates in headless Chromium as Python does with the same file, and how
fast. The last line is JSON. Needs: pip install -e '.[litert]', chromium, Node.js 20
or newer and npm
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.engines import open_engine  # noqa: E402
from tfformer.export.litert.format import QUANTIZATIONS  # noqa: E402
from tfformer.export.pipeline import export_model  # noqa: E402
from tfformer.export.web.page import SOURCES  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402

TEST, CHECKED = "test_2016_flickr", 200
SAMPLE = Path(__file__).parents[2] / "export" / "on_device" / "sample.py"


def main(run_path: str, data: str) -> None:
    """Print the figures of every kind of file, and of the page."""
    if missing := [program for program in ("chromium", "node", "npm") if not shutil.which(program)]:
        sys.exit(f"install {' and '.join(missing)}: the exported page is tried in a browser")
    run = Run.open(run_path)
    source, target = run.config.data.languages
    sentences = list(read_lines(Path(data, f"{TEST}.{source}.gz")))
    references = list(read_lines(Path(data, f"{TEST}.{target}.gz")))
    samples = sentences[:CHECKED]
    measured = {}
    for static in (False, True):
        shapes = "static" if static else "dynamic"
        with tempfile.TemporaryDirectory() as folder:
            settings = {"static": static, "beam_size": 5, "samples": samples}
            export_model(run_path, folder, "litert", **settings)
        same = f"{CHECKED} of {CHECKED} sentences as the run translates them"
        print(f"float32, {shapes}: {same}, greedy and with 5 beams")
        for quantize in QUANTIZATIONS:
            with tempfile.TemporaryDirectory() as folder:
                settings = {"static": static, "quantize": quantize}
                version = export_model(run_path, folder, "litert", **settings)
                figures = measure(version, run, sentences, references)
            print(f"{quantize}, {shapes}: {figures}", flush=True)
            measured[f"{quantize} {shapes}"] = figures
    for quantize in QUANTIZATIONS:
        figures = in_chromium(run_path, quantize, samples)
        print(f"{quantize}, in Chromium: {figures}", flush=True)
        measured[f"{quantize} in Chromium"] = figures
    print(json.dumps(measured))


def measure(
    version: Path, run: Run, sentences: list[str], references: list[str]
) -> dict[str, float]:
    """Return the size of the file in bytes, target tokens a second and sacreBLEU 13a."""
    command = [sys.executable, SAMPLE, version]
    text = "".join(f"{line}\n" for line in sentences)
    start = time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True)
    seconds = time.perf_counter() - start
    hypotheses = done.stdout.splitlines()
    tokens = sum(len(ids) + 1 for ids in run.tokenizers.target.encode(hypotheses))
    return {
        "bytes": (version / "model.tflite").stat().st_size,
        "tokens_per_second": round(tokens / seconds),
        "bleu": round(scores(hypotheses, references)["bleu"], 2),
    }


def in_chromium(run_path: str, quantize: str, sentences: list[str]) -> dict[str, int]:
    """Return the number of the page's translations that are Python's.

    Its target tokens a second come with it.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = export_model(run_path, folder, "web", quantize=quantize)
        program = SOURCES / "test" / "browser.mjs"
        command = ["node", program, page, shutil.which("chromium")]
        text = json.dumps(sentences)
        done = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", check=True
        )
        with open_engine(page / "model") as engine:
            expected = engine.translate(sentences)
    answer = json.loads(done.stdout)
    if "translations" not in answer:
        sys.exit(f"{quantize}, in Chromium: {answer['state']}")
    translations = answer["translations"]
    texts = [translation["text"] for translation in translations]
    tokens = sum(translation["tokens"] for translation in translations)
    seconds = sum(translation["seconds"] for translation in translations)
    return {
        "same": sum(map(str.__eq__, expected, texts)),
        "of": len(sentences),
        "tokens_per_second": round(tokens / seconds),
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
