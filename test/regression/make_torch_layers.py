"""Writes torch_layers.json, the outputs, gradients and running moments that layers are tested against.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_torch_layers.py

Pictures are channels-first in PyTorch and channels-last in the file. All is computed in double precision on numbers
that single precision holds.
"""

import math

import torch
from torch import nn
from torch.nn.utils import rnn

from make_torch_references import numbers, write

ROWS = 3
PICTURE = (5, 4, 2)  # height, width, channels
VECTOR = (7,)


class Rows(nn.Embedding):
    """Whole numbers in, the rows of each sample side by side out."""

    def forward(self, x):
        return super().forward(x.long()).flatten(1)


class Residual(nn.Module):
    def __init__(self, shortcut, *body):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.shortcut = shortcut

    def forward(self, x):
        return self.shortcut(x) + self.body(x)


class Shared(nn.Linear):
    """One layer for all of the equal parts of a sample."""

    def forward(self, x):
        return super().forward(x.reshape(-1, self.in_features)).reshape(len(x), -1)


class Windowed(nn.Sequential):
    """Layers between two steps that scale the pasts of the labels and undo it: NLinear (Zeng et al. 2022) and RevIN
    (Kim et al. 2022)."""

    def __init__(self, kind, labels, window, *layers):
        super().__init__(*layers)
        self.scaling = [kind, labels, window]

    def forward(self, x):
        kind, labels, window = self.scaling
        past = x[:, : labels * window].reshape(len(x), labels, window)
        shift, deviation = past[..., -1:], 1
        if kind == "standard":
            shift = past.mean(-1, keepdim=True)
            deviation = torch.sqrt(past.var(-1, keepdim=True, unbiased=False) + 1e-5)
        scaled = ((past - shift) / deviation).flatten(1)
        z = super().forward(torch.cat([scaled, x[:, labels * window :]], 1))
        return (z.reshape(len(x), labels, -1) * deviation + shift).flatten(1)


class FeatureScale(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * self.weight


class Periodic(nn.Module):
    """PLR of Gorishniy, Rubachev & Babenko 2022, with a linear layer for each feature."""

    def __init__(self, features, width, frequencies):
        super().__init__()
        self.frequencies = nn.Parameter(torch.ones(features, frequencies))
        self.weight = nn.Parameter(torch.ones(features, 2 * frequencies, width))
        self.bias = nn.Parameter(torch.ones(features, width))

    def forward(self, x):
        angles = 2 * math.pi * self.frequencies * x[..., None]
        waves = torch.cat([torch.cos(angles), torch.sin(angles)], -1)
        return torch.relu((waves[..., None, :] @ self.weight)[..., 0, :] + self.bias).flatten(1)


class Members(nn.Module):
    """The first scales of TabM (Gorishniy et al. 2025)."""

    def __init__(self, members, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(members, features))

    def forward(self, x):
        return x[:, None] * self.scale


class MembersDense(nn.Module):
    """BatchEnsemble of Wen et al. 2020, as TabM has it."""

    def __init__(self, members, features, units):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(units, features))
        self.in_scale = nn.Parameter(torch.ones(members, features))
        self.out_scale = nn.Parameter(torch.ones(members, units))
        self.bias = nn.Parameter(torch.ones(members, units))

    def forward(self, x):
        return ((x * self.in_scale) @ self.weight.T) * self.out_scale + self.bias


class OfSequences(nn.Module):
    """An LSTM or a GRU. Of padded sequences it sees what counts; its states in the padding are 0."""

    def __init__(self, kind, *sizes, last=False, **options):
        super().__init__()
        self.inner = kind(*sizes, batch_first=True, **options)
        self.last = last
        self.lengths = None

    def forward(self, x):
        lengths = self.lengths or [x.shape[1]] * len(x)
        packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
        states, ends = self.inner(packed)
        if self.last:
            ends = ends[0] if isinstance(ends, tuple) else ends
            return torch.cat(list(ends[-2 if self.inner.bidirectional else -1 :]), -1)
        return rnn.pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]


