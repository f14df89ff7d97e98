#!/usr/bin/env bash
# Test faults of every kind, and print a table of the results: kills and failures at each file operation, damaged files,
# random requests, a soak test, batches. docs/fault_tests.md describes each part. One variable sets the size of each
# part. With the defaults, all parts take about three hours; a short run takes some minutes:
#   FAULTS_KILLS=2 FAULTS_FAILURES=2 FAULTS_MUTATIONS=100 FAULTS_REQUESTS=1000 \
#     FAULTS_SOAK_SECONDS=60 FAULTS_TEXTS=500 scripts/faults.sh
# Arguments are passed to pytest: -k soak runs one part.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[tensorflow,plot,ctranslate2,litert,serve,ray,test]"
export FAULTS_KILLS="${FAULTS_KILLS:-1000000}"             # states per verb; all, if fewer
export FAULTS_FAILURES="${FAULTS_FAILURES:-40}"            # per verb and kind; all, if fewer
export FAULTS_MUTATIONS="${FAULTS_MUTATIONS:-2000}"        # each of runs, exports and recipes
export FAULTS_CHECKPOINTS="${FAULTS_CHECKPOINTS:-500}"     # imported from other toolkits
export FAULTS_COMMAND_LINES="${FAULTS_COMMAND_LINES:-300}" # tfformer translate on damaged runs
export FAULTS_DESCRIBED_REQUESTS="${FAULTS_DESCRIBED_REQUESTS:-10000}"  # generated from the OpenAPI description
export FAULTS_REQUESTS="${FAULTS_REQUESTS:-100000}"        # every third is a canary
export FAULTS_SOAK_SECONDS="${FAULTS_SOAK_SECONDS:-3600}"
export FAULTS_TEXTS="${FAULTS_TEXTS:-10000}"               # for each engine
export FAULTS_WORKER_KILLS="${FAULTS_WORKER_KILLS:-10}"    # of one of two training processes
export FAULTS_CLUSTER_LOSSES="${FAULTS_CLUSTER_LOSSES:-10}" # each of a worker, the head, everything on Ray
export TF_CPP_MIN_LOG_LEVEL=3
export TF_NUM_INTRAOP_THREADS=1
FAULTS_TABLE="$(mktemp)"
export FAULTS_TABLE
trap 'rm -f "$FAULTS_TABLE"' EXIT
code=0
python -m pytest tests/faults "$@" || code=$?
printf '\n%s\n' "Results of the parts that passed, and of the soak and the batches in any case:"
cat "$FAULTS_TABLE"
exit "$code"
