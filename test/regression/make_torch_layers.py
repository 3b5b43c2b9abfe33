"""Writes torch_layers.json, the outputs, gradients and running moments that layers are tested against.

The tests only need the file. It is written again by
    scripts/peers/python test/regression/make_torch_layers.py

Pictures are channels-first in PyTorch and channels-last in the file. All is computed in double precision on numbers
that single precision holds.

A sequence is positions x channels in the file; convolutions and poolings of PyTorch have it turned. With lengths, each
sample goes through the layers by itself, as long as it is, so that there is no padding at all; batch norm takes all
positions of all samples together. Outputs and their gradient are filled up with zeros.
"""

import copy
import math

import torch
from torch import nn
from torch.nn.utils import rnn

import make_torch_references
from make_torch_references import write

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


class AsSequence(nn.Module):
    """From here on sequences: a list of batches [samples, positions, channels]."""

    def __init__(self, positions):
        super().__init__()
        self.positions = positions

    def forward(self, x):
        return [x.reshape(len(x), self.positions, -1)]


class OnSequences(nn.Sequential):
    """A chain of modules for lists of batches."""

    def forward(self, x):
        for module in self:
            x = on_sequences(module, x)
        return x


class Sequences(OnSequences):
    """A model of rows that become sequences; or, with lengths, of a batch with padding."""

    def __init__(self, lengths, *modules):
        super().__init__(*modules)
        self.lengths = lengths

    def forward(self, x, filled=lambda sample: sample):
        if self.lengths:
            x = [sample[None, :length] for sample, length in zip(x, self.lengths)]
        y = super().forward(x)
        if torch.is_tensor(y):
            return filled(y)
        longest = max(sample.shape[1] for sample in y)
        return torch.cat([nn.functional.pad(filled(sample), (0, 0, 0, longest - sample.shape[1])) for sample in y])

    def counted(self, x):
        """1 for each output, 0 in the padding."""
        return copy.deepcopy(self).forward(x, torch.ones_like)


class SequenceResidual(Residual):
    def __init__(self, shortcut, *body):
        super().__init__(shortcut)
        self.body = OnSequences(*body)

    def forward(self, x):
        return [a + b for a, b in zip(on_sequences(self.shortcut, x), self.body(x))]


class Causal(nn.Conv1d):
    def forward(self, x):
        return super().forward(nn.functional.pad(x, ((self.kernel_size[0] - 1) * self.dilation[0], 0)))


class OverTime(nn.Module):
    """Positions become one vector."""

    def __init__(self, *functions):
        super().__init__()
        self.functions = functions

    def forward(self, x):
        return torch.cat([torch.cat([function(batch) for function in self.functions], -1) for batch in x])


class RowsOnPositions(nn.Embedding):
    def forward(self, x):
        return super().forward(x.long()).flatten(2)


class Attention(nn.Module):
    """Its layers have the numbers that they have in the composite. Where nothing is shared or turned it is that of
    nn.MultiheadAttention, with the same weights."""

    def __init__(self, width, heads, kv_heads=None, causal=False, window=0, rotary=False, bias=True):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads or heads, width // heads
        self.causal, self.window, self.rotary = causal, window, rotary
        self.add_module("0", nn.Linear(width, (heads + 2 * self.kv_heads) * self.size, bias=bias))
        self.add_module("2", nn.Linear(width, width, bias=bias))

    def forward(self, x):
        first, out, positions = self.get_submodule("0"), self.get_submodule("2"), torch.arange(x.shape[1])
        distance = positions[:, None] - positions
        unseen = torch.zeros_like(distance, dtype=torch.bool)
        if self.causal:
            unseen |= distance < 0
        if self.window:
            unseen |= distance.abs() >= self.window
        if self.heads == self.kv_heads and not self.rotary:
            turned = x.transpose(0, 1)
            return nn.functional.multi_head_attention_forward(
                turned, turned, turned, x.shape[2], self.heads, first.weight, first.bias, None, None, False, 0,
                out.weight, out.bias, need_weights=False, attn_mask=unseen)[0].transpose(0, 1)
        qkv = first(x).unflatten(2, (-1, self.size)).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
        if self.rotary:
            q, k = rotated(q), rotated(k)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~unseen, enable_gqa=True)
        return out(y.transpose(1, 2).flatten(2))


