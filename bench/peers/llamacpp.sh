#!/usr/bin/env bash
# Adds llama.cpp (llama-cpp-python, built here for this CPU) and the gguf package to the peers of setup.sh.
# The build needs cmake and a C++ compiler, and takes 10 to 30 minutes on two cores.
set -euo pipefail

peers="${LUTHIER_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/luthier/peers}"
[[ -x "$peers/venv/bin/python" ]] || bash "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/setup.sh"

pip() { "$peers/venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check; }
pip install gguf==0.19.0
# No multimodal tools and no wheel from elsewhere: the CPU's own instructions (GGML_NATIVE) decide the timings.
CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF" \
  CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}" \
  nice -n 10 "$peers/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  --no-binary llama-cpp-python llama-cpp-python==0.3.36

"$peers/venv/bin/python" -c 'import gguf, llama_cpp; print("llama-cpp-python", llama_cpp.__version__)'
