#!/usr/bin/env bash
# Train and score a model: scripts/multi30k/run.sh DATA RUN [RECIPE] [--set KEY=VALUE ...]
# DATA contains train, val and test_2016_flickr (.en.gz and .de.gz, and .lc.norm.tok files of the test set). RECIPE
# defaults to multi30k-en-de. An interrupted run is resumed; a finished run is only scored.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
run="$(realpath -m "${2:?give a folder for the run}")"
shift 2
recipe=multi30k-en-de
case "${1:---}" in
  --*) ;;
  *) recipe="$1" && shift ;;
esac
[ ! -f "$recipe" ] || recipe="$(realpath "$recipe")"
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,plot,multi30k]"
export TF_CPP_MIN_LOG_LEVEL=3

if [ ! -f "$run/result.json" ]; then
  tfformer train "$recipe" --run-dir "$run" --set "data.folder=$data" "$@" $([ ! -f "$run/config.json" ] || echo --resume)
fi
python scripts/bleu_curve.py "$run/curve.png" "$run"
python scripts/multi30k/score.py "$run" "$data"
