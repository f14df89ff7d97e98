#!/usr/bin/env python
"""Measurements of tfformer; each prints what it does and ends in one JSON line.

scripts/benchmark.py length     is a token of a long translation as cheap as one of a short translation?
scripts/benchmark.py decode     tokens per second of the exported search, beside CTranslate2, keras-hub, a plain decoder
scripts/benchmark.py train      training tokens per second, beside keras-hub, Keras, OpenNMT-tf and PyTorch
scripts/benchmark.py step       where the time of a training step goes, and how far from its floor it is
scripts/benchmark.py on-device  the LiteRT file beside CTranslate2 int8: tokens per second, memory, cold start
scripts/benchmark.py serve      what do several clients at once get from `tfformer serve`?

A measurement is the module of that name in scripts/benchmarks; --help after its name tells its options. The peers come
with: pip install -e '.[bench]'
"""

import argparse
import importlib
import json
from pathlib import Path

MEASUREMENTS = sorted(path.stem for path in (Path(__file__).parent / "benchmarks").glob("[!_]*.py"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="measurement", required=True)
    modules = {
        name.replace("_", "-"): importlib.import_module(f"benchmarks.{name}")
        for name in MEASUREMENTS
    }
    for name, module in modules.items():
        module.add_options(verbs.add_parser(name, help=module.__doc__.splitlines()[0]))
    options = parser.parse_args()
    print(json.dumps(modules[options.measurement].measure(options)))


if __name__ == "__main__":
    main()
