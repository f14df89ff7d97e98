#!/usr/bin/env python
"""Measurements of tfformer.

Each measurement first prints the machine and the versions; its last line is JSON.

scripts/benchmark.py decode     tokens per second of the exported search, beside CTranslate2
                                and keras-hub
scripts/benchmark.py train      training tokens per second, beside keras-hub, Keras and PyTorch
scripts/benchmark.py gpu        training and decoding on a GPU, beside PyTorch and Transformers
scripts/benchmark.py on-device  the LiteRT file beside CTranslate2 int8: tokens per second, memory,
                                cold start
scripts/benchmark.py students   a student's exports beside pymarian, fxtranslate and its teacher in
                                CTranslate2: tokens per second, memory, megabytes
scripts/benchmark.py serve      sentences per second that several clients get from `tfformer serve`

Each measurement is the module of the same name in scripts/benchmarks; --help after the name lists
its options. To install the peers: pip install -e '.[bench]'
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
        title, *_ = (module.__doc__ or "").splitlines()
        module.add_options(verbs.add_parser(verb, help=title))
        modules[verb] = module
    options = parser.parse_args()
    described = machine()
    print_machine(described)
    measured = modules[options.measurement].measure(options)
    print(json.dumps({"machine": described} | measured))


if __name__ == "__main__":
    main()
