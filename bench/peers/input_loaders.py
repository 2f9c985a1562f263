"""Reads JSON Lines of texts with the loaders of others; prints one line of JSON. The arguments are what to measure, the corpus,
a tokenizer.json, seconds, rows of a batch and positions of a row."""

import json
import mmap
import os
import sys
import time

import numpy as np
import psutil

what, corpus, tokenizer_file = sys.argv[1:4]
seconds, batch_size, seq_len = float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
WORKERS = 2
WINDOW = 32


def arrays(line):
    """What a language model reads of one text, as bytes."""
    tokens = np.frombuffer(json.loads(line)["text"].encode(), np.uint8)[:seq_len]
    size = len(tokens)
    ids, labels = np.zeros(seq_len, np.int32), np.zeros(seq_len, np.int32)
    paddings, weights = np.ones(seq_len, np.float32), np.zeros(seq_len, np.float32)
    labels[:size] = tokens
    ids[1:size] = tokens[: size - 1]
    paddings[:size] = 0
    weights[:size] = 1
    return {"ids": ids, "labels": labels, "paddings": paddings, "weights": weights}


def line_starts():
    """Where each line begins, and the end of the last one."""
    with open(corpus, "rb") as file:
        return np.cumsum([0] + [len(line) for line in file])


def grain_batches():
    import grain
    from absl import flags
    from array_record.python.array_record_module import ArrayRecordWriter

    flags.FLAGS(sys.argv[:1])
    path = corpus + ".array_record"
    if not os.path.exists(path):
        writer = ArrayRecordWriter(path, "group_size:1")
        with open(corpus, "rb") as file:
            for line in file:
                writer.write(line)
        writer.close()
    dataset = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(path)).shuffle(seed=1).repeat()
    dataset = dataset.map(arrays).batch(batch_size)
    options = grain.MultiprocessingOptions(num_workers=WORKERS, per_worker_buffer_size=4)
    return iter(dataset.to_iter_dataset().mp_prefetch(options))


def torch_batches():
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Lines(Dataset):
        def __init__(self):
            self.starts = line_starts()
            self.bytes = None

        def __len__(self):
            return len(self.starts) - 1

        def __getitems__(self, places):
            if self.bytes is None:
                with open(corpus, "rb") as file:
                    self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            rows = [arrays(self.bytes[self.starts[i] : self.starts[i + 1]]) for i in places]
            return {name: torch.from_numpy(np.stack([row[name] for row in rows])) for name in rows[0]}

    loader = DataLoader(
        Lines(),
        batch_size=batch_size,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=True,
        prefetch_factor=4,
        drop_last=True,
        collate_fn=lambda batch: batch,
    )
    while True:
        yield from loader


def cpu_seconds():
    me = psutil.Process()
    times = [process.cpu_times() for process in [me, *me.children(recursive=True)]]
    return sum(t.user + t.system for t in times)


def rate(batches):
    """Batches a second of wall and of CPU time, workers included."""
    for _ in range(2 * WINDOW):
        next(batches)
    begun, cpu, count = time.perf_counter(), cpu_seconds(), 0
    while time.perf_counter() - begun < seconds:
        for _ in range(WINDOW):
            next(batches)
        count += WINDOW
    wall = time.perf_counter() - begun
    return {"perSec": count / wall, "perCpuSec": count / (cpu_seconds() - cpu)}


def tokenize_and_pack():
    """Megabytes of text a second, encoded and packed into rows on one thread."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_file)
    with open(corpus, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    rows, buffer, size = [], [], 0
    begun, cpu = time.perf_counter(), time.process_time()
    for text in texts:
        size += len(text.encode())
        buffer.extend(tokenizer.encode(text, add_special_tokens=False).ids)
        while len(buffer) >= seq_len:
            rows.append(np.array(buffer[:seq_len], np.int32))
            del buffer[:seq_len]
        if time.perf_counter() - begun > seconds:
            break
    return {
        "perSec": size / (time.perf_counter() - begun),
        "perCpuSec": size / (time.process_time() - cpu),
    }


if __name__ == "__main__":
    if what == "bpe":
        result = tokenize_and_pack()
    else:
        result = rate({"grain": grain_batches, "torch": torch_batches}[what]())
    print(json.dumps(result), flush=True)
    # Workers would wait for more to do.
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(0)
