#!/usr/bin/env bash
# Install, train the embedded phrasebook, score it on held-out text, translate, and draw where "it" looks.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[plot]"
run="${1:-runs/phrasebook}"
export TF_CPP_MIN_LOG_LEVEL=3

tfformer train phrasebook --run-dir "$run"
tfformer corpus phrasebook --output "$run/corpus"
tfformer evaluate "$run" --source "$run/corpus/test.en" --reference "$run/corpus/test.de"

printf '%s\n' \
  "The animal didn't cross the street because it was too tired." \
  "The animal didn't cross the street because it was too wide." \
  "Could you bring us two glasses of water, please?" \
  "When does the train to Munich arrive?" |
  tee /dev/stderr | tfformer translate "$run"

python scripts/coreference.py "$run"
