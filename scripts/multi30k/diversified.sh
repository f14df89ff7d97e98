#!/usr/bin/env bash
# Run data diversification (Nguyen et al. 2020) from the data to the scores:
#   scripts/multi30k/diversified.sh DATA FOLDER [--set KEY=VALUE ...]
# A model of each direction translates the training text, and the two of five translations that are closest to the
# reference are kept (see closest_translations.py). A third model learns from the real pairs, each used twice, and from the pairs
# with a translated source or target. Settings below replace the recipe's. For DATA, see run.sh. The runs forward,
# backward and final, and the text in corpus, are written to FOLDER. Interrupted runs are resumed, finished runs used.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath -m "${2:?give a folder for the runs}")"
shift 2
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,plot,multi30k]"
export TF_CPP_MIN_LOG_LEVEL=3
corpus="$folder/corpus"
mkdir -p "$corpus"

teach() { # RUN SOURCE TARGET [--set ...]
  local run="$folder/$1" source="$2" target="$3"
  shift 3
  [ -f "$run/result.json" ] || tfformer train multi30k-en-de --run-dir "$run" --set \
    "data.folder=$data" "data.train=[train.$source.gz,train.$target.gz]" \
    "data.valid=[val.$source.gz,val.$target.gz]" "data.languages=[$source,$target]" model.dropout=0.2 \
    training.weight_decay=0.05 training.epochs=20 training.warmup_steps=300 \
    "$@" $([ ! -f "$run/config.json" ] || echo --resume)
}

translate() { # RUN SOURCE TARGET
  local source="$2" target="$3" translations="$corpus/$1.$3"
  [ -f "$translations.5" ] ||
    tfformer translate "$folder/$1" --input "$data/train.$source.gz" --n-best 5 --output "$translations.5"
  [ -f "$translations" ] ||
    python scripts/multi30k/closest_translations.py "$translations.5" "$data/train.$target.gz" 2 "$translations"
}

teach forward en de "$@"
teach backward de en "$@"
# Run both at once, because one translation uses one core. The pipe carries no data; it ends both on an interruption.
translate forward en de >&2 | translate backward de en
if [ ! -f "$folder/final/config.json" ]; then
  english="$data/train.en.gz" german="$data/train.de.gz"
  (gzip -dc "$english" "$english" "$english" "$english"; cat "$corpus/backward.en") > "$corpus/train.en"
  (gzip -dc "$german" "$german"; cat "$corpus/forward.de"; gzip -dc "$german" "$german") > "$corpus/train.de"
fi
bash scripts/multi30k/run.sh "$data" "$folder/final" multi30k-en-de \
  --set "data.train=['$corpus/train.en','$corpus/train.de']" model.d_model=256 model.d_ff=512 \
  model.num_decoder_layers=2 model.use_bias=false training.learning_rate=0.007 training.epoch_steps=134 \
  training.epochs=42 training.validate_every=6 "$@"