def recurrent(kind, layers, lengths=None, inputs=3, **options):
    """Behind a dense layer, whose gradient is made of that of the input."""
    model = nn.Sequential(nn.Linear(inputs, 3), OfSequences(kind, 3, 2, **options))
    model[1].lengths = lengths
    return f"dense(3) {layers}", (5, inputs), model


def conv(channels, size, inputs=PICTURE[2], **options):
    return nn.Conv2d(inputs, channels, size, **options)


def behind_layer_norm(layers, shape, *modules):
    """The gradients of its weights, one for each scalar, are those of the input of what stands behind it."""
    first = nn.LayerNorm(shape if len(shape) == 1 else (shape[2], shape[0], shape[1]))
    return f"layer_norm {layers}".strip(), shape, nn.Sequential(first, *modules)


CASES = [
    behind_layer_norm("", VECTOR),
    behind_layer_norm("", PICTURE),
    behind_layer_norm("conv2d(3, 3)", PICTURE, conv(3, 3)),
    behind_layer_norm("conv2d(3, 3, stride=2, padding=1)", PICTURE, conv(3, 3, stride=2, padding=1)),
    behind_layer_norm("conv2d(3, 2, dilation=2, padding=1)", PICTURE, conv(3, 2, dilation=2, padding=1)),
    behind_layer_norm("conv2d(3, 4, padding=same)", PICTURE, conv(3, 4, padding="same")),
    behind_layer_norm("conv2d(4, 3, padding=1, groups=2, bias=false)", PICTURE,
                      conv(4, 3, padding=1, groups=2, bias=False)),
    behind_layer_norm("conv2d(6, 3, stride=2, groups=depthwise)", (5, 4, 3), conv(6, 3, inputs=3, stride=2, groups=3)),
    behind_layer_norm("maxpool(2)", PICTURE, nn.MaxPool2d(2)),
    behind_layer_norm("maxpool(3, 2, padding=1)", PICTURE, nn.MaxPool2d(3, 2, 1)),
    behind_layer_norm("avgpool(2)", PICTURE, nn.AvgPool2d(2)),
    behind_layer_norm("avgpool(3, 2, padding=1)", PICTURE, nn.AvgPool2d(3, 2, 1, count_include_pad=False)),
    behind_layer_norm("global_avgpool", PICTURE, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())),
    behind_layer_norm("flatten dense(3)", PICTURE, nn.Flatten(), nn.Linear(math.prod(PICTURE), 3)),
    behind_layer_norm("dense(3, shared=2)", (8,), Shared(4, 3)),
    ("dense(3, shared=2)", (8,), Windowed("last", 2, 4, Shared(4, 3))),
    ("dense(5) tanh dense(6)", (9,), Windowed("standard", 2, 4, nn.Linear(9, 5), nn.Tanh(), nn.Linear(5, 6))),
    behind_layer_norm("relu", VECTOR, nn.ReLU()),
    behind_layer_norm("leaky_relu(0.2)", VECTOR, nn.LeakyReLU(0.2)),
    behind_layer_norm("elu", VECTOR, nn.ELU()),
    behind_layer_norm("elu(0.7)", VECTOR, nn.ELU(0.7)),
    behind_layer_norm("gelu", VECTOR, nn.GELU()),
    behind_layer_norm("silu", VECTOR, nn.SiLU()),
    behind_layer_norm("softplus", VECTOR, nn.Softplus()),
    behind_layer_norm("sigmoid", VECTOR, nn.Sigmoid()),
    behind_layer_norm("tanh", VECTOR, nn.Tanh()),
    behind_layer_norm("scale", VECTOR, FeatureScale(7)),
    # Behind layer norm the rounding of its numbers, times 2 pi, would be seen.
    ("scale periodic(3, frequencies=2)", VECTOR, nn.Sequential(FeatureScale(7), Periodic(7, 3, 2))),
    behind_layer_norm("tabm(2) tabm_dense(3) tanh tabm_dense(4)", VECTOR, Members(2, 7), MembersDense(2, 7, 3), nn.Tanh(),
                      MembersDense(2, 3, 4)),
    # The sums of a gradient behind batch norm are zero: in front of it stand layers that do not only sum.
    ("dense(4) batch_norm tanh", VECTOR, nn.Sequential(nn.Linear(7, 4), nn.BatchNorm1d(4), nn.Tanh())),
    ("conv2d(3, 2) batch_norm(momentum=0.3, eps=0.01) silu", PICTURE,
     nn.Sequential(conv(3, 2), nn.BatchNorm2d(3, 0.01, 0.3), nn.SiLU())),
    behind_layer_norm(
        "residual(conv2d(4, 3, stride=2, padding=1, bias=false) batch_norm relu conv2d(4, 3, padding=1)) relu", PICTURE,
        Residual(conv(4, 1, stride=2, bias=False), conv(4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4),
                 nn.ReLU(), conv(4, 3, inputs=4, padding=1)), nn.ReLU()),
    ("embedding(5, 3) dense(2)", (4,), nn.Sequential(Rows(5, 3), nn.Linear(12, 2))),
]
for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU)):
    CASES += [
        recurrent(kind, f"{name}(2)"),
        recurrent(kind, f"{name}(2, bidirectional=true)", lengths=[3, 5, 1], bidirectional=True),
        recurrent(kind, f"{name}(2, last=true)", lengths=[2, 5, 4], last=True),
        recurrent(kind, f"{name}(2, layers=3, bidirectional=true, last=true)", lengths=[5, 1, 4], num_layers=3,
                  bidirectional=True, last=True),
        recurrent(kind, f"{name}(2, layers=2, bias=false)", lengths=[4, 2, 5], num_layers=2, bias=False),
    ]


