#!/usr/bin/env bash
# Compare rotary positions, RMSNorm and SwiGLU with the paper's layers at equal training time:
#   scripts/multi30k/variants.sh DATA FOLDER MINUTES [SEED ...]
# Adam and Muon train each of the eight models, with each seed (1 and 2 by default), for about MINUTES on one core: two
# runs at once, on cores 0 and 1, which should be idle. A trial measures each model's time per update, and thus the
# number of updates after which the schedule ends. Adam's rate is the best of three on val, for the first model and
# seed. Each run is scored once on val and on the test set, with greedy search; the last line of the table is JSON.
# Interrupted runs are resumed, finished runs used. The variables OPTIMIZERS and VARIANTS select a part of the table,
# for example VARIANTS="interleaved-pre-relu rotary-rms-swiglu". For DATA, see run.sh.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath -m "${2:?give a folder for the runs}")"
minutes="${3:?give the minutes of each training}"
shift 3
seeds="${*:-1 2}"
cd "$(dirname "$0")/../.."
command -v tfformer > /dev/null || source scripts/environment.sh "[tensorflow]"
export TF_CPP_MIN_LOG_LEVEL=3 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 OMP_NUM_THREADS=1
export data folder minutes
optimizers="${OPTIMIZERS:-adam muon}"
variants="${VARIANTS:-$(echo {interleaved,rotary}-{pre,rms}-{relu,swiglu})}" # position_layout, norm, activation
mkdir -p "$folder/runs" "$folder/trials"
for language in en de; do gzip -dc "$data/val.$language.gz" | sed -n 1,4p > "$folder/short.$language"; done

train() { # RUN OPTIMIZER RATE VARIANT [KEY=VALUE ...]; xargs sets $core
  local run="$folder/$1" optimizer="$2" rate="$3" positions norm activation decay=0
  IFS=- read -r positions norm activation <<< "$4"
  shift 4
  [ "$optimizer" = adam ] || decay=0.1
  [ -f "$run/result.json" ] || taskset -c "$core" tfformer train multi30k-en-de --run-dir "$run" --set \
    "data.folder=$data" "data.cache=$folder/text" "model.norm=$norm" "model.activation=$activation" \
    "model.dialect={position_layout: $positions}" "training.optimizer=$optimizer" "training.learning_rate=$rate" \
    "training.weight_decay=$decay" training.warmup_steps=100 training.shards=1 decoding.beam_size=1 \
    "$@" $([ ! -f "$run/config.json" ] || echo --resume) >> "$run.log" 2>&1
}

trial() { # OPTIMIZER VARIANT
  train "trials/$1-$2" "$1" 0.001 "$2" "data.valid=['$folder/short.en','$folder/short.de']" training.epochs=6 \
    training.epoch_steps=10 training.validate_every=6
}

measured() { # OPTIMIZER RATE VARIANT SEED
  local name="runs/$1-$2-$3-$4" updates
  updates="$(python scripts/multi30k/variants_table.py updates "$folder/trials/$1-$3" "$minutes")"
  train "$name" "$1" "$2" "$3" "training.seed=$4" training.epochs=10 "training.epoch_steps=$((updates / 10))" \
    training.validate_every=10
  [ -s "$folder/$name.test.json" ] || taskset -c "$core" tfformer evaluate "$folder/$name" \
    --source "$data/test_2016_flickr.en.gz" --reference "$data/test_2016_flickr.de.gz" 2>> "$folder/$name.log" |
    tail -n 1 > "$folder/$name.test.json"
}

two_at_once() { # FUNCTION, whose arguments are the lines of the input
  xargs -r -P 2 -L 1 --process-slot-var=core bash -euo pipefail -c '"$@"' _ "$1"
}
export -f train trial measured

for optimizer in $optimizers; do
  for variant in $variants; do echo "$optimizer" "$variant"; done
done | two_at_once trial

declare -A rates=([muon]=0.01) # RESULTS.md
if [[ " $optimizers " = *" adam "* ]]; then
  for rate in 0.002 0.004 0.008; do echo adam "$rate" "${variants%% *}" "${seeds%% *}"; done | two_at_once measured
  rates[adam]="$(python scripts/multi30k/variants_table.py rate "$folder"/runs/adam-*-"${variants%% *}-${seeds%% *}")"
fi
for seed in $seeds; do
  for optimizer in $optimizers; do
    for variant in $variants; do echo "$optimizer" "${rates[$optimizer]}" "$variant" "$seed"; done
  done
done | two_at_once measured
python scripts/multi30k/variants_table.py table "$folder"
