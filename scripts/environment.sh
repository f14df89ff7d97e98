# Sourced by the other scripts: a virtual environment in .venv with this checkout and the extras $1 installed.
extras="${1:-}"
python="${PYTHON:-python3.11}"
[ -x .venv/bin/pip ] || "$python" -m venv .venv
source .venv/bin/activate
echo "Installing tfformer$extras into .venv ..."
python -m pip install $([ -t 1 ] || echo --quiet) --editable ".$extras"
