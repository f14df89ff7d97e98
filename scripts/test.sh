#!/usr/bin/env bash
# Make the environment, check style and types, and pass the tests, in a process for each core and one more, at most five, of
# up to 3 GB each. Arguments go to pytest: -m "not slow" is the fast suite, -n 0 takes one process, as --pdb needs.
# scripts/nightly.sh has what is left out here: documentation, installers, whole sweeps.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tensorflow,tfds,plot,ctranslate2,litert,serve,ray,docs,test]"
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1 # two trainings side by side on two cores are a quarter faster so
uv lock --check --offline --quiet || { echo "uv.lock is older than pyproject.toml: run uv lock" && exit 1; }
ruff check .
ruff format --check .
mypy & # beside the tests
processes=$(($(nproc) + 1)) # as now and then one waits for a file or another process
python -m pytest --numprocesses "$((processes < 5 ? processes : 5))" --dist loadfile --no-loadscope-reorder --durations 20 -m "not nightly" "$@"
wait $! || { echo "mypy found the errors above" && exit 1; }
