#!/usr/bin/env bash
# What scripts/test.sh leaves out: the quickstart in full, every command of the documentation, the wheel, the site, the
# examples, more examples of each property, and larger samples of the faults. An hour or two on two cores. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
HYPOTHESIS_PROFILE=nightly scripts/test.sh -m "nightly or hypothesis" "$@"
FAULTS_KILLS=20 FAULTS_FAILURES=4 FAULTS_MUTATIONS=300 FAULTS_CHECKPOINTS=100 FAULTS_COMMAND_LINES=30 FAULTS_REQUESTS=5000 \
  FAULTS_DESCRIBED_REQUESTS=1000 FAULTS_SOAK_SECONDS=300 FAULTS_TEXTS=1000 FAULTS_WORKER_KILLS=2 FAULTS_CLUSTER_LOSSES=1 \
  scripts/faults.sh
source .venv/bin/activate
scripts/texts.py "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" /usr/share
