#!/usr/bin/env bash
# Train both sizes of students on the translations of the run of run.sh, and score them by domain:
#   scripts/open_en_de/students.sh DATA FOLDER
# DATA and FOLDER are those of run.sh. The teacher, the run tfformer, translates every fifth sentence of the training text
# greedily. Then each student trains on one core. The runs student-tiny and student-base, and in models their LiteRT
# exports, are written to FOLDER, which must not contain them. The search is greedy.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath "${2:?give the folder of run.sh}")"
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,litert]"
export TF_CPP_MIN_LOG_LEVEL=3 TF_NUM_INTRAOP_THREADS=1 OMP_NUM_THREADS=1
text="$folder/text"
settings=("data.folder=$data" data.valid=valid.tsv.gz "data.languages=[en,de]" data.batch_tokens=2048
  tokenizer.vocab_size=16000 training.epochs=6 training.validate_every=2 training.dtype=mixed_bfloat16)

awk 'NR % 5 == 1' "$text/train.en" | split --lines 60000 --additional-suffix .en - "$text/fifth-"
taskset -c 0 tfformer distill "$folder/tfformer" --text "$text/fifth-*.en" --recipe student-tiny \
  --run-dir "$folder/student-tiny" --beam-size 1 --set "${settings[@]}" training.epoch_steps=300
taskset -c 0 tfformer train student-base --run-dir "$folder/student-base" \
  --set "${settings[@]}" "data.train=$folder/student-tiny/pairs/*.tsv.gz" training.epoch_steps=140

for run in tfformer student-tiny student-base; do
  tfformer translate "$folder/$run" --beam-size 1 --input "$text/test.en" --output "$folder/test/$run-greedy.de"
done
for size in tiny base; do
  run="$folder/student-$size"
  tfformer shortlist "$run"
  tfformer translate "$run" --input "$text/test.en" --output "$folder/test/student-$size-shortlist.de"
  tfformer export "$run" --format litert --quantize int8 --output "$folder/models/student-$size"
  tfformer translate "$folder/models/student-$size" --input "$text/test.en" --output "$folder/test/student-$size-int8.de"
done
python scripts/open_en_de/score_domains.py "$data" "$folder"/test/{tfformer,student}-*.de
