# Sourced by the other scripts: a virtual environment in .venv with this checkout and the extras $1, such as "[plot,test]".
# What is there is not installed again, until pyproject.toml changes.
extras="${1:-}"
installed=.venv/extras # a line each, and a blank one for none
found="$(command -v python3.11 python3.12 python3.13 | head -n 1 || true)" # those for which TensorFlow has wheels
python="${PYTHON:-${found:-python3.11}}"
[ -x .venv/bin/pip ] || "$python" -m venv .venv
source .venv/bin/activate
[ "$installed" -nt pyproject.toml ] || rm -f "$installed"
wanted="$(tr -d '[]' <<< "$extras" | tr ',' '\n')"
if [ ! -f "$installed" ] || grep --quiet --invert-match --line-regexp --fixed-strings --file="$installed" <<< "$wanted"; then
  echo "Installing tfformer$extras into .venv ..."
  python -m pip install $([ -t 1 ] || echo --quiet) --editable ".$extras"
  echo "$wanted" >> "$installed"
fi
