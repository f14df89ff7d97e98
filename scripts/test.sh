#!/usr/bin/env bash
# Make the environment and pass the tests, in a process for each core but four at most, which take 2.5 GB each.
# Arguments go to pytest: scripts/test.sh -m "not slow" is the fast suite.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tfds,plot,ctranslate2,litert,serve,test]"
export TF_CPP_MIN_LOG_LEVEL=3
ruff check .
python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile "$@"
