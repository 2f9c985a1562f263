#!/usr/bin/env bash
# Makes the Python environment of the programs that Luthier is measured beside: PyTorch, JAX, optax, Fiddle, tokenizers, grain.
# It stands outside of the tree, in $LUTHIER_PEERS or the user's cache, and is made once. Needs python3 >= 3.11.
set -euo pipefail

peers="${LUTHIER_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/luthier/peers}"
requirements="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/requirements.txt"

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup.sh: python3 3.11 or newer is needed, found: $(python3 --version 2>&1 || echo none)" >&2
  exit 1
fi

# Luthier runs no code from a cache that others could write to, and the peers stand in that cache.
(umask 077 && mkdir -p "$peers")
[[ -x "$peers/venv/bin/python" ]] || python3 -m venv "$peers/venv"
"$peers/venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"

"$peers/venv/bin/python" - <<'PYTHON'
import fiddle, jax, optax, torch
print(f"PyTorch {torch.__version__}, JAX {jax.__version__}, optax {optax.__version__}, Fiddle {fiddle.__version__}")
PYTHON
echo "The peers are in $peers."
if ! command -v g++ >/dev/null && ! command -v clang++ >/dev/null; then
  echo "There is no C++ compiler: torch.compile will be left out."
fi
if ! ldconfig -p 2>/dev/null | grep -q libjemalloc.so.2; then
  echo "libjemalloc.so.2 is not installed (Debian and Ubuntu: libjemalloc2): PyTorch will not be tried with it."
fi
