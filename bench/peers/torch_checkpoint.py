"""Saves and loads the tensors of a checkpoint with torch.save and with safetensors.torch; prints milliseconds as JSON.

    python torch_checkpoint.py out/run/checkpoints/checkpoint_00000100/state.safetensors
"""
import json
import os
import statistics
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file, save_file

tensors = load_file(sys.argv[1])


def synced(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def measure(name, save, load):
    saves, loads = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(3):
            path = os.path.join(folder, str(i))
            start = time.perf_counter()
            save(path)
            synced(path)
            saves.append(time.perf_counter() - start)
            start = time.perf_counter()
            # Copies: a mapped file is read when its values are.
            loaded = {key: value.clone() for key, value in load(path).items()}
            loads.append(time.perf_counter() - start)
            del loaded
            os.remove(path)
    ms = lambda values: 1000 * statistics.median(values)
    print(json.dumps({"what": name, "saveMs": ms(saves), "loadMs": ms(loads)}))


measure("torch.save", lambda path: torch.save(tensors, path), lambda path: torch.load(path))
measure("safetensors.torch", lambda path: save_file(tensors, path), lambda path: load_file(path))
