"""Loss and gradients of an architecture of bench/architectures.ts in PyTorch: the peer of `npm run bench:beyond-gpt`.

Prints one line of JSON. On `--mode`: compile is `torch.compile`, and channels_last that layout of images and filters.
"""

import argparse
import contextlib
import json
import math
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from torch_layers import SMALL, LibraryLayers, Outputs


def bits(stream, count):
    """As hashedValues.ts has them: an avalanche of the stream and the position."""
    h = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(0x9E3779B1)
    h ^= np.uint32((stream + 1) * 0x85EBCA6B & 0xFFFFFFFF)
    h = (h ^ (h >> 16)) * np.uint32(0x7FEB352D)
    h = (h ^ (h >> 15)) * np.uint32(0x846CA68B)
    return h ^ (h >> 16)


def uniforms(stream, shape, fan, around=0):
    unit = bits(stream, math.prod(shape)) / 2.0**31 - 1
    return torch.from_numpy((around + unit * math.sqrt(3 / fan)).astype(np.float32)).reshape(shape)


class Parameters:
    """Makes parameters in Luthier's order and layout, axes turned as PyTorch has them."""

    def __init__(self):
        self.streams = 0
        self.counted = []

    def values(self, shape, fan, around=0):
        """Those of Luthier's next parameter."""
        self.streams += 1
        return uniforms(self.streams - 1, shape, fan, around)

    def of(self, values, part=slice(None)):
        """A parameter with these values, of which a part is one of Luthier's too."""
        made = nn.Parameter(values.contiguous())
        self.counted.append((made, part))
        return made

    def __call__(self, shape, fan, around=0, axes=None):
        values = self.values(shape, fan, around)
        return self.of(values.permute(axes) if axes else values)

    def gradient_norm(self):
        return math.sqrt(sum(made.grad[part].double().square().sum().item() for made, part in self.counted))

    def bias(self, features):
        return self((features,), SMALL)

    def scale(self, features):
        return self((features,), SMALL, 1)


