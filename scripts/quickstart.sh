#!/usr/bin/env bash
# Install, train the embedded phrasebook, score it on held-out text, translate, and draw where "it" looks. The run goes
# to runs/phrasebook or the folder given; one that was interrupted is resumed, one that is there is used.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[plot]"
run="${1:-runs/phrasebook}"
export TF_CPP_MIN_LOG_LEVEL=3

if [ ! -f "$run/result.json" ]; then
  tfformer train phrasebook --run-dir "$run" $([ ! -f "$run/config.json" ] || echo --resume)
fi
[ -f "$run/corpus/test.de" ] || tfformer corpus phrasebook --output "$run/corpus"
tfformer evaluate "$run" --source "$run/corpus/test.en" --reference "$run/corpus/test.de"

printf '%s\n' \
  "The animal didn't cross the street because it was too tired." \
  "The animal didn't cross the street because it was too wide." \
  "Could you bring us two glasses of water, please?" \
  "When does the train to Munich arrive?" |
  tee >(cat >&2) | tfformer translate "$run"

python scripts/coreference.py "$run"
