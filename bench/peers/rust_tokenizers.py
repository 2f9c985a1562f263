"""Trains, and packs tokens, with the Rust `tokenizers` on one thread; the arguments are bench/tokenizers.ts's directory and
the length of a row."""

import json
import pathlib
import sys
import time

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

directory, seq_len = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def read(name):
    paths = (directory / name).read_text().split("\n")
    return [pathlib.Path(path).read_bytes().decode("utf-8") for path in paths]


documents = read("declarations")
size = sum(len(document.encode()) for document in documents) / 1e6
own = Tokenizer.from_file(str(directory / "tokenizer.json"))
begun = time.perf_counter()
rows, buffer = [], []
for document in documents:
    buffer.extend(own.encode(document, add_special_tokens=False).ids)
    while len(buffer) >= seq_len:
        rows.append(buffer[:seq_len])
        del buffer[:seq_len]
print(f"tokenizers {tokenizers.__version__}: BPE, packed: {size / (time.perf_counter() - begun):.1f} MB/s of {size:.1f} MB")

sources = read("sources")
trained = Tokenizer(models.BPE())
trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(
    vocab_size=32768,
    min_frequency=2,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
)
begun = time.perf_counter()
trained.train_from_iterator(sources, trainer)
taken = time.perf_counter() - begun
same = json.loads(trained.to_str())["model"]["merges"] == json.loads((directory / "tokenizer.json").read_text())["model"]["merges"]
print(f"tokenizers {tokenizers.__version__}: 32768 tokens learned in {taken:.2f} s, {'the same' if same else 'other'} merges")
