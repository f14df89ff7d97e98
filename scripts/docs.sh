#!/usr/bin/env bash
# Build the site of docs/ into site/; no network is needed. --serve shows the site while you edit it.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh "[docs]"
if [ "${1:-}" = --serve ]; then
  exec mkdocs serve
fi
export NO_MKDOCS_2_WARNING=1
mkdocs build --strict # --quiet would silence the warnings that --strict counts
echo "Built: site/index.html (python -m http.server --directory site shows it)"
