#!/bin/sh
# Ask a running server everything once: state, metadata, both translations, scores, and what it must refuse.
#   smoke_test.sh [http://HOST:PORT [MODEL]]
set -eu

server=${1:-http://127.0.0.1:8501}
model=${2:-phrasebook}
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# expect STATUS WORD PATH [BODY]: the answer has this status and, somewhere, this word.
expect() {
  status=$1 word=$2 path=$3
  shift 3
  found=$(curl --silent --show-error --max-time 60 --output "$answer" --write-out '%{http_code}' ${1+--data "$1"} \
    "$server/v1/models/$path")
  if [ "$found" != "$status" ] || ! grep -q -- "$word" "$answer"; then
    echo "FAILED: $path gave $found, expected $status and the word $word: ${1-}" >&2
    head -c 500 "$answer" >&2
    exit 1
  fi
  echo "ok: $status $path ${1-}"
}

expect 200 AVAILABLE "$model"
for signature in serving_default translate_beam translate_prefix translate_ids score; do
  expect 200 "\"$signature\"" "$model/metadata"
done
expect 200 '"translation"' "$model:predict" '{"instances": ["Good morning."]}'
expect 200 '"translation"' "$model:predict" '{"inputs": {"text": ["Good morning.", ""]}}'
expect 200 '"scores"' "$model:predict" '{"signature_name": "translate_beam", "instances": [{"text": "Good morning."}]}'
expect 200 '"probabilities"' "$model:predict" \
  '{"signature_name": "translate_prefix", "instances": [{"text": "Good morning.", "prefix": ""}]}'
expect 200 '"log_prob"' "$model:predict" \
  '{"signature_name": "score", "instances": [{"source": "Good morning.", "target": "Guten Morgen."}]}'
expect 400 '"error"' "$model:predict" 'no JSON'
expect 400 '"error"' "$model:predict" '{"instances": []}'
expect 400 '"error"' "$model:predict" '{"instances": [7]}'
expect 400 '"error"' "$model:predict" '{"inputs": {"txt": ["Good morning."]}}'
expect 400 '"error"' "$model:predict" '{"signature_name": "none", "instances": ["Good morning."]}'
expect 404 '"error"' "$model/versions/999999:predict" '{"instances": ["Good morning."]}'
expect 404 '"error"' "no-such-model:predict" '{"instances": ["Good morning."]}'
expect 200 AVAILABLE "$model"
echo "all is well"
