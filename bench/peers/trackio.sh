#!/usr/bin/env bash
# Installs trackio, which a long test reads tracked runs with, in an environment of its own beside the peers: it pins other
# versions of what they need. Needs python3 >= 3.11 with pip.
set -euo pipefail

peers="${LUTHIER_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/luthier/peers}"
(umask 077 && mkdir -p "$peers")
[[ -x "$peers/trackio/bin/python" ]] || python3 -m venv "$peers/trackio"
"$peers/trackio/bin/python" -m pip install --quiet --disable-pip-version-check trackio==0.43.0
echo "trackio is in $peers/trackio."
