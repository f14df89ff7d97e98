#!/bin/sh
# Start TensorFlow Serving on the versions 1 and 2 of an export, as compose.yaml does, with Docker alone.
#   run_server.sh EXPORT
set -eu

if [ $# -ne 1 ] || [ ! -d "$1/1" ] || [ ! -d "$1/2" ]; then
  echo "usage: run_server.sh EXPORT, a folder that holds the versions 1 and 2 (see models.config)" >&2
  exit 2
fi
models=$(cd "$1" && pwd)
config=$(cd "$(dirname "$0")" && pwd)

exec docker run --rm \
  --publish 127.0.0.1:8500:8500 \
  --publish 127.0.0.1:8501:8501 \
  --volume "$models:/models/phrasebook:ro" \
  --volume "$config:/config:ro" \
  tensorflow/serving:2.20.0 \
  --model_config_file=/config/models.config \
  --model_config_file_poll_wait_seconds=60 \
  --allow_version_labels_for_unavailable_models=true \
  --enable_batching=true \
  --batching_parameters_file=/config/batching.config \
  --monitoring_config_file=/config/monitoring.config \
  --rest_api_timeout_in_ms=60000
