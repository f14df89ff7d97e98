#!/usr/bin/env bash
# Make docs/tour.ipynb from scripts/tour.py and run it. Only this script needs the tools that it installs.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tensorflow]"
python -m pip install $([ -t 1 ] || echo --quiet) jupytext nbconvert ipykernel
export TF_CPP_MIN_LOG_LEVEL=3
jupytext --set-kernel python3 --to ipynb --output docs/tour.ipynb scripts/tour.py
jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False docs/tour.ipynb
