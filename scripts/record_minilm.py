"""Records the embeddings of 100 sentences by sentence-transformers, for test/trained/publishedEmbeddings.long.ts.

    bash bench/peers/setup.sh && bash bench/peers/minilm.sh
    ~/.cache/luthier/peers/venv/bin/python -m pip install sentence-transformers
    ~/.cache/luthier/peers/venv/bin/python scripts/record_minilm.py ~/.cache/luthier/peers/models/all-MiniLM-L6-v2

writes test/fixtures/published/minilm.safetensors: the embeddings, and in its metadata the sentences and versions.
"""
import json
import re
import sys
from pathlib import Path

import safetensors
import sentence_transformers
import torch
import transformers
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parent.parent
# Beyond plain English: other scripts, accents, cases, marks, words that are no words, numbers, one token, and more than 256.
ODD = ["a", "?!", "ÀÉÎÕÜ naïve façade", "東京は日本の首都です。", "Привет, мир!", "مرحبا بالعالم", "🙂🙃 emoji", "3.14159 and 2,718",
       "x = f(y) ** 2  # code", "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz", "tab\tand\nline", "word " * 300]


def sentences(count: int) -> list[str]:
    """Whole sentences of the guide's prose, in order."""
    found = []
    for page in sorted((ROOT / "docs/guide").glob("*.md")):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)
        lines = " ".join(line for line in prose.splitlines() if re.match(r"[A-Z`]", line))
        found += [text for text in re.split(r"(?<=[.:]) (?=[A-Z])", lines) if 40 < len(text) < 160][:6]
    return found[:count]


if __name__ == "__main__":
    texts = [*ODD, *sentences(100 - len(ODD))]
    assert len(texts) == 100
    torch.manual_seed(0)
    model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cpu")
    vectors = torch.tensor(model.encode(texts, batch_size=10))
    versions = {module.__name__: module.__version__ for module in (torch, transformers, sentence_transformers, safetensors)}
    save_file({"embeddings": vectors.contiguous()}, ROOT / "test/fixtures/published/minilm.safetensors",
              metadata={**versions, "sentences": json.dumps(texts)})
