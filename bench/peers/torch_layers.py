"""Layers of bench/libraryLayers.ts in PyTorch: the same formulas, with parameters in the same order and of the same values."""

import math

import torch
from torch import nn
from torch.nn import functional as F

# As in libraryLayers.ts: vectors are near 0.
SMALL = 300


class Outputs(nn.Module):
    """Recurrent layers without their states."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        return self.cell(x)[0]


class FeedForward(nn.Module):
    """x + ½ ff(norm(x)), as Conformers have it."""

    def __init__(self, norm, up, down):
        super().__init__()
        self.norm, self.up, self.down = norm, up, down

    def forward(self, x):
        return x + 0.5 * self.down(F.silu(self.up(self.norm(x))))


class SelfAttention(nn.Module):
    def __init__(self, norm, key, query, value, post, per_dim_scale, heads):
        super().__init__()
        self.norm, self.key, self.query, self.value, self.post = norm, key, query, value, post
        self.per_dim_scale, self.heads = per_dim_scale, heads

    def forward(self, x):
        normed = self.norm(x)
        q, k, v = (
            each(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        q = q * (F.softplus(self.per_dim_scale) / math.log(2)).to(q.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return x + self.post(mixed.transpose(1, 2).flatten(2))


class LightConvolution(nn.Module):
    def __init__(self, norm, act, gated, end, depthwise, batch_norm):
        super().__init__()
        self.norm, self.act, self.gated, self.end = norm, act, gated, end
        self.depthwise, self.batch_norm = depthwise, batch_norm
        before = (depthwise.kernel_size[0] - 1) // 2
        self.pads = (before, depthwise.kernel_size[0] - 1 - before)

    def forward(self, x):
        normed = self.norm(x)
        gated = self.act(normed) * torch.sigmoid(self.gated(normed))
        convolved = self.batch_norm(self.depthwise(F.pad(gated.transpose(1, 2), self.pads)))
        return x + self.end(F.silu(convolved).transpose(1, 2))


class ShortConvolution(nn.Module):
    """Each channel by a causal filter of its own; [B, T, D] to the same."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x):
        return F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2)


class Mamba(nn.Module):
    def __init__(self, in_proj, conv, x_proj, dt_proj, out_proj, dt_bias, a_log, d):
        super().__init__()
        self.in_proj, self.conv, self.x_proj, self.dt_proj, self.out_proj = in_proj, conv, x_proj, dt_proj, out_proj
        self.dt_bias, self.a_log, self.d = dt_bias, a_log, d

    def forward(self, inputs):
        entering, gate = self.in_proj(inputs).chunk(2, dim=-1)
        x = self.conv(entering)
        states = self.a_log.shape[1]
        rank, b, c = self.x_proj(x).split([self.dt_proj.in_features, states, states], dim=-1)
        delta = F.softplus(self.dt_proj(rank).float() + self.dt_bias)
        decays = torch.exp(delta[..., None] * -torch.exp(self.a_log))
        entries = (delta * x)[..., None] * b[:, :, None, :]
        state, outputs = torch.zeros_like(decays[:, 0]), []
        for decay, entry, at in zip(decays.unbind(1), entries.unbind(1), c.float().unbind(1)):
            state = decay * state + entry
            outputs.append((state @ at[..., None])[..., 0])
        return self.out_proj((torch.stack(outputs, 1) + x * self.d) * F.silu(gate))


class GatedDeltaNet(nn.Module):
    """Chunks of products, as transformers' torch_chunk_gated_delta_rule has them; triangular systems are solved by LAPACK."""

    CHUNK = 64

    def __init__(self, qkvz, ba, conv, norm, out_proj, dt_bias, a_log, heads, head_dim):
        super().__init__()
        self.qkvz, self.ba, self.conv, self.norm, self.out_proj = qkvz, ba, conv, norm, out_proj
        self.dt_bias, self.a_log, self.heads, self.head_dim = dt_bias, a_log, heads, head_dim

    def forward(self, inputs):
        width = self.heads * self.head_dim
        qkv, gate = self.qkvz(inputs).unflatten(-1, (self.heads, 4, -1)).split([3, 1], dim=-2)
        qkv = qkv.transpose(-2, -3).flatten(-3)
        strength, a = self.ba(inputs).float().unflatten(-1, (self.heads, 2)).unbind(-1)
        q, k, v = (
            part.float().unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.conv(qkv).split(width, dim=-1)
        )
        q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
        decay = -(F.softplus(a + self.dt_bias) * torch.exp(self.a_log))
        read = self.scanned(q * self.head_dim**-0.5, k, v, decay.transpose(1, 2), torch.sigmoid(strength).transpose(1, 2))
        gated = self.norm(read.transpose(1, 2)) * F.silu(gate.squeeze(-2))
        return self.out_proj(gated.flatten(2))

    def scanned(self, *operands):
        q, k, v, decay, strength = (x.unflatten(2, (-1, self.CHUNK)) for x in operands)
        decay = decay.cumsum(-1)
        between = (decay[..., :, None] - decay[..., None, :]).tril().exp().tril()
        strong = k * strength[..., None]
        unit = torch.eye(self.CHUNK) + ((strong @ k.mT) * between).tril(-1)
        both = torch.cat([v * strength[..., None], strong * decay[..., None].exp()], -1)
        values, from_key = torch.linalg.solve_triangular(unit, both, upper=False, unitriangular=True).split(
            [v.shape[-1], k.shape[-1]], dim=-1
        )
        scores, from_query = (q @ k.mT) * between, q * decay[..., None].exp()
        last = decay[..., -1:]
        to_end = k * (last - decay)[..., None].exp()
        state, outputs = torch.zeros(*q.shape[:2], k.shape[-1], v.shape[-1]), []
        for i in range(q.shape[2]):
            written = values[:, :, i] - from_key[:, :, i] @ state
            outputs.append(scores[:, :, i] @ written + from_query[:, :, i] @ state)
            state = state * last[:, :, i, :, None].exp() + to_end[:, :, i].mT @ written
        return torch.cat(outputs, 2)


