"""Records GGUF's blocks and files as the gguf package has them, and llama.cpp's tokens for files that Luthier writes, for
test/checkpoints/gguf.test.ts and test/trained/published/gguf.test.ts.

    bash bench/peers/llamacpp.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_gguf.py

writes test/fixtures/published/gguf.json: of each type packed bytes and the floats that they unpack to; floats and the bytes that
they pack to; a file; and of each fixture the SHA-256 of its export with the tokens that llama.cpp chooses.
"""
import base64
import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "test/fixtures/published"
# Bytes of each type's float16 scales: random bits there may be infinite.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
# Fixtures, and fields of config.json in the place of theirs: contexts of 68 tokens, but for GPT-2, which has weights for 24.
MODELS = {
    "llama": ("llama", dict(max_position_embeddings=68)),
    "qwen2": ("families/qwen2", dict(max_position_embeddings=68, head_dim=4, layer_types=None, use_sliding_window=False)),
    "gpt2": ("gpt2", {}),
}
PROMPT = [3, 14, 15, 9]
GREEDY = 64

rng = np.random.default_rng(50)


def text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def unpacked() -> dict:
    """Random blocks, and their floats."""
    found = {}
    for name, places in SCALES.items():
        kind = Type[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, size=(2 if size > 100 else 4, size), dtype=np.uint8)
        for at in places:
            scales = rng.normal(scale=0.1, size=len(blocks)).astype(np.float16)
            blocks[:, at:at + 2] = scales.reshape(-1, 1).view(np.uint8)
        found[name] = dict(blocks=text(blocks), floats=text(quants.dequantize(blocks, kind).astype(np.float32)))
    return found


def packed() -> dict:
    """Floats of every magnitude, a block of zeros and one whose halves decide, and their blocks."""
    floats = (rng.normal(size=(4, 64)) * np.exp(2 * rng.normal(size=(4, 64)))).astype(np.float32)
    floats[0, :32] = 0
    floats[1, :32] = np.arange(32) / 2 - 7.75
    blocks = {name: text(quants.quantize(floats, Type[name])) for name in ["Q8_0", "Q4_0", "BF16"]}
    return dict(floats=text(floats), blocks=blocks)


def small_file() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.gguf"
        writer = gguf.GGUFWriter(path, "small")
        writer.add_uint32("small.count", 7)
        writer.add_float32("small.epsilon", 1e-5)
        writer.add_bool("small.flag", True)
        writer.add_uint64("small.large", 2**40)
        writer.add_array("small.texts", ["a", "\u00e9", ""])
        writer.add_array("small.flags", [True, False])
        writer.add_array("small.numbers", [1, 2, 3])
        writer.add_tensor("whole", np.arange(6, dtype=np.float32).reshape(2, 3))
        writer.add_tensor("half", np.arange(4, dtype=np.float16))
        writer.add_tensor("packed", quants.quantize(np.arange(64, dtype=np.float32).reshape(2, 32), Type.Q8_0), raw_dtype=Type.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return base64.b64encode(path.read_bytes()).decode()


def luthier(*args: str) -> None:
    subprocess.run(["node", "src/tools/luthier.js", *args], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def exported(name: str, fields: dict) -> dict:
    """llama.cpp's greedy tokens behind a prompt by an export in float32."""
    with tempfile.TemporaryDirectory() as made:
        folder, run, file = Path(made) / "model", f"{made}/run", Path(made) / "model.gguf"
        shutil.copytree(FIXTURES / name, folder)
        positions = {**json.loads((folder / "config.json").read_text()), **fields}
        (folder / "config.json").write_text(json.dumps(positions))
        luthier("import", str(folder), f"--job_log_dir={run}")
        luthier("export", run, "--format=gguf", f"--out={file}")
        length = positions.get("max_position_embeddings", positions.get("n_positions"))
        # Caches in float32, as Luthier has them.
        model = llama_cpp.Llama(str(file), n_ctx=length, verbose=False, n_threads=2, type_k=0, type_v=0, flash_attn=False)
        tokens = []
        for token in model.generate(PROMPT, temp=0, top_k=1, repeat_penalty=1.0):
            tokens.append(token)
            if len(tokens) == min(GREEDY, length - len(PROMPT)):
                break
        return dict(sha256=hashlib.sha256(file.read_bytes()).hexdigest(), prompt=PROMPT, tokens=tokens)


record = dict(
    versions={"gguf": "0.19.0", "llama-cpp-python": llama_cpp.__version__},
    unpacked=unpacked(),
    packed=packed(),
    file=small_file(),
    exports={name: exported(*model) for name, model in MODELS.items()},
)
(FIXTURES / "gguf.json").write_text(json.dumps(record, indent=1) + "\n")
