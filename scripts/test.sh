#!/usr/bin/env bash
# Make the environment, check style and types, and pass the tests, in one process for each core, at most four, of up to
# 3 GB each. Arguments go to pytest: -m "not slow" is the fast suite, -n 0 takes one process, as --pdb needs.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tfds,plot,ctranslate2,litert,serve,ray,docs,test]"
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1 # two trainings side by side on two cores are a quarter faster so
ruff check .
ruff format --check .
mypy
python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder "$@"
