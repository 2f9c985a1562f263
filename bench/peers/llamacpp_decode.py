"""Milliseconds of decoding steps by llama.cpp, the tokens given, on random weights of the shapes of bench/quantised.ts.

    python llamacpp_decode.py SHAPE TYPES TOKENS ROWS PROMPT THREADS REPETITIONS FOLDER
    python llamacpp_decode.py gpt2 f32,bf16,q8_0,q4_0 24 1 0 2 5 models

PROMPT tokens at once, where it is not 0; FOLDER keeps the models. With no TOKENS models are only written.
"""
import sys
import time
from pathlib import Path
from statistics import median

import gguf
import llama_cpp.llama_cpp as llama
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

CONTEXT = 512
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


def contextOf(model, batch, positions, threads):
    params = llama.llama_context_default_params()
    params.n_ctx = batch * positions
    params.n_batch = params.n_ubatch = max(batch, positions)
    params.n_seq_max = batch
    params.n_threads = params.n_threads_batch = threads
    return llama.llama_init_from_model(model, params)


def batchOf(tokens, first, row):
    """A token of each row at a position, or the prompt of one row; logits behind the last of each."""
    batch = llama.llama_batch_init(tokens, 0, 1)
    batch.n_tokens = tokens
    for i in range(tokens):
        batch.token[i] = 1
        batch.pos[i] = first if row is None else first + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = i if row is None else row
        batch.logits[i] = row is None or i == tokens - 1
    return batch


def milliseconds(context, batches):
    """Of each batch, after an empty cache: of the clock, and of CPU time."""
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    began, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        if llama.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama.llama_synchronize(context)
        llama.llama_get_logits(context)
    return 1000 * (time.perf_counter() - began) / len(batches), 1000 * (time.process_time() - cpu) / len(batches)


def main():
    name, kinds = sys.argv[1], sys.argv[2].split(",")
    tokens, rows, prompt, threads, repetitions = (int(value) for value in sys.argv[3:8])
    folder = Path(sys.argv[8])
    folder.mkdir(parents=True, exist_ok=True)
    silent = llama.llama_log_callback(lambda *_: None)  # kept: the library holds no reference
    llama.llama_log_set(silent, None)
    llama.llama_backend_init()
    for kind in kinds:
        path = folder / f"{name}-{kind}.gguf"
        if not path.exists():
            write(path, Type[kind.upper()], SHAPES[name])
        if tokens == 0:
            continue
        model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
        context = contextOf(model, rows, max(CONTEXT, prompt), threads)
        batches = [batchOf(prompt, 0, 0)] if prompt > 0 else [batchOf(rows, i, None) for i in range(tokens)]
        milliseconds(context, batches)
        clock, cpu = zip(*[milliseconds(context, batches) for _ in range(repetitions)])
        what = f"a prompt of {prompt}" if prompt > 0 else f"batch {rows}"
        print(f"  llama.cpp, {name}, {what}, {kind}: {median(clock):.2f} ms, fastest {min(clock):.2f}, {median(cpu):.2f} of CPU", flush=True)


main()
