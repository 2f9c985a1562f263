"""Milliseconds of decoding steps by llama.cpp, the tokens given, on random weights of the shapes of bench/quantised.ts.

    python llamacpp_decode.py gpt2 f32,bf16,q8_0,q4_0 24
"""
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import gguf
import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

CONTEXT = 256
SHAPES = {
    "gpt2": dict(arch="gpt2", vocab=50257, dims=768, layers=12, heads=12, kv=12, hidden=3072),
    "llama": dict(arch="llama", vocab=151936, dims=896, layers=24, heads=14, kv=2, hidden=4864),
}
rng = np.random.default_rng(0)


def tensors(arch, vocab, dims, layers, heads, kv, hidden):
    """Shapes by name; vectors are norms and biases."""
    yield "token_embd.weight", (vocab, dims)
    narrow = dims // heads * kv
    norms = ["weight", "bias"] if arch == "gpt2" else ["weight"]
    if arch == "gpt2":
        yield "position_embd.weight", (CONTEXT, dims)
    for norm in norms:
        yield f"output_norm.{norm}", (dims,)
    for i in range(layers):
        for name in ["attn_norm", "ffn_norm"]:
            for norm in norms:
                yield f"blk.{i}.{name}.{norm}", (dims,)
        if arch == "gpt2":
            linears = {"attn_qkv": (3 * dims, dims), "attn_output": (dims, dims), "ffn_up": (hidden, dims), "ffn_down": (dims, hidden)}
        else:
            linears = {
                "attn_q": (dims, dims), "attn_k": (narrow, dims), "attn_v": (narrow, dims), "attn_output": (dims, dims),
                "ffn_gate": (hidden, dims), "ffn_up": (hidden, dims), "ffn_down": (dims, hidden),
            }
        for name, shape in linears.items():
            yield f"blk.{i}.{name}.weight", shape
            if arch == "gpt2":
                yield f"blk.{i}.{name}.bias", shape[:1]


def write(path, kind, shape):
    writer = gguf.GGUFWriter(path, shape["arch"])
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape["dims"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["hidden"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape["dims"] // shape["heads"])
    writer.add_vocab_size(shape["vocab"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"t{i}" for i in range(shape["vocab"])])
    writer.add_token_types([1] * shape["vocab"])
    writer.add_token_merges(["t 0"])
    for name, size in tensors(**shape):
        values = rng.normal(scale=0.02, size=size).astype(np.float32)
        if len(size) == 1 or name.startswith("position"):
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    name, kinds, tokens = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            write(path, Type[kind.upper()], SHAPES[name])
            model = llama_cpp.Llama(str(path), n_ctx=CONTEXT, n_threads=2, n_threads_batch=2, verbose=False)
            took = []
            for _ in range(6):
                model.reset()
                model.eval([1])
                began = time.perf_counter()
                for _ in range(tokens):
                    model.eval([1])
                took.append(1000 * (time.perf_counter() - began) / tokens)
            print(f"llama.cpp, {name}, batch 1, {kind}: {median(took[1:]):.2f} ms a step, file {path.stat().st_size / 1e6:.0f} MB", flush=True)
            del model


main()
