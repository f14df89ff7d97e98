#!/usr/bin/env bash
# Run the fast suite with each version of TensorFlow that pyproject.toml allows. Each version has an environment in
# .versions, made by uv, with a Python that it supports and that uv finds or downloads. Tests that need a package which
# the version cannot install are skipped, and name it. The arguments are pairs of a TensorFlow and a Python version, such
# as 2.20.0:3.13. If a version fails, the next version still runs.
set -uo pipefail
cd "$(dirname "$0")/.."
unset VIRTUAL_ENV PYTHONPATH # the environments in .versions only
unset PYTHONDONTWRITEBYTECODE # see environment.sh
[ $# -gt 0 ] || set -- 2.19.1:3.12 2.20.0:3.12 2.21.0:3.13 2.22.0rc0:3.13 2.22.0rc0:3.14
command -v uv > /dev/null || { echo "uv is missing: source .venv/bin/activate" && exit 1; }
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1

overrides() { # TENSORFLOW: requirements that replace those of packages
  echo "tensorflow==$1" # tensorflow-serving-api, whose messages the tests read, does not allow 2.20 and 2.22
  local text="tensorflow-text==${1%.*}.*" # a newer one does not load
  case "$1" in
    2.19.*) # it does not allow newer versions of protobuf, and keras-hub does not allow 2.19
      printf '%s\n' "protobuf<6" "tensorflow-serving-api<2.20" 'keras-hub ; python_version < "0"' ;;
    2.22.*) # it has no TensorFlow Text yet, and its release candidate requires a development version of Keras
      text='tensorflow-text ; python_version < "0"'
      printf '%s\n' 'keras-nightly ; python_version < "0"' ;;
  esac
  echo "$text"
}

results=()
code=0
for pair in "$@"; do
  environment=".versions/${pair/:/-}"
  uv venv --quiet --allow-existing --python "${pair#*:}" "$environment" &&
    overrides "${pair%:*}" | uv pip install --quiet --python "$environment" --override /dev/stdin \
      --editable ".[test,litert,ctranslate2,serve,plot]" || {
    code=1
    results+=("$pair: not installed")
    continue
  }
  summary="$("$environment/bin/python" -m pytest -m "not slow" --numprocesses 2 --dist loadfile | tee --append /dev/stderr | tail -n 1)" || code=1
  results+=("$pair: $summary")
done
printf '%s\n' "${results[@]}"
exit "$code"