def waves(shape, phase):
    """Numbers between -1.5 and 1.5, of few digits."""
    values = torch.tensor([1.5 * math.sin(1.7 * i + phase) for i in range(math.prod(shape))], dtype=torch.float64)
    return (torch.round(values * 64) / 64).reshape(shape)


def inputs(shape, model, phase):
    """A batch in the order of PyTorch."""
    size = (ROWS, *shape) if len(shape) < 3 else (ROWS, shape[2], shape[0], shape[1])
    values = waves(size, phase)
    return torch.round((values + 1.5) / 3 * 4) if isinstance(model[0], nn.Embedding) else values


def channels_last(tensor):
    return numbers(tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor)


def own_name(name):
    return name.replace("inner.", "")


def moments(model):
    return {name: numbers(values) for name, values in model.named_buffers() if "running" in name}


def layer_case(layers, shape, model):
    """A batch in training and its gradients. With running moments three batches, the gradients of the last, the
    moments that they leave, and the last batch again in evaluation."""
    model.double()
    for number, weight in enumerate(model.parameters()):
        weight.data = waves(weight.shape, 0.3 + number)
    batches = [inputs(shape, model, 2.1 * number) for number in range(3 if moments(model) else 1)]
    for x in batches:
        outputs = model(x)
    factors = waves(outputs.shape, 0.9)
    (outputs * factors).sum().backward()
    case = {
        "layers": layers, "input": shape, "rows": ROWS,
        "weights": {own_name(name): numbers(weight) for name, weight in model.named_parameters()},
        "batches": [channels_last(x) for x in batches],
        "outputs": channels_last(outputs), "output_gradient": channels_last(factors),
        "gradient": {own_name(name): numbers(weight.grad) for name, weight in model.named_parameters()},
    }
    if isinstance(model[-1], OfSequences):
        case |= {"sequence": True, "lengths": model[-1].lengths or []}
    if isinstance(model, Windowed):
        case["window_scaling"] = model.scaling
    if moments(model):
        case |= {"running": moments(model), "evaluation": channels_last(model.eval()(batches[-1]))}
    return case


if __name__ == "__main__":
    write("torch_layers.json", {"layers": [layer_case(*case) for case in CASES]})