class Activated(nn.Module):
    """relu(norm(convolution)), or without relu."""

    def __init__(self, conv, norm, relu=True):
        super().__init__()
        self.conv, self.norm, self.relu = conv, norm, relu

    def forward(self, x):
        y = self.norm(self.conv(x))
        return F.relu(y) if self.relu else y


class ResNetBlock(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class UNet(nn.Module):
    def __init__(self, down, grow, up):
        super().__init__()
        self.down, self.grow, self.up = nn.ModuleList(down), nn.ModuleList(grow), nn.ModuleList(up)

    def forward(self, x):
        features = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            features.append(x)
        for grow, block, skip in zip(reversed(self.grow), reversed(self.up), reversed(features[:-1])):
            x = block(torch.cat([skip, grow(x)], 1))
        return x


class LibraryLayers:
    """Builders by kind; whoever has them has `parameter` and `shape`."""

    def library_linear(self, depth, features, bias=False):
        made = nn.Linear(depth, features, bias)
        made.weight = self.parameter((depth, features), depth, axes=(1, 0))
        if bias:
            made.bias = self.parameter.bias(features)
        return made

    def library_norm(self, made, width, order=("weight", "bias")):
        """Luthier multiplies by 1 + scale."""
        for name in order:
            values = self.parameter.values((width,), SMALL)
            setattr(made, name, self.parameter.of(values + 1 if name == "weight" else values))
        return made

    def layer_norm(self, width):
        return self.library_norm(nn.LayerNorm(width, eps=1e-6), width)

    def recurrent_layers(self, cell, layers, fill):
        depth = self.shape[-1]
        made = cell(depth, depth, layers, batch_first=True)
        for i in range(layers):
            fill(made, f"_l{i}", depth)
        return Outputs(made)

    def fill_lstm(self, made, layer, depth):
        def in_order(values):
            """From candidate, input, forget and output to input, forget, candidate, output."""
            candidate, entry, forget, out = values.chunk(4, dim=-1)
            return torch.cat([entry, forget, candidate, out], -1)

        of_input, of_state = in_order(self.parameter.values((2 * depth, 4 * depth), 2 * depth)).chunk(2)
        bias = in_order(self.parameter.values((4 * depth,), SMALL))
        weights = [self.parameter.of(values) for values in (of_input.T, of_state.T, bias)]
        no_bias = nn.Parameter(torch.zeros(4 * depth), requires_grad=False)
        self.set_recurrent(made, layer, [*weights, no_bias])

    def fill_gru(self, made, layer, depth):
        weights = [self.parameter((depth, 3 * depth), depth, axes=(1, 0)) for _ in range(2)]
        bias, of_state = self.parameter.bias(3 * depth), self.parameter.values((depth,), SMALL)
        # Of the state's biases, Luthier has that of the candidate alone.
        all_of_state = torch.cat([torch.zeros(2 * depth), of_state])
        self.set_recurrent(made, layer, [*weights, bias, self.parameter.of(all_of_state, slice(2 * depth, None))])

    @staticmethod
    def set_recurrent(made, layer, values):
        for name, value in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), values):
            setattr(made, name + layer, value)

    def stackFrnn(self, layer):
        cell, fill = {"lstm": (nn.LSTM, self.fill_lstm), "gru": (nn.GRU, self.fill_gru)}[layer["cell"]]
        return self.recurrent_layers(cell, layer["layers"], fill)

    def conformer(self, layer):
        width, heads, size = self.shape[-1], layer["heads"], layer["size"]
        feed_forwards = [
            FeedForward(
                self.layer_norm(width),
                self.library_linear(width, 4 * width, True),
                self.library_linear(4 * width, width, True),
            )
            for _ in range(2)
        ]
        shape = (width, heads, width // heads)
        maps = []
        for is_output in (False, False, False, True):
            made = nn.Linear(width, width)
            matrix = self.parameter.values(shape, width).reshape(width, width)
            made.weight = self.parameter.of(matrix if is_output else matrix.T)
            made.bias = self.parameter.bias(width)
            maps.append(made)
        per_dim_scale = self.parameter.bias(width // heads)
        attention = SelfAttention(self.layer_norm(width), *maps, per_dim_scale, heads)
        norm = self.layer_norm(width)
        act, gated, end = (self.library_linear(width, width, True) for _ in range(3))
        depthwise = nn.Conv1d(width, width, size, groups=width, bias=False)
        depthwise.weight = self.parameter((size, 1, width), size, axes=(2, 1, 0))
        batch_norm = self.library_norm(
            nn.BatchNorm1d(width, eps=1e-3, track_running_stats=False), width, ("bias", "weight")
        )
        convolution = LightConvolution(norm, act, gated, end, depthwise, batch_norm)
        return nn.Sequential(feed_forwards[0], attention, convolution, feed_forwards[1], self.layer_norm(width))

    def short_convolution(self, channels, bias):
        made = nn.Conv1d(channels, channels, 4, padding=3, groups=channels, bias=bias)
        made.weight = self.parameter.of(self.parameter.values((4, channels), 4).T[:, None])
        if bias:
            made.bias = self.parameter.bias(channels)
        return ShortConvolution(made)

    def mamba(self, _):
        width, states = self.shape[-1], 16
        channels, rank = 2 * width, math.ceil(width / 16)
        dt_bias, a_log, d = (
            self.parameter.bias(channels),
            self.parameter((channels, states), channels),
            self.parameter.bias(channels),
        )
        in_proj = self.library_linear(width, 2 * channels)
        conv = self.short_convolution(channels, True)
        x_proj = self.library_linear(channels, rank + 2 * states)
        dt_proj, out_proj = self.library_linear(rank, channels), self.library_linear(channels, width)
        return Mamba(in_proj, conv, x_proj, dt_proj, out_proj, dt_bias, a_log, d)

    def deltaNet(self, layer):
        width, heads, head_dim = self.shape[-1], layer["heads"], layer["headDim"]
        all_heads = heads * head_dim
        dt_bias, a_log = self.parameter.bias(heads), self.parameter.bias(heads)
        qkvz, ba = self.library_linear(width, 4 * all_heads), self.library_linear(width, 2 * heads)
        conv = self.short_convolution(3 * all_heads, False)
        norm = nn.RMSNorm(head_dim, eps=1e-6)
        norm.weight = self.parameter.bias(head_dim)
        out_proj = self.library_linear(all_heads, width)
        return GatedDeltaNet(qkvz, ba, conv, norm, out_proj, dt_bias, a_log, heads, head_dim)

    def activated(self, depth, features, size, norm, stride=1, relu=True):
        made = nn.Conv2d(depth, features, size, stride, size // 2, bias=False)
        made.weight = self.parameter((size, size, depth, features), size * size * depth, axes=(3, 2, 0, 1))
        return Activated(made, self.library_norm(norm(features), features, ("bias", "weight")), relu)

    def resNet18(self, _):
        def conv(*sizes, **more):
            norm = lambda features: nn.BatchNorm2d(features, eps=1e-3, track_running_stats=False)
            return self.activated(*sizes, norm, **more)

        entry, blocks, depth = conv(3, 64, 7, stride=2), [], 64
        for stage, features in enumerate((64, 128, 256, 512)):
            for block in range(2):
                stride = 2 if stage > 0 and block == 0 else 1
                body = nn.Sequential(conv(depth, features, 3, stride=stride), conv(features, features, 3, relu=False))
                is_same = depth == features and stride == 1
                shortcut = nn.Identity() if is_same else conv(depth, features, 1, stride=stride, relu=False)
                blocks.append(ResNetBlock(body, shortcut))
                depth = features
        self.shape = (self.shape[0], 512)
        return nn.Sequential(entry, nn.MaxPool2d(3, 2, ceil_mode=True), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def uNet(self, layer):
        channels = layer["channels"]

        def twice(depth, features):
            norm = lambda width: nn.GroupNorm(8, width, eps=1e-3)
            return nn.Sequential(
                self.activated(depth, features, 3, norm), self.activated(features, features, 3, norm)
            )

        down = [twice(depth, features) for depth, features in zip((self.shape[-1], *channels), channels)]
        grow, up = [], []
        for fine, coarse in zip(channels, channels[1:]):
            made = nn.ConvTranspose2d(coarse, fine, 2, 2)
            made.weight = self.parameter((2, 2, fine, coarse), 4 * fine, axes=(3, 2, 0, 1))
            made.bias = self.parameter.bias(fine)
            grow.append(made)
            up.append(twice(2 * fine, fine))
        self.with_features(channels[0])
        return UNet(down, grow, up)
