#!/usr/bin/env bash
# Try faults of every kind, and print a table of the outcome: kills and failures at each file
# operation, damaged files, requests drawn at random, a soak, batches. docs/fault_tests.md says
# what each part is. Each has a size in one variable; all of them as they stand here take some
# hours, and a short look some minutes:
#   FAULTS_KILLS=2 FAULTS_FAILURES=2 FAULTS_MUTATIONS=100 FAULTS_REQUESTS=1000 \
#     FAULTS_SOAK_SECONDS=60 FAULTS_TEXTS=500 scripts/faults.sh
# Arguments go to pytest: -k soak is one part.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tensorflow,plot,ctranslate2,litert,serve,ray,test]"
export FAULTS_KILLS="${FAULTS_KILLS:-1000000}"             # of each verb, states; all, if fewer
export FAULTS_FAILURES="${FAULTS_FAILURES:-40}"            # of each verb and kind; all, if fewer
export FAULTS_MUTATIONS="${FAULTS_MUTATIONS:-2000}"        # of runs, exports and recipes each
export FAULTS_CHECKPOINTS="${FAULTS_CHECKPOINTS:-500}"     # of other toolkits, imported
export FAULTS_COMMAND_LINES="${FAULTS_COMMAND_LINES:-300}" # tfformer translate on damaged runs
export FAULTS_DESCRIBED_REQUESTS="${FAULTS_DESCRIBED_REQUESTS:-10000}"  # of the OpenAPI description
export FAULTS_REQUESTS="${FAULTS_REQUESTS:-100000}"        # of which every fifth is a canary
export FAULTS_SOAK_SECONDS="${FAULTS_SOAK_SECONDS:-3600}"
export FAULTS_TEXTS="${FAULTS_TEXTS:-10000}"               # for each engine
export FAULTS_WORKER_KILLS="${FAULTS_WORKER_KILLS:-10}"    # of a training in two processes
export FAULTS_CLUSTER_LOSSES="${FAULTS_CLUSTER_LOSSES:-10}" # of a worker, the head, all on Ray
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1
FAULTS_TABLE="$(mktemp)"
export FAULTS_TABLE
trap 'rm -f "$FAULTS_TABLE"' EXIT
code=0
python -m pytest tests/faults "$@" || code=$?
printf '\n%s\n' "Of the parts that passed, and of the soak and the batches in any case:"
cat "$FAULTS_TABLE"
exit "$code"
