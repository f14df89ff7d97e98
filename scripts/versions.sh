#!/usr/bin/env bash
# Run a sample of the tests with each version of TensorFlow that pyproject.toml allows: the model, its search, a short
# training, and exports that are read back. Each version has an environment in .versions, made by uv, with a Python that
# it supports and that uv finds or downloads. The arguments are pairs of a TensorFlow and a Python version, such as
# 2.20.0:3.13. If a version fails, the next version still runs.
set -uo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 2.19.1:3.12 2.20.0:3.12 2.21.0:3.13 2.22.0rc0:3.13 2.22.0rc0:3.14
sample="tests/model/test_transformer.py tests/inference/test_search.py tests/engines/test_engine.py tests/export/test_empty_batches.py
  tests/export/test_without_tensorflow_text.py"
# TensorFlow 2.22 has no TensorFlow Text yet, and its release candidate requires a development version of Keras.
left_out='tensorflow-text ; python_version < "0"
keras-nightly ; python_version < "0"'
command -v uv > /dev/null || { echo "uv is missing: source .venv/bin/activate" && exit 1; }
export TF_CPP_MIN_LOG_LEVEL=3
results=()
code=0
for pair in "$@"; do
  tensorflow="${pair%:*}"
  environment=".versions/${pair/:/-}"
  packages=(--editable ".[tensorflow,litert]" "tensorflow~=$tensorflow" pytest hypothesis)
  overrides=""
  [[ $tensorflow != 2.22* ]] || overrides="$left_out"
  uv venv --quiet --allow-existing --python "${pair#*:}" "$environment" &&
    uv pip install --quiet --python "$environment" "${packages[@]}" --override /dev/stdin <<< "$overrides" || {
    code=1
    results+=("$pair: not installed")
    continue
  }
  summary="$("$environment/bin/python" -m pytest -q -m "not nightly" $sample | tee /dev/stderr | tail -n 1)" || code=1
  results+=("$pair: $summary")
done
printf '%s\n' "${results[@]}"
exit "$code"
