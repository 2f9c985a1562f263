"""Loss and gradients of models beyond GPT in PyTorch, as bench/beyondModels.ts has them: the peer of `npm run bench:beyond-gpt`.

Prints one line of JSON. On `--mode`: compile is `torch.compile`, and channels_last that layout of images and filters.
"""

import argparse
import contextlib
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10


class ConvStack(nn.Module):
    """Four 3x3 convolutions, a pooling between, then the mean of all places."""

    shape = (64, 3, 32, 32)

    def __init__(self):
        super().__init__()
        depths = [3, 64, 64, 128, 128]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(depths, depths[1:]))
        self.head = nn.Linear(128, CLASSES)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = F.relu(conv(x))
            if i == 1:
                x = F.max_pool2d(x, 2)
        return self.head(x.mean((2, 3)))


class MobileBlock(nn.Module):
    """MobileNet's: three times a depthwise 3x3 convolution and a 1x1 one."""

    shape = (32, 64, 32, 32)

    def __init__(self):
        super().__init__()
        depths = [64, 128, 128, 256]
        self.depthwise = nn.ModuleList(
            nn.Conv2d(a, a, 3, padding=1, stride=1 + i % 2, groups=a) for i, a in enumerate(depths[:-1])
        )
        self.pointwise = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in zip(depths, depths[1:]))
        self.head = nn.Linear(256, CLASSES)

    def forward(self, x):
        for depthwise, pointwise in zip(self.depthwise, self.pointwise):
            x = F.relu(pointwise(F.relu(depthwise(x))))
        return self.head(x.mean((2, 3)))


class ResNetBlock(nn.Module):
    """Two residual blocks, the second of half the side and twice the depth; batch norm of the batch's own moments."""

    shape = (32, 64, 28, 28)

    def __init__(self):
        super().__init__()
        conv = lambda a, b, k, s: nn.Conv2d(a, b, k, padding=k // 2, stride=s, bias=False)
        self.first = nn.ModuleList([conv(64, 64, 3, 1), conv(64, 64, 3, 1)])
        self.second = nn.ModuleList([conv(64, 128, 3, 2), conv(128, 128, 3, 1)])
        self.shortcut = conv(64, 128, 1, 2)
        self.norms = nn.ModuleList(nn.BatchNorm2d(c, track_running_stats=False) for c in (64, 64, 128, 128))
        self.head = nn.Linear(128, CLASSES)

    def forward(self, x):
        y = F.relu(self.norms[0](self.first[0](x)))
        x = F.relu(x + self.norms[1](self.first[1](y)))
        y = F.relu(self.norms[2](self.second[0](x)))
        x = F.relu(self.shortcut(x) + self.norms[3](self.second[1](y)))
        return self.head(x.mean((2, 3)))


class Mlp(nn.Sequential):
    """784-1024-1024-10."""

    shape = (128, 784)

    def __init__(self):
        super().__init__(
            nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, CLASSES)
        )


class Lstm(nn.Module):
    """An LSTM over 32 steps; its last state is classified."""

    shape = (32, 32, 256)

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(256, 256, batch_first=True)
        self.head = nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Gru(nn.Module):
    """A GRU over 64 steps; its last state is classified."""

    shape = (16, 64, 512)

    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(512, 512, batch_first=True)
        self.head = nn.Linear(512, CLASSES)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Unet(nn.Module):
    """A U-Net: two 3x3 convolutions with group norm at each side, transposed convolutions upwards, then the mean of all places."""

    shape = (8, 3, 64, 64)

    def __init__(self):
        super().__init__()

        def twice(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1, bias=False), nn.GroupNorm(8, b), nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1, bias=False), nn.GroupNorm(8, b), nn.ReLU(),
            )

        self.down = nn.ModuleList([twice(3, 32), twice(32, 64), twice(64, 128)])
        self.grow = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(128, 64, 2, 2)])
        self.up = nn.ModuleList([twice(64, 32), twice(128, 64)])
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        third = self.down[2](F.max_pool2d(second, 2))
        up = self.up[1](torch.cat([second, self.grow[1](third)], 1))
        return self.head(self.up[0](torch.cat([first, self.grow[0](up)], 1)).mean((2, 3)))


MODELS = {
    "conv": ConvStack,
    "mobile": MobileBlock,
    "resnet": ResNetBlock,
    "mlp": Mlp,
    "lstm": Lstm,
    "gru": Gru,
    "unet": Unet,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--mode", default="eager", help="words of: eager, compile, channels_last")
    parser.add_argument("--threads", type=int, default=0, help="default: the library's own choice")
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = MODELS[options.model]()
    x = torch.sin(torch.arange(torch.Size(model.shape).numel()) * 12.9898).reshape(model.shape)
    if "channels_last" in options.mode:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    labels = torch.arange(model.shape[0]) % CLASSES
    logits_of = torch.compile(model) if "compile" in options.mode else model
    bf16 = options.precision == "bf16"

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(logits_of(x), labels)
        loss.backward()
        value = loss.item()
        model.zero_grad(set_to_none=True)
        return value

    for _ in range(3):
        loss = step()
    milliseconds, cpu = [], []
    end = time.perf_counter() + options.seconds
    while len(milliseconds) < 5 or time.perf_counter() < end:
        start, busy = time.perf_counter(), time.process_time()
        step()
        milliseconds.append((time.perf_counter() - start) * 1e3)
        cpu.append((time.process_time() - busy) * 1e3)
    version = f"PyTorch {torch.__version__.split('+')[0]}"
    times = {"minMs": min(milliseconds), "medianMs": statistics.median(milliseconds), "minCpuMs": min(cpu)}
    print(json.dumps({"version": version, **times, "loss": loss}))


main()
