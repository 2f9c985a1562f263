"""Seconds from a new Python process to a state that it has read, by torch.load and by safetensors.torch; no model is made."""

import statistics
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file

source, runs = sys.argv[1], int(sys.argv[2])
with tempfile.NamedTemporaryFile(suffix='.pt') as saved:
    torch.save(load_file(source), saved.name)
    # Cloned, since what is mapped has not been read.
    programs = {
        'torch.load': f'import torch; torch.load({saved.name!r})',
        'safetensors.torch': f'''
from safetensors.torch import load_file
{{name: tensor.clone() for name, tensor in load_file({source!r}).items()}}''',
    }
    times = {name: [] for name in programs}
    for _ in range(runs):
        for name, program in programs.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, '-c', program], check=True)
            times[name].append(time.perf_counter() - began)
for name, seconds in times.items():
    print(f'  a Python process that reads the same by {name}: {statistics.median(seconds):.2f} s')
