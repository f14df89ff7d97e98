#!/usr/bin/env bash
# Data diversification (Nguyen et al. 2020), from the data to the scores:
#   scripts/multi30k/diversified.sh DATA FOLDER [--set KEY=VALUE ...]
# A translator of each direction translates the training text; a third one learns from the real pairs and from both sets
# of pairs that are half translated: all by the recipe of the hour, but for what is set below. DATA is what run.sh takes.
# FOLDER gets the runs forward, backward and final, and corpus, the text between them. A run that was interrupted is
# resumed, what is there is used.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath -m "${2:?give a folder for the runs}")"
shift 2
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[plot,multi30k]"
export TF_CPP_MIN_LOG_LEVEL=3
corpus="$folder/corpus"
mkdir -p "$corpus"

teach_and_translate() { # RUN SOURCE TARGET [--set ...]
  local run="$folder/$1" source="$2" target="$3" translations="$corpus/$1.$3"
  shift 3
  [ -f "$run/result.json" ] || tfformer train multi30k-en-de --run-dir "$run" --set \
    "data.folder=$data" "data.train=[train.$source.gz,train.$target.gz]" \
    "data.valid=[val.$source.gz,val.$target.gz]" "data.languages=[$source,$target]" model.dropout=0.2 \
    training.weight_decay=0.05 training.epochs=20 training.total_steps=2680 training.warmup_steps=300 "$@" \
    $([ ! -f "$run/config.json" ] || echo --resume)
  [ -f "$translations" ] || tfformer translate "$run" --input "$data/train.$source.gz" --output "$translations"
}

teach_and_translate forward en de "$@"
teach_and_translate backward de en "$@"
if [ ! -f "$folder/final/config.json" ]; then
  (gzip -dc "$data/train.en.gz" "$data/train.en.gz"; cat "$corpus/backward.en") > "$corpus/train.en"
  (gzip -dc "$data/train.de.gz"; cat "$corpus/forward.de"; gzip -dc "$data/train.de.gz") > "$corpus/train.de"
fi
bash scripts/multi30k/run.sh "$data" "$folder/final" multi30k-en-de \
  --set "data.train=['$corpus/train.en','$corpus/train.de']" model.d_model=192 model.d_ff=384 \
  training.learning_rate=0.008 training.epoch_steps=134 training.epochs=54 training.total_steps=7236 "$@"
