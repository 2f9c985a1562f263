"""Records llama.cpp's likeliest tokens for a trained model in each of GGUF's types, for test/trained/published/ggufAgreement.test.ts.

    bash bench/peers/llamacpp.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_gguf_agreement.py TEXT

trains a Llama of 427,000 parameters on the bytes of a text (tiny Shakespeare), for four minutes of one core, but for the last
20,000, and writes test/fixtures/published/agreement.gguf, its weights in Q4_K, and agreement.json: bytes of the text's end, and of
that file's exports in each type their SHA-256 with the tokens that llama.cpp finds likeliest behind each byte.
"""
import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "test/fixtures/published"
TYPES = ["q4_k", "q4_0", "q8_0", "bfloat16", "float16", "float32"]
STEPS, ROWS, LENGTH, HELD_OUT = 1500, 8, 128, 20_000
TEXTS, TEXT_LENGTH = 4, 250


def trained(data: torch.Tensor) -> LlamaForCausalLM:
    torch.manual_seed(50)
    torch.set_num_threads(1)
    config = LlamaConfig(vocab_size=128, hidden_size=256, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=256, max_position_embeddings=256, tie_word_embeddings=True, rms_norm_eps=1e-5,
                         bos_token_id=1, eos_token_id=2)
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=STEPS, pct_start=0.1)
    for step in range(STEPS):
        rows = torch.stack([data[at:at + LENGTH] for at in torch.randint(len(data) - LENGTH - 1, (ROWS,))])
        loss = model(input_ids=rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(step, loss.item(), flush=True)
    return model


def luthier(*args: str) -> None:
    subprocess.run(["node", "src/tools/luthier.js", *args], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def likeliest(file: Path, texts: list) -> str:
    # Caches in float32, as Luthier has them.
    model = llama_cpp.Llama(str(file), n_ctx=256, n_batch=256, verbose=False, n_threads=1, n_threads_batch=1, type_k=0, type_v=0,
                            flash_attn=False, logits_all=True)
    tokens = []
    for text in texts:
        model.reset()
        model.eval(text)
        tokens.append(model.scores[:TEXT_LENGTH].argmax(-1).astype(np.uint8))
    return base64.b64encode(np.concatenate(tokens).tobytes()).decode()


def main() -> None:
    data = Path(sys.argv[1]).read_bytes()
    text = data[-HELD_OUT:][:TEXTS * TEXT_LENGTH]
    texts = [list(text[at:at + TEXT_LENGTH]) for at in range(0, len(text), TEXT_LENGTH)]
    with tempfile.TemporaryDirectory() as made:
        folder, first, run = f"{made}/model", f"{made}/first", f"{made}/run"
        trained(torch.tensor(list(data[:-HELD_OUT]))).save_pretrained(folder)
        luthier("import", folder, f"--job_log_dir={first}")
        luthier("export", first, "--format=gguf", "--dtype=q4_k", f"--out={FIXTURES / 'agreement.gguf'}")
        luthier("import", str(FIXTURES / "agreement.gguf"), f"--job_log_dir={run}")
        exports = {}
        for name in TYPES:
            file = Path(made) / f"{name}.gguf"
            luthier("export", run, "--format=gguf", f"--dtype={name}", f"--out={file}")
            exports[name] = dict(sha256=hashlib.sha256(file.read_bytes()).hexdigest(), tokens=likeliest(file, texts))
    record = dict(versions={"llama-cpp-python": llama_cpp.__version__}, text=text.decode(), exports=exports)
    (FIXTURES / "agreement.json").write_text(json.dumps(record, indent=1) + "\n")


main()
