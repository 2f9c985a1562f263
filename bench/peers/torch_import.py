"""Takes a published model in and writes it again, as transformers and torch do; prints seconds and MiB as JSON.

    python torch_import.py FOLDER TARGET
"""
import json
import os
import resource
import shutil
import sys
import time

import torch
import transformers

folder, target = sys.argv[1:]
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def synced(path):
    for name in os.listdir(path):
        with open(os.path.join(path, name), "rb") as file:
            os.fsync(file.fileno())


def torch_save(model):
    os.makedirs(target)
    torch.save(model.state_dict(), os.path.join(target, "model.pt"))


for name, save in (("save_pretrained", lambda model: model.save_pretrained(target)), ("torch.save", torch_save)):
    start = time.perf_counter()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    save(model)
    synced(target)
    seconds = time.perf_counter() - start
    shutil.rmtree(target)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"what": f"from_pretrained and {name}", "seconds": round(seconds, 2), "peakMib": round(peak)}))
    del model
