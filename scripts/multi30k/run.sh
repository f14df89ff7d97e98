#!/usr/bin/env bash
# From the data to the scores: scripts/multi30k/run.sh DATA RUN [RECIPE] [--set KEY=VALUE ...]
# DATA holds train, val and test_2016_flickr (.en.gz, .de.gz, and the test set's .lc.norm.tok ones). The recipe is
# multi30k-en-de unless another one is named. A run that was interrupted is resumed, one that is there is scored.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
run="$(realpath -m "${2:?give a folder for the run}")"
recipe="${3:-multi30k-en-de}"
[ ! -f "$recipe" ] || recipe="$(realpath "$recipe")"
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,plot,multi30k]"
export TF_CPP_MIN_LOG_LEVEL=3

if [ ! -f "$run/result.json" ]; then
  tfformer train "$recipe" --run-dir "$run" --set "data.folder=$data" "$@" $([ ! -f "$run/config.json" ] || echo --resume)
fi
python scripts/multi30k/curve.py "$run" "$run/curve.png"
python scripts/multi30k/score.py "$run" "$data"
