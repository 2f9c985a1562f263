#!/usr/bin/env bash
# Reads our checkpoints, event files and tokenizers with the real readers, python's safetensors, tensorboard and tokenizers,
# compares our operations on images and sounds with Pillow's and librosa's, reads what pyarrow writes, and checks and runs our
# ONNX files.
# PYTHON names the interpreter. Where it or its packages are absent, says 'skipped' and succeeds.
#   python3 -m venv .venv && .venv/bin/pip install safetensors numpy tensorboard pillow librosa pyarrow onnx onnxruntime \
#     tokenizers==0.23.2
#   PYTHON=.venv/bin/python scripts/check-readers.sh
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! command -v "$python" > /dev/null; then
  echo "skipped: no $python"
  exit 0
fi
samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT
node --import tsx test/readers/writeSamples.ts "$samples"
"$python" scripts/check_readers.py "$samples"
