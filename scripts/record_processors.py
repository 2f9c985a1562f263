"""Records how transformers' processors make pixels and log-mel energies of a small image and a short sound, for
test/trained/published/processors.test.ts, which makes the same image and sound.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_processors.py
"""
import json
import math
from pathlib import Path

import numpy as np
import PIL
import transformers
from PIL import Image
from transformers import CLIPImageProcessorPil, ViTImageProcessorPil, WhisperFeatureExtractor

TARGET = Path(__file__).resolve().parent.parent / "test/fixtures/published/processors.json"
SIZE = 12


def image(height, width):
    """Waves of each colour, with edges."""
    pixels = [
        [[(x * x * (c + 1) + 7 * y * (3 - c) + 90 * ((x // 5 + y // 4) % 2)) % 256 for c in range(3)] for x in range(width)]
        for y in range(height)
    ]
    return Image.fromarray(np.array(pixels, dtype=np.uint8))


def rows(values):
    return [float(f"{value:.6g}") for value in np.asarray(values, dtype=np.float64).flatten()]


square = {"height": SIZE, "width": SIZE}
processors = {
    "vit": ViTImageProcessorPil(size=square),
    "vit bicubic": ViTImageProcessorPil(size=square, resample=3),
    "clip": CLIPImageProcessorPil(size={"shortest_edge": SIZE}, crop_size=square),
}
sizes = {"wide": (37, 53), "tall": (41, 23), "small": (9, 13), "exact": (12, 12)}
images = {
    kind: {
        name: rows(processor(image(*size), return_tensors="np")["pixel_values"][0].transpose(1, 2, 0))
        for name, size in sizes.items()
    }
    for kind, processor in processors.items()
}
# The mels and the positions of test/fixtures/published/families/whisper.
extractor = WhisperFeatureExtractor(feature_size=6)
samples = [round(20000 * math.sin(i * i / 9000) * math.sin(i / 700)) for i in range(3000)]
sound = np.array(samples, dtype=np.float32) / 32768
features = extractor(sound, sampling_rate=16000, max_length=2 * 13 * 160, return_tensors="np")
TARGET.write_text(json.dumps({
    "versions": {"transformers": transformers.__version__, "pillow": PIL.__version__},
    "sizes": sizes,
    "images": images,
    # [frames, mels]
    "sound": rows(features["input_features"][0].T),
}) + "\n")
print(TARGET.stat().st_size, "bytes")
