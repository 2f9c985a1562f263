#!/usr/bin/env bash
# Adds lm-evaluation-harness to the peers of setup.sh, for scripts/record_evaluations.py.
set -euo pipefail

peers="${LUTHIER_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/luthier/peers}"
[[ -x "$peers/venv/bin/python" ]] || bash "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/setup.sh"
"$peers/venv/bin/python" -m pip install --quiet --disable-pip-version-check lm-eval==0.4.13
"$peers/venv/bin/python" -c 'import lm_eval; print("lm-eval", lm_eval.__version__)'
