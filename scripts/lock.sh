#!/usr/bin/env bash
# Choose the newest versions that pyproject.toml admits, and write them with the SHA-256 of their files to requirements/:
# base.txt, for each extra a list of all that it adds, and uv.txt, which installs them. The other scripts install exactly these;
# commit what changes.
set -euo pipefail
cd "$(dirname "$0")/.."
tools="$(mktemp -d)"
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3.11}" -m venv "$tools"
"$tools/bin/pip" install --quiet uv

# Print pins for Python from 3.11 on and for every platform, each with a marker where it is not for all.
pins() {
  "$tools/bin/uv" pip compile pyproject.toml --universal --python-version 3.11 --no-annotate --no-header --quiet "$@"
}

pins --all-extras > "$tools/versions.txt" # one version of each for all the lists
list=(--generate-hashes --constraint "$tools/versions.txt")
mkdir -p requirements
pins "${list[@]}" > "$tools/base.txt"
mv "$tools/base.txt" requirements/base.txt
in_base="$(sed -n 's/^\([^ ;=]*\)==[^ ;]* \\$/--no-emit-package \1/p' requirements/base.txt)"
for extra in $("$tools/bin/python" -c 'import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"])'); do
  { echo "-r base.txt"; pins "${list[@]}" --extra "$extra" $in_base; } > "$tools/list.txt"
  mv "$tools/list.txt" "requirements/$extra.txt"
done
echo uv | "$tools/bin/uv" pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet \
  --output-file "$tools/uv.txt"
mv "$tools/uv.txt" requirements/uv.txt
