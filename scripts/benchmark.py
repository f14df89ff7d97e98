#!/usr/bin/env python
"""Measurements of tfformer.

Each prints machine and versions first, and ends in one JSON line.

scripts/benchmark.py decode     tokens per second of the exported search, beside CTranslate2,
                                keras-hub and a decoder without a cache
scripts/benchmark.py train      training tokens per second, beside keras-hub, Keras, OpenNMT-tf and
                                PyTorch
scripts/benchmark.py gpu        training and decoding on a GPU, beside PyTorch and Transformers
scripts/benchmark.py on-device  the LiteRT file beside CTranslate2 int8: tokens per second, memory,
                                cold start
scripts/benchmark.py serve      sentences per second that several clients get from `tfformer serve`

A measurement is the module of that name in scripts/benchmarks; --help after its name tells its
options. The peers come with: pip install -e '.[bench]'
"""

import argparse
import importlib
import json
from pathlib import Path

from benchmarks._machine import machine, print_machine

MEASUREMENTS = sorted(path.stem for path in (Path(__file__).parent / "benchmarks").glob("[!_]*.py"))


def main() -> None:
    """Run the measurement that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="measurement", required=True)
    modules = {}
    for name in MEASUREMENTS:
        module = importlib.import_module(f"benchmarks.{name}")
        verb = name.replace("_", "-")
        module.add_options(verbs.add_parser(verb, help=module.__doc__.splitlines()[0]))
        modules[verb] = module
    options = parser.parse_args()
    described = machine()
    print_machine(described)
    measured = modules[options.measurement].measure(options)
    print(json.dumps({"machine": described} | measured))


if __name__ == "__main__":
    main()
