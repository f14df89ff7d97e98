#!/bin/sh
# Start TensorFlow Serving on an export, as compose.yaml does, with Docker alone.
#   run_server.sh EXPORT [MODEL]
# EXPORT holds the versions; the newest is served or, where set_labels.py has written EXPORT/models.config, the versions
# that it names. MODEL is the name that clients call; the folder's if left out.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ] || ! ls -d "$1"/[0-9]*/saved_model.pb >/dev/null 2>&1; then
  echo "usage: run_server.sh EXPORT [MODEL], EXPORT being a folder that holds versions 1, 2, ... of a SavedModel" >&2
  exit 2
fi
export=$(cd "$1" && pwd)
model=${2:-$(basename "$export")}
config=$(cd "$(dirname "$0")" && pwd)

set --
if [ -f "$export/models.config" ]; then
  set -- --model_config_file="/models/$model/models.config" --model_config_file_poll_wait_seconds=60 \
    --allow_version_labels_for_unavailable_models=true
fi
exec docker run --rm \
  --publish 127.0.0.1:8500:8500 \
  --publish 127.0.0.1:8501:8501 \
  --volume "$export:/models/$model:ro" \
  --volume "$config:/config:ro" \
  --env MODEL_NAME="$model" \
  tensorflow/serving:2.20.0 \
  "$@" \
  --enable_batching=true \
  --batching_parameters_file=/config/batching.config \
  --monitoring_config_file=/config/monitoring.config \
  --rest_api_timeout_in_ms=60000
