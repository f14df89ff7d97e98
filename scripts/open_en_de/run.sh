#!/usr/bin/env bash
# Train tfformer and Marian on the same text for the same time, one core each, and score both:
#   scripts/open_en_de/run.sh DATA FOLDER MARIAN [--set KEY=VALUE ...]
# DATA contains train, valid and test (.tsv.gz) and test.domains.txt. MARIAN is a Python that imports pymarian. Both
# trainers use tfformer's vocabulary. Marian starts with the first update of tfformer, and is stopped when tfformer ends.
# FOLDER must be new. The run tfformer, Marian's models, and the translations of the test set with four beams are written to FOLDER;
# tfformer translates with Marian's models too.
set -euo pipefail
data="$(realpath "${1:?give the folder of the data}")"
folder="$(realpath -m "${2:?give a folder for the runs}")"
marian="$(realpath -s "${3:?give a Python that imports pymarian}")"
shift 3
[ ! -e "$folder" ] || { echo "$folder exists; give a new folder" >&2; exit 1; }
cd "$(dirname "$0")/../.."
source scripts/environment.sh "[tensorflow,plot]"
export TF_CPP_MIN_LOG_LEVEL=3 TF_NUM_INTRAOP_THREADS=1 OMP_NUM_THREADS=1
text="$folder/text" models="$folder/marian"
mkdir -p "$text" "$models" "$folder/test"

for part in train valid test; do
  gzip -dc "$data/$part.tsv.gz" | tee >(cut -f1 > "$text/$part.en") | cut -f2 > "$text/$part.de"
done
taskset -c 0 tfformer train scripts/open_en_de/recipe.yaml --run-dir "$folder/tfformer" --set "data.folder=$data" "$@" &
tfformer=$!
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
until [ -f "$folder/tfformer/tokenizer.model" ]; do # it is written just before the first update
  kill -0 $tfformer 2> /dev/null || { echo "tfformer ended before its first update" >&2; exit 1; }
  sleep 1
done
cp "$folder/tfformer/tokenizer.model" "$text/vocab.spm"
touch "$models/started"
taskset -c 1 "$marian" scripts/open_en_de/marian.py "$text" "$models" > "$models/log" 2>&1 &
trainer=$!
wait $tfformer
kill $trainer || { echo "Marian ended early; see $models/log" >&2; exit 1; }
wait $trainer || true

python scripts/open_en_de/marian_curve.py "$text" "$models" > "$folder/marian.json"
translate_test() { # RUN NAME
  tfformer translate "$1" --beam-size 4 --length-penalty 1 --input "$text/test.en" --output "$folder/test/$2.de"
}
translate_test "$folder/tfformer" tfformer
translate_test "$models/runs/model" marian
python scripts/bleu_curve.py "$folder/curve.png" "$folder/tfformer" "$folder/marian.json"
tfformer compare "$folder/test/tfformer.de" "$folder/test/marian.de" --source "$text/test.en" --reference "$text/test.de"
python scripts/open_en_de/score_domains.py "$data" "$folder/test/tfformer.de" "$folder/test/marian.de"
