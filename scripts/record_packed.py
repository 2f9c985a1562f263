"""Records elements that torch and transformers unpack, for test/checkpoints/packedTensors.test.ts: the values of all codes of FP8
(E4M3), null for NaN, and matrices of experts in MXFP4.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_packed.py
"""
import json
import math
from pathlib import Path

import torch
import transformers
from transformers.integrations.mxfp4 import _convert_moe_packed_tensors

TARGET = Path(__file__).resolve().parent.parent / "test/fixtures/published/packed.json"

torch.manual_seed(0)
codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().tolist()
blocks = torch.randint(0, 256, (2, 3, 2, 16), dtype=torch.uint8)
scales = torch.randint(118, 134, (2, 3, 2), dtype=torch.uint8)
TARGET.write_text(json.dumps({
    "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    "e4m3": [None if math.isnan(value) else value for value in codes],
    "mxfp4": {
        "blocks": blocks.flatten().tolist(),
        "scales": scales.flatten().tolist(),
        # [experts, inputs, outputs]: transposed.
        "matrices": _convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).flatten().tolist(),
    },
}) + "\n")