def rotated(x):
    """As apply_rotary_pos_emb() of Llama in the transformers package."""
    positions, size = x.shape[-2:]
    angles = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.cat([angles, angles], 1)
    a, b = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()


class Positions(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(positions, width))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class SwiGlu(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        return nn.functional.silu(a) * b


def transformer(width, heads, hidden, blocks=1, norm=nn.LayerNorm, swiglu=False, bias=True, **options):
    """The chain that the composite opens to."""
    chain = []
    for _ in range(blocks):
        first = nn.Linear(width, 2 * hidden if swiglu else hidden, bias=bias)
        chain += [
            SequenceResidual(nn.Identity(), norm(width, eps=1e-5), Attention(width, heads, bias=bias, **options)),
            SequenceResidual(nn.Identity(), norm(width, eps=1e-5), first, SwiGlu() if swiglu else nn.GELU(),
                             nn.Linear(hidden, width, bias=bias)),
        ]
    return OnSequences(*chain)


def last(x):
    return x[:, -1]


def mean_over_time(x):
    return x.mean(1)


def max_over_time(x):
    return x.max(1).values


TURNED = (nn.Conv1d, nn.MaxPool1d, nn.AvgPool1d)


def on_sequences(module, x):
    """A module for a list of batches."""
    if isinstance(module, (AsSequence, OverTime, SequenceResidual, OnSequences)) or torch.is_tensor(x):
        return module(x)
    if isinstance(module, TURNED):
        return [module(batch.transpose(1, 2)).transpose(1, 2) for batch in x]
    if not isinstance(module, nn.BatchNorm1d):
        return [module(batch) for batch in x]
    if len(x) == 1:
        return [module(x[0].transpose(1, 2)).transpose(1, 2)]
    together = module(torch.cat([batch.flatten(0, 1) for batch in x]))
    parts = together.split([batch.shape[0] * batch.shape[1] for batch in x])
    return [part.reshape(*batch.shape[:2], -1) for part, batch in zip(parts, x)]


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


SEQUENCE = (6, 3)  # positions, channels
LENGTHS = [6, 3, 4]


def of_rows(layers, *modules):
    """Behind a layer norm of rows, whose weights see the gradient of each number of a sequence."""
    row = math.prod(SEQUENCE)
    text = f"layer_norm as_sequence({SEQUENCE[0]}) {layers}"
    return text, (row,), Sequences(None, nn.LayerNorm(row), AsSequence(SEQUENCE[0]), *modules)


def with_lengths(layers, shape, *modules):
    return layers, shape, Sequences(LENGTHS, *modules)


def both(layers, *modules):
    """Without padding and with: there a layer norm of positions stands in front."""
    return of_rows(layers, *modules), with_lengths(f"layer_norm {layers}", SEQUENCE, nn.LayerNorm(SEQUENCE[1]),
                                                   *copy.deepcopy(modules))


def conv1d(channels, width, inputs=SEQUENCE[1], kind=nn.Conv1d, **options):
    return kind(inputs, channels, width, **options)


SEQUENCE_CASES = [
    *both("conv1d(4, 3)", conv1d(4, 3)),
    *both("conv1d(4, 3, stride=2, padding=1)", conv1d(4, 3, stride=2, padding=1)),
    *both("conv1d(2, 2, dilation=2, padding=1)", conv1d(2, 2, dilation=2, padding=1)),
    *both("conv1d(4, 4, padding=same)", conv1d(4, 4, padding="same")),
    *both("conv1d(4, 3, stride=2, padding=same)", conv1d(4, 3, stride=2, padding=1)),
    *both("conv1d(6, 2, dilation=3, padding=causal)", conv1d(6, 2, kind=Causal, dilation=3)),
    *both("conv1d(5, 3, stride=2, padding=causal, bias=false)", conv1d(5, 3, kind=Causal, stride=2, bias=False)),
    *both("conv1d(6, 2, groups=depthwise)", conv1d(6, 2, groups=3)),
    *both("conv1d(4, 3, padding=1) tanh conv1d(6, 2, groups=2, stride=2, padding=causal)", conv1d(4, 3, padding=1),
          nn.Tanh(), conv1d(6, 2, 4, Causal, groups=2, stride=2)),
    *both("maxpool1d(2)", nn.MaxPool1d(2)),
    *both("maxpool1d(3, 2, padding=1)", nn.MaxPool1d(3, 2, 1)),
    *both("avgpool1d(3, 1)", nn.AvgPool1d(3, 1)),
    *both("concat(last | mean_over_time | max_over_time)", OverTime(last, mean_over_time, max_over_time)),
    *both("conv1d(4, 3) max_over_time dense(2)", conv1d(4, 3), OverTime(max_over_time), nn.Linear(4, 2)),
    *both("dense(4) tanh layer_norm dense(2)", nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2)),
    *both("conv1d(4, 2) batch_norm(momentum=0.3) silu last", conv1d(4, 2), nn.BatchNorm1d(4, momentum=0.3), nn.SiLU(),
          OverTime(last)),
    *both("residual(conv1d(3, 2, padding=causal, dilation=2) tanh) residual(conv1d(4, 3, stride=2, padding=same)) last",
          SequenceResidual(nn.Identity(), conv1d(3, 2, kind=Causal, dilation=2), nn.Tanh()),
          SequenceResidual(conv1d(4, 1, stride=2, bias=False), conv1d(4, 3, stride=2, padding=1)), OverTime(last)),
    with_lengths("embedding(5, 3) conv1d(2, 2) mean_over_time", (6, 1), RowsOnPositions(5, 3), conv1d(2, 2),
                 OverTime(mean_over_time)),
    *both("dense(4) attention(2)", nn.Linear(3, 4), Attention(4, 2)),
    *both("dense(4) attention(2, causal=true, bias=false)", nn.Linear(3, 4), Attention(4, 2, causal=True, bias=False)),
    *both("dense(4) attention(2, window=2)", nn.Linear(3, 4), Attention(4, 2, window=2)),
    *both("dense(8) attention(4, causal=true, kv_heads=2, window=3, rotary=true)", nn.Linear(3, 8),
          Attention(8, 4, 2, True, 3, True)),
    *both("dense(4) transformer(1, 1, causal=true, hidden=6) layer_norm", nn.Linear(3, 4),
          transformer(4, 1, 6, causal=True), nn.LayerNorm(4)),
    *both("dense(4) transformer(1, 2, norm=rms_norm, mlp=swiglu, hidden=3, bias=false) rms_norm", nn.Linear(3, 4),
          transformer(4, 2, 3, norm=nn.RMSNorm, swiglu=True, bias=False), nn.RMSNorm(4, eps=1e-5)),
    with_lengths("positions(learned) dense(2)", SEQUENCE, Positions(*SEQUENCE), nn.Linear(3, 2)),
]

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
    behind_layer_norm("gelu(tanh)", VECTOR, nn.GELU("tanh")),
    behind_layer_norm("silu", VECTOR, nn.SiLU()),
    behind_layer_norm("swiglu", (6,), SwiGlu()),
    ("dense(5) rms_norm(eps=0.01)", VECTOR, nn.Sequential(nn.Linear(7, 5), nn.RMSNorm(5, 0.01))),
    behind_layer_norm("softplus", VECTOR, nn.Softplus()),
    behind_layer_norm("sigmoid", VECTOR, nn.Sigmoid()),
    behind_layer_norm("tanh", VECTOR, nn.Tanh()),
    behind_layer_norm("scale", VECTOR, FeatureScale(7)),
    # Behind layer norm the rounding of its numbers, times 2 pi, would be seen.
    ("scale periodic(3, frequencies=2)", VECTOR, nn.Sequential(FeatureScale(7), Periodic(7, 3, 2))),
    behind_layer_norm("tabm(2) tabm_dense(3) tanh tabm_dense(4)", VECTOR, Members(2, 7),
                      MembersDense(2, 7, 3), nn.Tanh(),
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


def numbers(tensor):
    """Of waves() what they are made of: how many, their phase, and by what they are divided."""
    values = make_torch_references.numbers(tensor)
    for phase in [0.4, 0.9, *(2.1 * batch for batch in range(3)), *(0.3 + weight for weight in range(40))]:
        for divisor in (1, 4) if len(values) > 3 else ():
            if values == make_torch_references.numbers(waves((len(values),), phase) / divisor):
                return {"waves": [len(values), phase, divisor]}
    return values


def inputs(shape, model, phase):
    """A batch in the order of PyTorch."""
    size = (ROWS, shape[2], shape[0], shape[1]) if len(shape) == 3 else (ROWS, *shape)
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
    # Scores are products of products: with smaller weights single precision holds them to what the tests ask for.
    scale = 4 if any(isinstance(module, Attention) for module in model.modules()) else 1
    for number, weight in enumerate(model.parameters()):
        weight.data = waves(weight.shape, 0.3 + number) / scale
    batches = [inputs(shape, model, 2.1 * number) for number in range(3 if moments(model) else 1)]
    for x in batches:
        outputs = model(x)
    factors = waves(outputs.shape, 0.9)
    if getattr(model, "lengths", None):
        factors *= model.counted(batches[-1])
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
    if getattr(model, "lengths", None):
        case["lengths"] = model.lengths
    if moments(model):
        case |= {"running": moments(model), "evaluation": channels_last(model.eval()(batches[-1]))}
    return case


def training_case():
    """A small GPT in training: AdamW that spares biases and norms, clipping, warm-up and cosine."""
    ids, width, positions, steps, warm, lr = 7, 8, 6, 20, 4, 0.01
    model = Sequences(None, RowsOnPositions(ids, width), Positions(positions, width),
                      transformer(width, 2, 12, blocks=2, causal=True, bias=False), nn.LayerNorm(width),
                      nn.Linear(width, ids, bias=False)).double()
    for number, weight in enumerate(model.parameters()):
        weight.data = waves(weight.shape, 0.3 + number) / 4
    model[4].weight = model[0].weight
    weights = {name: numbers(weight) for name, weight in model.named_parameters()}
    decays = lambda name: name.endswith("weight") and "body.0" not in name and not name.startswith("3")
    groups = [[weight for name, weight in model.named_parameters() if decays(name) == wanted]
              for wanted in (True, False)]
    optimizer = torch.optim.AdamW([{"params": groups[0], "weight_decay": 0.1},
                                   {"params": groups[1], "weight_decay": 0}],
                                  lr, (0.9, 0.99))
    scheduler = torch.optim.lr_scheduler.SequentialLR(
        optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, warm),
                    torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps - warm, 0.001)], [warm])
    text = torch.round((waves((ROWS, positions + 1), 0.4) + 1.5) / 3 * (ids - 1))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model([text[:, :-1, None]]).flatten(0, 1), text[:, 1:].flatten().long())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return {"layers": f"embedding({ids}, {width}) positions(learned) "
                      f"transformer(2, 2, causal=true, hidden=12, bias=false) "
                      f"layer_norm dense({ids}, bias=false, tie=0)",
            "positions": positions, "rows": ROWS, "text": numbers(text), "weights": weights,
            "options": {"optimizer": "adamw", "weight_decay": 0.1, "beta2": 0.99, "clip_norm": 1.0,
                        "schedule": "cosine", "lr": lr, "end_lr": 0.001, "warmup": f"{warm} steps"},
            "losses": losses, "trained": {name: numbers(weight) for name, weight in model.named_parameters()}}


if __name__ == "__main__":
    write("torch_layers.json", {"layers": [layer_case(*case) for case in CASES + SEQUENCE_CASES],
                                "training": [training_case()]})
