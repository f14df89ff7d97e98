# Sourced by the other scripts: a virtual environment in .venv with this checkout and the extras $1, such as "[plot,test]".
# The packages are those of requirements/, by version and digest; a file with another is refused. scripts/lock.sh renews them.
# uv installs them, in a third of pip's time; where it finds none, as behind an index that pip's own configuration names, pip does.
# What is there is not installed again, until pyproject.toml or a list changes.
unset PYTHONDONTWRITEBYTECODE # which containers often set: each process would compile TensorFlow's modules anew
installed=.venv/extras # a line each
found="$(command -v python3.11 python3.12 python3.13 | head -n 1 || true)" # those for which TensorFlow has wheels
python="${PYTHON:-${found:-python3.11}}"
[ -x .venv/bin/pip ] || "$python" -m venv .venv
source .venv/bin/activate
[ -z "$(find pyproject.toml requirements -newer "$installed" 2>&1)" ] || rm -f "$installed"
wanted="$(tr -d '[]' <<< "${1:-base}" | tr ',' '\n')"
if [ ! -f "$installed" ] || grep --quiet --invert-match --line-regexp --fixed-strings --file="$installed" <<< "$wanted"; then
  echo "Installing tfformer${1:-} into .venv ..."
  quiet="$([ -t 1 ] || echo --quiet)"
  lists="$(sed 's|.*|--requirement requirements/&.txt|' <<< "$wanted")"
  { python -m pip install $quiet --require-hashes --requirement requirements/uv.txt &&
    uv pip install $quiet --no-config --require-hashes $lists; } ||
    python -m pip install $quiet --no-compile --require-hashes $lists
  python -m pip install $quiet --no-deps --no-build-isolation --editable .
  python -c "import keras, tensorflow" 2> /dev/null || true # compiles their modules, before several processes would at once
  echo "$wanted" >> "$installed"
fi
