# The other scripts source this file. It makes a virtual environment in .venv with this checkout and the extras $1, such
# as "[plot,test]". uv.lock names the version and the digests of every package; a file with another digest is refused.
# uv installs the packages. Where uv finds no index, because only pip's configuration names one, pip installs them from
# the same lock.
unset PYTHONDONTWRITEBYTECODE # which containers often set: each process would compile TensorFlow's modules again
found="$(command -v python3.11 python3.12 python3.13 | head -n 1 || true)" # the versions for which TensorFlow has wheels
python="${PYTHON:-${found:-python3.11}}"
[ -x .venv/bin/pip ] || "$python" -m venv .venv
source .venv/bin/activate
quiet="$([ -t 1 ] || echo --quiet)"
extras="$(tr -d '[]' <<< "${1:-}" | sed 's/[^,]\+/--extra &/g; s/,/ /g')"
if [ ! -x .venv/bin/uv ]; then # and setuptools, which builds the checkout itself
  echo "Installing tfformer${1:-} into .venv ..."
  python -m pip install $quiet "uv>=0.13,<0.14" "setuptools>=77"
fi
uv sync $quiet --frozen --inexact --no-build-isolation-package tfformer $extras || {
  uv export --quiet --frozen --no-emit-project $extras | python -m pip install $quiet --no-compile --require-hashes --requirement /dev/stdin
  uv sync $quiet --frozen --inexact --no-build-isolation-package tfformer $extras # the checkout itself
}
# Compile the modules of Keras and TensorFlow, before several processes would do so at once.
[ -d .venv/lib/python3*/site-packages/keras/__pycache__ ] || python -c "import keras, tensorflow" 2> /dev/null || true
