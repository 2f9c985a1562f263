"""Tells why llama.cpp's likeliest token differs from ours at some positions: it rounds the activations that packed weights are
multiplied by. A network of random weights is exported by Luthier in each type and read back; its logits are computed in NumPy with
activations as they are, which is what Luthier does, and with activations rounded as llama.cpp rounds them, and compared with llama.cpp.

    bash bench/peers/llamacpp.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/check_gguf_rounding.py
"""
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
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "test/fixtures/published/llama"
WIDTH, LAYERS, HEADS, KV, HIDDEN, LENGTH, TEXTS = 256, 2, 4, 2, 512, 250, 4
HEAD = WIDTH // HEADS
EPSILON, THETA = 1e-5, 10000.0
TYPES = ["float32", "q8_0", "q4_0", "q4_k"]

rng = np.random.default_rng(50)


def model(folder: Path) -> int:
    """Writes a Llama of random weights; returns the size of its vocabulary."""
    shutil.copytree(FIXTURE, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=HEAD,
                  intermediate_size=HIDDEN, max_position_embeddings=LENGTH, tie_word_embeddings=False, rms_norm_eps=EPSILON)
    config.pop("rope_scaling", None)
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": THETA}
    config.pop("rope_theta", None)
    (folder / "config.json").write_text(json.dumps(config))
    vocab = config["vocab_size"]
    shapes = {"model.embed_tokens": (vocab, WIDTH), "lm_head": (vocab, WIDTH)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        shapes |= {at + "self_attn.q_proj": (WIDTH, WIDTH), at + "self_attn.k_proj": (KV * HEAD, WIDTH), at + "self_attn.v_proj": (KV * HEAD, WIDTH),
                   at + "self_attn.o_proj": (WIDTH, WIDTH), at + "mlp.gate_proj": (HIDDEN, WIDTH), at + "mlp.up_proj": (HIDDEN, WIDTH),
                   at + "mlp.down_proj": (WIDTH, HIDDEN)}
    tensors = {f"{name}.weight": rng.normal(scale=shape[1] ** -0.5, size=shape).astype(np.float32) for name, shape in shapes.items()}
    norms = ["model.norm"] + [f"model.layers.{i}.{name}_layernorm" for i in range(LAYERS) for name in ["input", "post_attention"]]
    tensors |= {f"{name}.weight": (1 + 0.1 * rng.normal(size=WIDTH)).astype(np.float32) for name in norms}
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return vocab


def luthier(*args: str) -> None:
    subprocess.run(["node", "src/tools/luthier.js", *args], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def q8_k(x: np.ndarray) -> np.ndarray:
    """ggml's quantize_row_q8_K: 256 values share a scale, by which the one of the largest magnitude is -127."""
    blocks = x.reshape(-1, 256)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    inverse = np.divide(np.float32(-127), largest, out=np.zeros_like(largest), where=largest != 0)
    codes = np.minimum(127, np.rint(inverse * blocks))
    scales = np.divide(np.float32(1), inverse, out=np.zeros_like(inverse), where=inverse != 0)
    return (codes * scales).reshape(x.shape).astype(np.float32)


def q8_0(x: np.ndarray) -> np.ndarray:
    return quants.dequantize(quants.quantize(x, Type.Q8_0), Type.Q8_0).reshape(x.shape)


ROUNDED = {Type.Q4_K: q8_k, Type.Q8_0: q8_0, Type.Q4_0: q8_0, Type.F16: lambda x: x.astype(np.float16).astype(np.float32)}


class Network:
    """A file's network on one text, [T]."""

    def __init__(self, file: Path):
        self.tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
        self.floats = {name: quants.dequantize(t.data, t.tensor_type).astype(np.float32) for name, t in self.tensors.items()}

    def linear(self, x, name, rounds):
        how = ROUNDED.get(self.tensors[name].tensor_type, lambda x: x)
        return (how(x) if rounds else x) @ self.floats[name].T

    def norm(self, x, name):
        return (x / np.sqrt(np.mean(x.astype(np.float64) ** 2, -1, keepdims=True) + EPSILON)).astype(np.float32) * self.floats[name]

    @staticmethod
    def rotated(x):
        """GGUF's order: pairs of neighbours turn."""
        angles = np.arange(len(x))[:, None] * THETA ** (-np.arange(0, HEAD, 2) / HEAD)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        even, odd = x[..., 0::2], x[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape).astype(np.float32)

    def logits(self, ids, rounds):
        x = self.floats["token_embd.weight"][ids]
        hidden = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
        for i in range(LAYERS):
            at = f"blk.{i}."
            y = self.norm(x, at + "attn_norm.weight")
            q, k, v = (self.linear(y, f"{at}attn_{name}.weight", rounds).reshape(len(ids), -1, HEAD) for name in "qkv")
            q, k = self.rotated(q), self.rotated(k)
            k, v = (np.repeat(each, HEADS // KV, 1) for each in (k, v))
            scores = np.einsum("thd,shd->hts", q, k) / HEAD**0.5 + hidden
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            mixed = np.einsum("hts,shd->thd", weights, v).reshape(len(ids), -1).astype(np.float32)
            x = x + self.linear(mixed, at + "attn_output.weight", rounds)
            y = self.norm(x, at + "ffn_norm.weight")
            gate, up = (self.linear(y, f"{at}ffn_{name}.weight", rounds) for name in ("gate", "up"))
            x = x + self.linear((gate / (1 + np.exp(-gate)) * up).astype(np.float32), at + "ffn_down.weight", rounds)
        return self.linear(self.norm(x, "output_norm.weight"), "output.weight", rounds)


def main():
    with tempfile.TemporaryDirectory() as made:
        folder, run = Path(made) / "model", f"{made}/run"
        vocab = model(folder)
        luthier("import", str(folder), f"--job_log_dir={run}")
        texts = rng.integers(3, vocab, size=(TEXTS, LENGTH))
        print(f"llama-cpp-python {llama_cpp.__version__}, {TEXTS * LENGTH} positions: the same likeliest token as llama.cpp, and RMS of the difference of logits")
        for name in TYPES:
            file = Path(made) / f"{name}.gguf"
            luthier("export", run, "--format=gguf", f"--dtype={name}", f"--out={file}")
            network = Network(file)
            peer = llama_cpp.Llama(str(file), n_ctx=LENGTH, n_batch=LENGTH, verbose=False, n_threads=1, n_threads_batch=1, type_k=0, type_v=0, flash_attn=False, logits_all=True)
            own = {False: [], True: []}
            theirs = []
            for ids in texts:
                peer.reset()
                peer.eval(ids.tolist())
                theirs.append(peer.scores[:LENGTH].copy())
                for rounds in own:
                    own[rounds].append(network.logits(ids, rounds))
            theirs = np.concatenate(theirs)
            line = []
            for rounds, what in ((False, "as they are"), (True, "rounded")):
                logits = np.concatenate(own[rounds])
                same = 100 * np.mean(logits.argmax(-1) == theirs.argmax(-1))
                line.append(f"activations {what} {same:.1f} %, {np.sqrt(np.mean((logits - theirs) ** 2)):.1e}")
            print(f"  {name}: {'; '.join(line)}", flush=True)


main()
