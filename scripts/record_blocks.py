"""Blocks of vision networks and CTC by PyTorch in float64, with gradients: blocks.json of test/fixtures.

    ~/.cache/luthier/peers/venv/bin/python scripts/record_blocks.py > test/fixtures/blocks.json

Element i of parameter k is 0.5 sin(0.7 i + k), of an input sin(0.7 i + k) with k counting inputs. The gradients are those of
the sum of the outputs, each times cos(0.3 i).
"""
import json
import math

import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers.models.convnext.modeling_convnext import ConvNextConfig, ConvNextLayer

torch.set_default_dtype(torch.float64)


def filled(shape, factor=1.0, phase=0.0):
    return (factor * torch.sin(0.7 * torch.arange(math.prod(shape)) + phase)).reshape(shape)


def plain(x):
    return {"shape": list(x.shape), "data": [float(f"{v:.7g}") for v in x.detach().flatten().tolist()]}


def to_images(x):
    return x.permute(0, 3, 1, 2)


def from_images(x):
    return x.permute(0, 2, 3, 1)


class Mixer(nn.Module):
    """The block of Tolstikhin et al., 2021, on [B, S, C]."""

    def __init__(self, tokens, channels, tokens_hidden, channels_hidden):
        super().__init__()
        mlp = lambda dims, hidden: nn.Sequential(
            nn.Linear(dims, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, dims)
        )
        self.norm1, self.norm2 = (nn.LayerNorm(channels, eps=1e-6) for _ in range(2))
        self.tokens, self.channels = mlp(tokens, tokens_hidden), mlp(channels, channels_hidden)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


def double_conv(inputs, outputs):
    layers = []
    for depth in (inputs, outputs):
        conv = nn.Conv2d(depth, outputs, 3, padding=1, bias=False)
        layers += [conv, nn.GroupNorm(2, outputs, eps=1e-3), nn.ReLU()]
    return nn.Sequential(*layers)


class Up(nn.Module):
    def __init__(self, inputs, outputs, skip):
        super().__init__()
        self.grow = nn.ConvTranspose2d(inputs, skip, 2, stride=2)
        self.convs = double_conv(2 * skip, outputs)

    def forward(self, x, skip):
        return self.convs(torch.cat([skip, self.grow(x)], 1))


def norm_names(path, ours, scale="scale", bias="bias"):
    return {f"{path}.weight": f"{ours}/{scale}", f"{path}.bias": f"{ours}/{bias}"}


def linear_names(path, ours):
    return {f"{path}.weight": f"{ours}/linear/w", f"{path}.bias": f"{ours}/bias/b"}


def conv_names(path, ours):
    names = {}
    for i in range(2):
        names[f"{path}{3 * i}.weight"] = f"{ours}body_{i}/w"
        names |= norm_names(f"{path}{3 * i + 1}", f"{ours}body_{i}/bn", "gamma", "beta")
    return names


def record(module, names, shapes, images=True):
    """`names`: our paths by torch's. Filters and matrices have our layout; factors of norms count from 1 in ours."""
    own = dict(module.named_parameters())
    assert own.keys() == names.keys(), own.keys() ^ names.keys()
    values, taken = {}, {}
    for k, (name, path) in enumerate(names.items()):
        x = own[name]
        to = {4: (2, 3, 1, 0), 2: (1, 0)}.get(x.dim(), (0,))
        back = {4: (3, 2, 0, 1), 2: (1, 0)}.get(x.dim(), (0,))
        values[path] = filled([x.shape[i] for i in to], 0.5, k).requires_grad_()
        is_factor = name.endswith("weight") and x.dim() == 1
        taken[name] = values[path].permute(back) + (1 if is_factor else 0)
    inputs = [filled(shape, 1, k).requires_grad_() for k, shape in enumerate(shapes)]
    args = tuple(to_images(x) if images else x for x in inputs)
    outputs = torch.func.functional_call(module, taken, args)
    outputs = from_images(outputs) if images else outputs
    (outputs.flatten() * torch.cos(0.3 * torch.arange(outputs.numel()))).sum().backward()
    return {
        "inputs": [list(x.shape) for x in inputs],
        "outputs": plain(outputs),
        "inputGradients": [plain(x.grad) for x in inputs],
        "parameterGradients": {path: plain(x.grad) for path, x in values.items()},
    }


