#!/usr/bin/env bash
# Install, train on the built-in phrasebook, score the model on held-out text, translate, and draw which words decide
# "it". The run is written to runs/phrasebook or the folder $1; an interrupted run is resumed, and a finished run is
# used.
set -euo pipefail
run="$([ -z "${1:-}" ] || realpath -m "$1")"
cd "$(dirname "$0")/.."
run="${run:-runs/phrasebook}"
export TF_CPP_MIN_LOG_LEVEL=3

heading() { printf '\n== %s\n' "$1"; }

# Read English sentences; print each beside its translation, as aligned columns.
translated() {
  local sources translations
  sources="$(cat)"
  translations="$(tfformer translate "$run" <<< "$sources")"
  paste <(echo "$sources") <(echo "$translations") |
    awk -F '\t' '{ printf "  %-62s%s\n", $1, $2 }'
}

# Print the output of a program, except the last line, JSON, which is written to a file of the run.
kept() { awk -v json="$run/$1.json" '/^[{]/ { print > json; next } { print; fflush() }'; }

heading "1 of 4: install TensorFlow and tfformer into .venv: 2.5 GB on the disk, a few minutes the first time"
source scripts/environment.sh "[tensorflow,plot]"

heading "2 of 4: train on 34,000 short sentences and 15,000 altered copies: under five minutes on two cores, 19 MB"
if [ ! -f "$run/result.json" ]; then
  tfformer train phrasebook --run-dir "$run" $([ ! -f "$run/config.json" ] || echo --resume)
fi

heading "3 of 4: score and translate: a minute"
[ -f "$run/corpus/test.de" ] || tfformer corpus phrasebook --output "$run/corpus"
tfformer evaluate "$run" --source "$run/corpus/test.en" --reference "$run/corpus/test.de" | kept scores

printf '\nSmall talk, learned by heart:\n'
translated <<'SENTENCES'
Good morning.
How are you?
Thank you very much.
You're welcome.
I don't understand.
I love you.
SENTENCES
printf '\nWords that never occurred together in training:\n'
translated <<'SENTENCES'
When does the train to Munich arrive?
Could you bring us two glasses of water, please?
We are waiting for the bus.
My brother doesn't work today.
The animal didn't cross the street because it was too tired.
The animal didn't cross the street because it was too wide.
SENTENCES
cat <<'TEXT'

The model knows the 770 English words of the phrasebook's grammar, and the sentences that the grammar makes from them.
Anything else becomes fluent nonsense. It says "Sie" to everybody, and "du" only to people it loves.
TEXT

heading '4 of 4: draw which words decide "it": a minute'
python scripts/coreference.py "$run" | kept coreference

cat <<TEXT

What to try next, after "source .venv/bin/activate":
  tfformer translate $run
  tfformer attention $run "I am tired." --output look.html
  tfformer export $run --format saved_model --output models/phrasebook
TEXT