class Map(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Residual(nn.Module):
    def __init__(self, shortcut, body):
        super().__init__()
        self.shortcut, self.body = shortcut, body

    def forward(self, x):
        return self.shortcut(x) + self.body(x)


class Concat(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1 if x.dim() == 4 else -1)


class Attention(nn.Module):
    def __init__(self, qkv, out, heads, causal):
        super().__init__()
        self.qkv, self.out, self.heads, self.causal = qkv, out, heads, causal

    def forward(self, x):
        rows, steps, width = x.shape
        parts = self.qkv(x).split(width, dim=2)
        q, k, v = (part.view(rows, steps, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Positions(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, x):
        return x + self.rows


class Tied(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x):
        return F.linear(x, self.table)


class Towers(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right

    def forward(self, ids):
        return self.left(ids[:, 0]) @ self.right(ids[:, 1]).T


class Builder(LibraryLayers):
    """Modules of layers; `shape` is that of what the next layer reads, the channels behind."""

    def __init__(self, shape):
        self.shape = shape
        self.parameter = Parameters()
        self.table = None

    def chain(self, layers):
        return nn.Sequential(*(getattr(self, layer["kind"])(layer) for layer in layers))

    def branch(self, layers):
        """A chain from the shape at hand, and the shape that it leads to; the one at hand stays."""
        before = self.shape
        made = self.chain(layers)
        after, self.shape = self.shape, before
        return made, after

    def side(self, size):
        rows, height, width, depth = self.shape
        return rows, size(height), size(width), depth

    def with_features(self, features):
        self.shape = (*self.shape[:-1], features)

    def relu(self, _):
        return nn.ReLU()

    def gelu(self, _):
        return nn.GELU()

    def tanh(self, _):
        return nn.Tanh()

    def silu(self, _):
        return nn.SiLU()

    def dense(self, layer):
        depth, features = self.shape[-1], layer["features"]
        made = nn.Linear(depth, features, layer.get("bias", True))
        made.weight = self.parameter((depth, features), depth, axes=(1, 0))
        if made.bias is not None:
            made.bias = self.parameter.bias(features)
        self.with_features(features)
        return made

    def conv(self, layer, padding=None, groups=1):
        size, stride, depth = layer["size"], layer.get("stride", 1), self.shape[-1]
        features = layer.get("features", depth)
        padding = size // 2 if padding is None else padding
        made = nn.Conv2d(depth, features, size, stride, padding, groups=groups, bias=layer.get("bias", True))
        shape, axes = ((depth // groups, features), (3, 2, 0, 1)) if groups == 1 else ((depth, 1), (2, 3, 0, 1))
        made.weight = self.parameter((size, size, *shape), size * size * depth // groups, axes=axes)
        if made.bias is not None:
            made.bias = self.parameter.bias(features)
        self.shape = self.side(lambda side: (side + 2 * padding - size) // stride + 1)
        self.with_features(features)
        return made

    def depthwise(self, layer):
        return self.conv(layer, groups=self.shape[-1])

    def patches(self, layer):
        return self.conv({**layer, "stride": layer["size"]}, padding=0)

    def grow(self, layer):
        size, features, depth = layer["size"], layer["features"], self.shape[-1]
        made = nn.ConvTranspose2d(depth, features, size, size)
        made.weight = self.parameter((size, size, features, depth), depth, axes=(3, 2, 0, 1))
        made.bias = self.parameter.bias(features)
        self.shape = self.side(lambda side: side * size)
        self.with_features(features)
        return made

    def pool(self, layer):
        self.shape = self.side(lambda side: side // layer["size"])
        return nn.MaxPool2d(layer["size"])

    def normed(self, made):
        made.weight = self.parameter.scale(self.shape[-1])
        made.bias = self.parameter.bias(self.shape[-1])
        return made

    def batchNorm(self, _):
        made = {2: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(self.shape)]
        return self.normed(made(self.shape[-1], track_running_stats=False))

    def layerNorm(self, _):
        return self.normed(nn.LayerNorm(self.shape[-1]))

    def groupNorm(self, layer):
        return self.normed(nn.GroupNorm(layer["groups"], self.shape[-1]))

    def mean(self, _):
        axes = (2, 3) if len(self.shape) == 4 else 1
        self.shape = (self.shape[0], self.shape[-1])
        return Map(lambda x: x.mean(axes))

    def last(self, _):
        self.shape = (self.shape[0], self.shape[-1])
        return Map(lambda x: x[:, -1])

    def tokens(self, _):
        rows, height, width, depth = self.shape
        self.shape = (rows, height * width, depth)
        return Map(lambda x: x.flatten(2).transpose(1, 2))

    def recurrent(self, cell, layer, gates, state_bias):
        depth, features = self.shape[-1], layer["features"]
        made = cell(depth, features, batch_first=True)
        made.weight_ih_l0 = self.parameter((depth, gates * features), depth, axes=(1, 0))
        made.bias_ih_l0 = self.parameter.bias(gates * features)
        made.weight_hh_l0 = self.parameter((features, gates * features), features, axes=(1, 0))
        zero = nn.Parameter(torch.zeros(gates * features), requires_grad=False)
        made.bias_hh_l0 = self.parameter.bias(gates * features) if state_bias else zero
        self.with_features(features)
        return Outputs(made)

    def lstm(self, layer):
        return self.recurrent(nn.LSTM, layer, 4, False)

    def gru(self, layer):
        return self.recurrent(nn.GRU, layer, 3, True)

    def attention(self, layer):
        width = self.shape[-1]
        qkv, _ = self.branch([{"kind": "dense", "features": 3 * width, "bias": False}])
        out = self.dense({"features": width, "bias": False})
        return Attention(qkv[0], out, layer["heads"], layer.get("causal", False))

    def positions(self, _):
        return Positions(self.parameter(self.shape[1:], self.shape[-1]))

    def embed(self, layer):
        shape = (layer["vocabulary"], layer["features"])
        self.table = self.parameter(shape, layer["features"])
        made = nn.Embedding(*shape, _weight=self.table)
        made.weight = self.table
        self.shape = (*self.shape, layer["features"])
        return made

    def tied(self, _):
        self.with_features(len(self.table))
        return Tied(self.table)

    def residual(self, layer):
        shortcut, _ = self.branch(layer.get("shortcut", []))
        return Residual(shortcut, self.chain(layer["body"]))

    def concat(self, layer):
        body, (*_, added) = self.branch(layer["body"])
        self.with_features(self.shape[-1] + added)
        return Concat(body)

    def towers(self, layer):
        rows = self.shape[0]
        self.shape = (rows,)
        left, _ = self.branch(layer["bodies"][0])
        right, _ = self.branch(layer["bodies"][1])
        self.shape = (rows, rows)
        return Towers(left, right)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architecture", type=json.loads, required=True, help="as JSON")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--mode", default="eager", help="words of: eager, compile, channels_last")
    parser.add_argument("--threads", type=int, default=0, help="default: the library's own choice")
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    shape, classes = tuple(options.architecture["input"]), options.architecture["classes"]
    builder = Builder(shape)
    model = builder.chain(options.architecture["layers"])
    if vocabulary := options.architecture.get("vocabulary"):
        x = torch.from_numpy((bits(10_000, math.prod(shape)) % vocabulary).astype(np.int64)).reshape(shape)
    else:
        x = uniforms(10_000, shape, 1)
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2).contiguous()
    if "channels_last" in options.mode:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    labels = torch.arange(math.prod(builder.shape[:-1])) % classes
    logits_of = torch.compile(model) if "compile" in options.mode else model
    bf16 = options.precision == "bf16"

    def loss_and_gradients():
        with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(logits_of(x).flatten(0, -2), labels)
        loss.backward()
        return loss.item()

    loss = loss_and_gradients()
    gradient_norm = builder.parameter.gradient_norm()

    def step():
        model.zero_grad(set_to_none=True)
        loss_and_gradients()

    for _ in range(2):
        step()
    milliseconds, cpu = [], []
    end = time.perf_counter() + options.seconds
    while len(milliseconds) < 5 or time.perf_counter() < end:
        start, busy = time.perf_counter(), time.process_time()
        step()
        milliseconds.append((time.perf_counter() - start) * 1e3)
        cpu.append((time.process_time() - busy) * 1e3)
    version = f"PyTorch {torch.__version__.split('+')[0]}"
    times = {"minMs": min(milliseconds), "medianMs": statistics.median(milliseconds), "minCpuMs": min(cpu)}
    print(json.dumps({"version": version, **times, "loss": loss, "gradientNorm": gradient_norm}))


main()
