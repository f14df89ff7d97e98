#!/usr/bin/env bash
# Run the tests that scripts/test.sh leaves out: the full quickstart, every command of the documentation, the wheel, the
# site, the examples, more examples of each property, larger samples of the faults, and other versions of TensorFlow. If
# a part fails, the next part still runs. Arguments are passed to the first pytest.
set -uo pipefail
cd "$(dirname "$0")/.."
code=0
HYPOTHESIS_PROFILE=nightly scripts/test.sh -m "nightly or hypothesis" --ignore tests/faults "$@" || code=$?
FAULTS_KILLS=3 FAULTS_FAILURES=1 FAULTS_MUTATIONS=150 FAULTS_CHECKPOINTS=30 FAULTS_COMMAND_LINES=8 FAULTS_REQUESTS=2000 \
  FAULTS_DESCRIBED_REQUESTS=300 FAULTS_SOAK_SECONDS=60 FAULTS_TEXTS=200 FAULTS_WORKER_KILLS=1 FAULTS_CLUSTER_LOSSES=1 \
  scripts/faults.sh --numprocesses 2 --dist worksteal || code=$?
source .venv/bin/activate
scripts/document_identity.py --most 100 "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" /usr/share || code=$?
scripts/versions.sh || code=$?
exit "$code"