convnext = record(
    ConvNextLayer(ConvNextConfig(layer_scale_init_value=1.0, hidden_act="gelu"), 4),
    {
        "layer_scale_parameter": "gamma",
        **{"dwconv.weight": "depthwise/w", "dwconv.bias": "depthwise/b"},
        **norm_names("layernorm", "ln"),
        **linear_names("pwconv1", "up"),
        **linear_names("pwconv2", "down"),
    },
    [[2, 5, 4, 4]],
)
mixer = record(
    Mixer(3, 4, 5, 6),
    {
        **norm_names("norm1", "token_ln"),
        **norm_names("norm2", "channel_ln"),
        **linear_names("tokens.0", "token_mixing/mlp_layers_0"),
        **linear_names("tokens.2", "token_mixing/mlp_layers_1"),
        **linear_names("channels.0", "channel_mixing/mlp_layers_0"),
        **linear_names("channels.2", "channel_mixing/mlp_layers_1"),
    },
    [[2, 3, 4]],
    images=False,
)
down = record(
    nn.Sequential(nn.MaxPool2d(2), double_conv(3, 4)), conv_names("1.", ""), [[2, 6, 4, 3]]
)
up = record(
    Up(5, 4, 3),
    {"grow.weight": "grow/w", "grow.bias": "grow/b", **conv_names("convs.", "convs/")},
    [[2, 2, 3, 5], [2, 4, 6, 3]],
)


def log_prob(log_probs, labels):
    """Of frames [T, K] emitting the labels, over all paths."""
    if len(log_probs) == 0:
        return torch.tensor(0.0 if len(labels) == 0 else -math.inf)
    target = torch.tensor(labels, dtype=torch.long)
    sizes = torch.tensor([len(log_probs)]), torch.tensor([len(labels)])
    return -F.ctc_loss(log_probs[:, None], target[None], *sizes, reduction="sum")


def begun_by(log_probs, labels):
    """[T, N + 1]: probability that a label is the last one begun, by those of beginnings and ends of the frames."""
    time, total = len(log_probs), log_prob(log_probs, labels)
    begun = [torch.ones(time)]
    for n, label in enumerate(labels):
        starts = []
        for s in range(time):
            # Equal labels have a blank between.
            needs_blank = n > 0 and labels[n - 1] == label
            if needs_blank and s == 0:
                starts.append(torch.tensor(0.0))
                continue
            before = log_prob(log_probs[: s - needs_blank], labels[:n]) + needs_blank * log_probs[s - 1, 0]
            whole = log_prob(log_probs[s:], labels[n:])
            late = log_probs[s, 0] + log_prob(log_probs[s + 1 :], labels[n:])
            starts.append((before + whole - total).exp() - (before + late - total).exp())
        begun.append(torch.stack(starts).cumsum(0))
    begun.append(torch.zeros(time))
    return torch.stack([begun[n] - begun[n + 1] for n in range(len(labels) + 1)], 1)


def ctc():
    lengths, labels = [6, 4, 5, 6], [[1, 2], [3, 3], [2], [3, 1, 1]]
    logits = 2 * torch.sin(0.7 * torch.arange(4 * 6 * 4) ** 1.5).reshape(4, 6, 4)
    logits = torch.tensor([float(f"{v:.7g}") for v in logits.flatten().tolist()]).reshape(4, 6, 4)
    logits.requires_grad_()
    log_probs = F.log_softmax(logits, -1)
    target = torch.tensor([row + [0] * (3 - len(row)) for row in labels])
    counts = torch.tensor([len(row) for row in labels])
    losses = F.ctc_loss(log_probs.transpose(0, 1), target, torch.tensor(lengths), counts, reduction="none")
    (losses * torch.cos(0.3 * torch.arange(4))).sum().backward()
    rows = [log_probs[b, : lengths[b]].detach() for b in range(4)]
    # Cold probabilities leave the most probable path alone.
    best = [begun_by(300 * x, row).argmax(1).tolist() for x, row in zip(rows, labels)]
    return {
        **{"lengths": lengths, "labels": labels, "logits": plain(logits)},
        **{"losses": plain(losses), "logitGradients": plain(logits.grad)},
        **{"states": [plain(begun_by(x, row)) for x, row in zip(rows, labels)], "alignments": best},
    }


versions = {"torch": torch.__version__, "transformers": transformers.__version__}
blocks = {"convNeXt": convnext, "mixer": mixer, "uNetDown": down, "uNetUp": up}
print(json.dumps({"versions": versions, "blocks": blocks, "ctc": ctc()}))
