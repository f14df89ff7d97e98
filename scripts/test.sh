#!/usr/bin/env bash
# Make the environment, check style and types, and run the tests, in one process per core plus one, at most five, of up
# to 3 GB each. Arguments are passed to pytest: -m "not slow" selects the fast suite, -n 0 uses one process, as --pdb
# requires. scripts/nightly.sh runs the tests that are left out here: documentation, installers, full sweeps.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tensorflow,tfds,plot,ctranslate2,litert,serve,ray,docs,test]"
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1 # this makes two parallel trainings on two cores a quarter faster
uv lock --check --offline --quiet || { echo "uv.lock is older than pyproject.toml: run uv lock" && exit 1; }
ruff check .
ruff format --check .
mypy & # in parallel with the tests
processes=$(($(nproc) + 1)) # one more, because a process sometimes waits for a file or another process
types=$! code=0
python -m pytest --numprocesses "$((processes < 5 ? processes : 5))" --dist loadfile --no-loadscope-reorder --durations 20 -m "not nightly" "$@" ||
  code=$?
wait $types || { echo "mypy found the errors above" && exit 1; }
exit $code
