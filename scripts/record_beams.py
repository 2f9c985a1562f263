"""Records beam searches of transformers on the models of scripts/record_published.py, for test/decoding/beamSearch.test.ts.

    python3 -m venv .venv && .venv/bin/pip install torch transformers
    .venv/bin/python scripts/record_beams.py

writes test/fixtures/published/beams.json.
"""
import json
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent / "test/fixtures/published"
PROMPTS = 16
STEPS = 12

SEARCHES = [
    dict(model="gpt2", beamSize=4, alpha=0.8, early=False, eos=[41, 64, 117]),
    dict(model="gpt2", beamSize=3, alpha=1.0, early=True, eos=[15, 169]),
    dict(model="llama", beamSize=4, alpha=0.0, early=False, eos=[7]),
    dict(model="llama", beamSize=5, alpha=2.0, early=True, eos=[7, 20]),
]


def whole(sequence: list[int], ends: list[int]) -> list[int]:
    """A sequence up to its end, behind which it is filled up."""
    length = next((i + 1 for i, token in enumerate(sequence) if token in ends), len(sequence))
    return sequence[:length]


def main() -> None:
    generator = torch.Generator().manual_seed(3)
    searches = []
    for search in SEARCHES:
        model = AutoModelForCausalLM.from_pretrained(ROOT / search["model"]).eval()
        cases = []
        for i in range(PROMPTS):
            ids = torch.randint(1, model.config.vocab_size, (1, 2 + i % 7), generator=generator)
            output = model.generate(
                ids, attention_mask=torch.ones_like(ids), num_beams=search["beamSize"],
                num_return_sequences=search["beamSize"], max_new_tokens=STEPS, do_sample=False,
                length_penalty=search["alpha"], early_stopping=True if search["early"] else "never",
                eos_token_id=search["eos"], pad_token_id=0, return_dict_in_generate=True, output_scores=True)
            sequences = [whole(sequence, search["eos"]) for sequence in output.sequences[:, ids.shape[1]:].tolist()]
            cases.append(dict(prompt=ids[0].tolist(), sequences=sequences,
                              scores=[round(score, 5) for score in output.sequences_scores.tolist()]))
        searches.append(dict(**search, cases=cases))
    versions = dict(torch=torch.__version__, transformers=transformers.__version__)
    record = dict(versions=versions, steps=STEPS, searches=searches)
    (ROOT / "beams.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")


main()
