#!/usr/bin/env bash
# Build the site of docs/ into site/, which the environment's tools do without a network. --serve shows it while you write.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[docs]"
if [ "${1:-}" = --serve ]; then
  exec mkdocs serve
fi
export NO_MKDOCS_2_WARNING=1
mkdocs build --strict # --quiet would silence the warnings that --strict counts
echo "Built: site/index.html (python -m http.server --directory site shows it)"
