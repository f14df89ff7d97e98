#!/usr/bin/env bash
# The environments of the peers that cannot share ours: trainers/environments.sh FOLDER
set -euo pipefail
folder="${1:?give a folder for the environments}"
python="${PYTHON:-python3.11}"
for peer in opennmt torch; do
  [ -x "$folder/$peer/bin/pip" ] || "$python" -m venv "$folder/$peer"
done
"$folder/opennmt/bin/pip" install "OpenNMT-tf==2.32.0" "tensorflow==2.12.*" "numpy<2" "setuptools<81"
"$folder/torch/bin/pip" install torch numpy
