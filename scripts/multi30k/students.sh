#!/usr/bin/env bash
# Distil a student from a teacher and score both: scripts/multi30k/students.sh DATA FOLDER [--set KEY=VALUE ...]
# The settings replace the student's. For DATA, see run.sh. The runs teacher and student, and the text that the teacher
# translates, are written to FOLDER. Interrupted runs are resumed, finished runs used.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath -m "${2:?give a folder for the runs}")"
shift 2
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,plot,multi30k]"
export TF_CPP_MIN_LOG_LEVEL=3
mkdir -p "$folder"

bash scripts/multi30k/run.sh "$data" "$folder/teacher" multi30k-en-de --set training.epochs=30
if [ ! -f "$folder/student/result.json" ]; then
  paste <(gzip -dc "$data/train.en.gz") <(gzip -dc "$data/train.de.gz") > "$folder/train.tsv"
  tfformer distill "$folder/teacher" --text "$folder/train.tsv" --recipe student-tiny --run-dir "$folder/student" \
    --beam-size 4 --set "data.folder=$data" "data.valid=[val.en.gz,val.de.gz]" data.max_length=100 \
    data.batch_tokens=4096 tokenizer.vocab_size=4000 model.dropout=0.3 training.epochs=30 training.validate_every=3 \
    training.dtype=mixed_bfloat16 "$@"
fi
python scripts/multi30k/score.py "$folder/student" "$data"
