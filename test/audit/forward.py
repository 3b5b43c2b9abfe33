"""Outputs of models of dense layers, and of sequences, computed from model.safetensors in double precision."""

import json
import math
import pathlib
import re

import numpy as np

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)),
    "leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, slope * x),
    "elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(0, x),
    "silu": lambda x: x * 0.5 * (1 + np.tanh(0.5 * x)),
    "identity": lambda x: x,
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2))),
}


UNIT = 6e-8


def read_tensors(path):
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        numbers = np.frombuffer(raw[8 + size + begin : 8 + size + end], np.float32)
        tensors[name] = numbers.reshape(about["shape"]).astype(float)
    return tensors, metadata


def parts_of_input(words):
    """How many equal parts of a sample a dense layer takes one by one (shared=K)."""
    return int(dict(word.strip().split("=") for word in words if "=" in word).get("shared", 1))


OVER_TIME = ("last", "mean_over_time", "max_over_time")


def ends_with_a_sequence(config):
    """Whether a model has outputs for each position."""
    layers, sequence = config.get("model.layers") or "", config.get("data.record") == "sequence"
    for name, words in items_of(layers):
        sequence = name == "as_sequence" or sequence and not (name in (*OVER_TIME, "flatten")
                                                              or "last=true" in words.replace(" ", ""))
    return sequence


def ended(name, x, counts):
    """What is made of all positions that count, 0 of none."""
    there = np.arange(x.shape[1])[None, :, None] < counts[:, None, None]
    if name == "last":
        found = x[np.arange(len(x)), np.maximum(counts, 1) - 1]
    elif name == "mean_over_time":
        found = np.where(there, x, 0).sum(axis=1) / np.maximum(counts, 1)[:, None]
    else:
        found = np.where(there, x, -np.inf).max(axis=1)
    return np.where(counts[:, None] > 0, found, 0)


def counts_behind(words, counts):
    """How many positions a sequence has behind a window, by its length before."""
    width, stride, dilation, padding = window_of([word.replace(" ", "") for word in words[1:]])
    if padding in ("same", "causal"):
        return -(-counts // (stride or 1))
    reach = (width - 1) * dilation - (0 if padding == "valid" else 2 * int(padding))
    return np.where(counts > 0, np.maximum((counts - reach - 1) // (stride or 1) + 1, 0), 0)


def cell(kind, w, x, h, c, noises):
    """States behind a step, by PyTorch's definition of a cell, each with how far it may be off."""
    (wi, wh, bi, bh), (nx, nh, nc) = w, noises
    sizes = lambda each, weights, bias: np.abs(each) @ np.abs(weights).T + np.abs(bias)
    rounding = lambda each, weights, bias: UNIT * (2 + np.sqrt(weights.shape[1])) * sizes(each, weights, bias)
    a, na = x @ wi.T + bi, nx @ np.abs(wi).T + rounding(x, wi, bi)
    b, nb = h @ wh.T + bh, nh @ np.abs(wh).T + rounding(h, wh, bh)
    gate = lambda z: 0.5 * (1 + np.tanh(0.5 * z))
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, axis=1)
        ni, nf, ng, no = np.split(na + nb, 4, axis=1)
        i, f, g, o = gate(i), gate(f), np.tanh(g), gate(o)
        ni, nf, ng, no = (each + 4 * UNIT for each in (ni / 4, nf / 4, ng, no / 4))
        nc = nf * np.abs(c) + f * nc + ni * np.abs(g) + i * ng
        c = f * c + i * g
        return o * np.tanh(c), c, no * np.abs(np.tanh(c)) + o * nc + 4 * UNIT, nc + 4 * UNIT * np.abs(c)
    (ra, za, n_a), (rb, zb, n_b) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
    (nra, nza, nna), (nrb, nzb, nnb) = np.split(na, 3, axis=1), np.split(nb, 3, axis=1)
    r, z, nr, nz = gate(ra + rb), gate(za + zb), (nra + nrb) / 4 + 4 * UNIT, (nza + nzb) / 4 + 4 * UNIT
    new, nnew = np.tanh(n_a + r * n_b), nna + nr * np.abs(n_b) + r * nnb + 4 * UNIT
    return (1 - z) * new + z * h, c, (1 - z) * nnew + z * nh + nz * np.abs(h - new) + 4 * UNIT, nc


def recurred(kind, words, tensors, prefix, x, noise, counts):
    """All states of lstm or gru, or the last ones, and how far they may be off."""
    keyed = {key: value for key, _, value in (word.replace(" ", "").partition("=") for word in words[1:])}
    levels, both = int(keyed.get("layers", 1)), keyed.get("bidirectional") == "true"
    for level in range(levels):
        states = []
        for side in ("", "_reverse")[: 1 + both]:
            names = [f"{prefix}{part}_l{level}{side}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            w = [tensors[name] if name in tensors else np.zeros(len(tensors[names[0]])) for name in names]
            h = c = nh = nc = np.zeros((len(x), w[1].shape[1]))
            out = np.zeros((2, *x.shape[:2], h.shape[1]))
            for t in range(x.shape[1])[:: -1 if side else 1]:
                there = (t < counts)[:, None]
                found = cell(kind, w, x[:, t], h, c, (noise[:, t], nh, nc))
                h, c, nh, nc = (np.where(there, new, old) for new, old in zip(found, (h, c, nh, nc)))
                out[:, :, t] = np.where(there, h, 0), np.where(there, nh, 0)
            states.append((*out, h, nh))
        x, noise = (np.concatenate([each[k] for each in states], axis=2) for k in (0, 1))
    if keyed.get("last") == "true":
        x, noise = (np.concatenate([each[k] for each in states], axis=1) for k in (2, 3))
    return x, noise


def window_of(words):
    """Width, stride, dilation and padding of conv1d, maxpool1d or avgpool1d, by their words without channels."""
    keyed = dict(word.split("=") for word in words if "=" in word)
    plain = [int(word) for word in words if "=" not in word]
    width = int(keyed["width"]) if "width" in keyed else plain.pop(0)
    stride = int(keyed.get("stride", plain[0] if plain else 0))
    return width, stride, int(keyed.get("dilation", 1)), keyed.get("padding", "valid")


def convolved(words, w, bias, x, noise):
    """A window over a sequence [rows, positions, channels], by the definition; and how far it may be off."""
    width, stride, dilation, padding = window_of([word.replace(" ", "") for word in words[1:]])
    reach = (width - 1) * dilation
    before = {"valid": 0, "same": reach // 2, "causal": reach}.get(padding)
    behind = {"valid": 0, "same": reach - reach // 2, "causal": 0}.get(padding)
    sides = (int(padding),) * 2 if before is None else (before, behind)
    x, noise = (np.pad(each, ((0, 0), sides, (0, 0))) for each in (x, noise))
    groups = x.shape[2] // w.shape[1]
    first = np.arange(0, x.shape[1] - reach, stride or 1)
    outputs = [np.zeros((len(x), len(first), len(w))) for _ in range(3)]  # of numbers, their sizes and their noise
    for out in range(len(w)):
        begin = out // (len(w) // groups) * w.shape[1]
        for tap in range(width):
            mine = w[out, :, tap]
            for total, part, factor in zip(outputs, (x, np.abs(x), noise), (mine, np.abs(mine), np.abs(mine))):
                total[:, :, out] += part[:, first + tap * dilation, begin : begin + w.shape[1]] @ factor
    return outputs[0] + bias, outputs[2] + 6e-8 * (2 + np.sqrt(w[0].size)) * (outputs[1] + np.abs(bias))


def with_keys(words):
    """Words before the keys, and what stands behind each key: "4, causal=true" as (["4"], {"causal": "true"})."""
    words = [word.replace(" ", "") for word in words]
    return [word for word in words if "=" not in word], dict(word.split("=", 1) for word in words if "=" in word)


def written(name, words, channels):
    """The layers that an attention, or a transformer of so many blocks, is made of."""
    plain, keys = with_keys(words)
    heads = int(plain[-1])
    bias = ", bias=false" if keys.get("bias") == "false" else ""
    of_attend = ", ".join(
        [str(heads), *(f"{key}={keys[key]}" for key in ("causal", "kv_heads", "window", "rotary") if key in keys)])
    if name == "attention":
        width = channels // heads * (heads + 2 * int(keys.get("kv_heads", heads)))
        return f"dense({width}{bias}) attend({of_attend}) dense({channels}{bias})"
    mlp, norm = keys.get("mlp", "gelu"), keys.get("norm", "layer_norm")
    hidden = int(keys.get("hidden", -(-(8 * channels // 3) // 16) * 16 if mlp == "swiglu" else 4 * channels))
    last = " dropout(0.1)" if float(keys.get("dropout", 0)) else ""
    attention = f"residual({norm} attention({of_attend}{bias}){last})"
    perceptron = f"residual({norm} dense({hidden * (1 + (mlp == 'swiglu'))}{bias}) {mlp} dense({channels}{bias}){last})"
    return f"{attention} {perceptron} " * int(plain[0])


def angles(positions, size):
    return np.arange(positions)[:, None] * 10000.0 ** (-2 * np.arange(size // 2)[None, :] / size)


def with_positions(words, tensors, prefix, x, noise):
    if words[0] == "learned":
        added = tensors[prefix + "weight"]
    else:
        turns = angles(*x.shape[1:])
        added = np.stack([np.sin(turns), np.cos(turns)], axis=2).reshape(x.shape[1:])
    return x + added, noise + UNIT * (np.abs(x + added) + np.abs(added))


def attended(words, x, noise):
    """Attention of queries, keys and values side by side, by the definition; and how far it may be off."""
    plain, keys = with_keys(words)
    heads, (rows, positions, width) = int(plain[0]), x.shape
    kv, limit = int(keys.get("kv_heads", heads)), int(keys.get("window", 0))
    size = width // (heads + 2 * kv)
    distance = np.arange(positions)[:, None] - np.arange(positions)[None, :]
    seen = (distance >= 0) | (keys.get("causal") != "true")
    if limit:
        seen &= np.abs(distance) < limit

    def apart(each, first, count):
        own = each[:, :, first * size : (first + count) * size]
        own = own.reshape(rows, positions, count, size).transpose(0, 2, 1, 3)
        return np.repeat(own, heads // count, axis=1)

    def turned(each, sign):
        if keys.get("rotary") != "true":
            return each
        turns, (a, b) = angles(positions, size), np.split(each, 2, axis=3)
        cosines, sines = (np.cos(turns), np.sin(turns)) if sign else (np.abs(np.cos(turns)), np.abs(np.sin(turns)))
        return np.concatenate([a * cosines - sign * b * sines, b * cosines + sign * a * sines] if sign
                              else [a * cosines + b * sines, b * cosines + a * sines], axis=3)

    q, k, v = apart(x, 0, heads), apart(x, heads, kv), apart(x, heads + kv, kv)
    nq, nk, nv = apart(noise, 0, heads), apart(noise, heads, kv), apart(noise, heads + kv, kv)
    nq, nk = (turned(n, 0) + 4 * UNIT * turned(np.abs(each), 0) for n, each in ((nq, q), (nk, k)))
    q, k = turned(q, 1), turned(k, 1)
    flip = lambda each: each.transpose(0, 1, 3, 2)
    sizes = np.abs(q) @ flip(np.abs(k))
    off = (nq @ flip(np.abs(k)) + np.abs(q) @ flip(nk) + UNIT * (3 + np.sqrt(size)) * sizes) / np.sqrt(size)
    scores = np.where(seen, q @ flip(k) / np.sqrt(size), -np.inf)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    off = np.where(seen, off, 0)
    off = weights * (off + (weights * off).sum(axis=3, keepdims=True) + 8 * UNIT)
    joined = lambda each: each.transpose(0, 2, 1, 3).reshape(rows, positions, heads * size)
    rounding = UNIT * (2 + np.sqrt(positions)) * weights @ np.abs(v)
    return joined(weights @ v), joined(weights @ nv + off @ np.abs(v) + rounding)


def normed(name, words, tensors, prefix, x, noise):
    """layer_norm or rms_norm over the last numbers, or batch_norm by its running moments; and how far it may be off."""
    keyed = {key: value for key, _, value in (word.replace(" ", "").partition("=") for word in words)}
    if name == "rms_norm":
        mean, variance = 0.0, (x**2).mean(axis=-1, keepdims=True)
    elif name == "layer_norm":
        mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    else:
        mean, variance = tensors[prefix + "running_mean"], tensors[prefix + "running_var"]
    deviation = np.sqrt(variance + float(keyed.get("eps", 1e-5)))
    found = (x - mean) / deviation
    off = noise + 4 * UNIT * (np.abs(x) + np.abs(mean))
    if name != "batch_norm":
        mean = lambda each: each.mean(axis=-1, keepdims=True)
        off = off + mean(off) + np.abs(found) * mean(np.abs(found) * off)
    weight, bias = tensors[prefix + "weight"], tensors.get(prefix + "bias", 0.0)
    off = off / deviation + 8 * UNIT * np.abs(found)
    return found * weight + bias, off * np.abs(weight) + UNIT * (np.abs(found * weight) + np.abs(bias))


def forward(layers_text, tensors, features, scaling=None, sequence=False, lengths=None):
    """Outputs and how far single precision may be off; None for a model that this does not know. `scaling`: of windows,
    by (kind, labels, window): the past of each label, and what is put out for it. `sequence`: records are [positions,
    channels], of which `lengths` count; None if all do."""
    layers = items_of(layers_text or "")
    if not layers or not all(known_layer(item, sequence) for item in layers):
        return None
    if features.ndim == 4 and ("flatten", "") in layers:
        features = features.transpose(0, 3, 1, 2)  # flatten goes channel by channel (guide from-pytorch)
    x = (features if sequence else features.reshape(len(features), -1)).astype(float)
    if lengths is not None:
        x = np.where(np.arange(x.shape[1])[None, :, None] < lengths[:, None, None], x, 0)
    unit, noise = UNIT, np.zeros_like(x)
    if scaling:
        kind, labels, window = scaling
        pasts = x[:, : labels * window].reshape(-1, labels, window)
        shift = pasts.mean(axis=2, keepdims=True) if kind == "standard" else pasts[:, :, -1:]
        deviation = np.sqrt(pasts.var(axis=2, keepdims=True) + 1e-5) if kind == "standard" else np.ones_like(shift)
        x = np.concatenate([((pasts - shift) / deviation).reshape(len(x), -1), x[:, labels * window :]], axis=1)
        noise = unit * np.abs(x)
    counts = np.full(len(x), x.shape[1]) if lengths is None else lengths
    if (found := chain(layers, tensors, "", x, noise, counts)) is None:
        return None
    x, noise = found
    if scaling:
        x, noise = x.reshape(len(x), labels, -1) * deviation + shift, noise.reshape(len(x), labels, -1) * deviation
        x, noise = x.reshape(len(features), -1), (noise + unit * np.abs(x)).reshape(len(features), -1)
    return x, noise


def items_of(text):
    """ "dense(16, shared=2) relu" as [("dense", "16, shared=2"), ("relu", "")]: what stands in the outer parentheses is
    a text. Empty where it is not written so."""
    items, at = [], 0
    while found := re.compile(r"\s*(\w+)\s*").match(text, at):
        at, depth = found.end(), 0
        begin = at
        while at < len(text) and (depth or text[at] == "("):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        items.append((found[1], text[begin + 1 : at - 1]))
    return items if not text[at:].strip() else []


def known_layer(item, sequence=False):
    """`sequence`: whether the records are."""
    name, words = item
    if name == "wide_deep":
        return len(words.split("|")) == 2 and all(known_layer(each, sequence) for part in words.split("|")
                                                  for each in items_of(part))
    if name == "residual":
        return sequence and all(known_layer(each, sequence) for each in items_of(words))
    if name in ("layer_norm", "rms_norm", "batch_norm", "embedding", "positions", "attention", "attend",
                "transformer", "swiglu"):
        return sequence
    if name == "gelu":
        return sequence and words in ("", "tanh")
    if name == "dense":
        return all(word.strip().startswith(("shared=", "init=", "bias=", "tie=")) for word in words.split(",")[1:])
    if name == "as_sequence":
        return words.strip().isdigit()
    if name == "conv1d":
        return words[:1].isdigit() and "init=" not in words and "channels=" not in words
    if name in ("lstm", "gru"):
        return words[:1].isdigit() and all(re.match(r"\s*(layers|bidirectional|last|bias)=", word)
                                           for word in words.split(",")[1:])
    return name in ACTIVATIONS or name in OVER_TIME or name in ("dropout", "flatten")


def chain(layers, tensors, prefix, x, noise, counts):
    """Outputs of layers whose tensors are called so, and how far they may be off. `counts`: of the positions of
    sequences."""
    unit, rows = UNIT, len(x)
    for number, (name, text) in enumerate(layers):
        words = [word.strip() for word in text.split(",") if word.strip()]
        if name == "wide_deep":
            parts = [chain(items_of(part), tensors, f"{prefix}{number}.{called}.", x, noise, counts)
                     for part, called in zip(text.split("|"), ("wide", "deep"))]
            if None in parts:
                return None
            x = parts[0][0] + parts[1][0]
            noise = parts[0][1] + parts[1][1] + unit * np.abs(x)
        elif name == "residual":
            body = chain(items_of(text), tensors, f"{prefix}{number}.body.", x, noise, counts)
            if body is None or body[0].ndim != x.ndim:
                return None
            w = tensors.get(f"{prefix}{number}.shortcut.weight")
            if w is not None:
                w = w.reshape(len(w), -1)
                x, noise = x @ w.T, noise @ np.abs(w).T + unit * (2 + np.sqrt(w.shape[1])) * (np.abs(x) @ np.abs(w).T)
            x, noise = body[0] + x, body[1] + noise
            noise = noise + unit * np.abs(x)
        elif name in ("attention", "transformer"):
            if (found := chain(items_of(written(name, words, x.shape[2])), tensors, f"{prefix}{number}.", x, noise,
                               counts)) is None:
                return None
            x, noise = found
        elif name == "embedding":
            x = tensors[f"{prefix}{number}.weight"][x[:, :, 0].astype(int)]
            noise = np.zeros_like(x)
        elif name == "positions":
            x, noise = with_positions(words, tensors, f"{prefix}{number}.", x, noise)
        elif name == "attend":
            x, noise = attended(words, x, noise)
        elif name == "swiglu":
            (a, b), (na, nb) = np.split(x, 2, axis=2), np.split(noise, 2, axis=2)
            gated = ACTIVATIONS["silu"](a)
            noise = (1.1 * na + 2 * UNIT * np.abs(gated)) * np.abs(b) + np.abs(gated) * nb + UNIT * np.abs(gated * b)
            x = gated * b
        elif (name, text) == ("gelu", "tanh"):
            x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
            noise = 1.2 * noise + 4 * UNIT * np.abs(x)
        elif name in ("layer_norm", "rms_norm", "batch_norm"):
            x, noise = normed(name, words, tensors, f"{prefix}{number}.", x, noise)
        elif name == "dense":
            owner = with_keys(words)[1].get("tie")  # the layer whose weight it has
            w = tensors[f"{owner or f'{prefix}{number}'}.weight"]
            shape = x.shape[:-1] if x.ndim == 3 else (rows,)
            x, noise = (each.reshape(-1, w.shape[1]) for each in (x, noise))
            bias = tensors.get(f"{prefix}{number}.bias", np.zeros(len(w)))
            noise = noise @ np.abs(w).T + unit * (2 + np.sqrt(w.shape[1])) * (np.abs(x) @ np.abs(w).T + np.abs(bias))
            x, noise = (each.reshape(*shape, -1) for each in (x @ w.T + bias, noise))
        elif name == "as_sequence":
            x, noise = (each.reshape(rows, int(text), -1) for each in (x, noise))
            counts = np.full(rows, int(text))
        elif name == "conv1d":
            w = tensors[f"{prefix}{number}.weight"]
            x, noise = convolved(words, w, tensors.get(f"{prefix}{number}.bias", np.zeros(len(w))), x, noise)
            counts = counts_behind(words, counts)
        elif name in ("lstm", "gru"):
            x, noise = recurred(name, words, tensors, f"{prefix}{number}.", x, noise, counts)
        elif name in OVER_TIME:
            # The largest of numbers that are off is off by no more than the most of them; the sum of a mean is rounded,
            # too.
            noise = ended("last" if name == "last" else "max_over_time", noise, counts)
            noise = noise + unit * (name == "mean_over_time") * np.abs(x).sum(axis=1)
            x = ended(name, x, counts)
        elif name == "flatten":
            x, noise = (each.reshape(rows, -1) for each in (x, noise))
        elif name in ACTIVATIONS:
            try:
                x = ACTIVATIONS[name](x, *[float(word.partition("=")[2] or word) for word in words])
            except (TypeError, ValueError):
                return None
            noise = noise + 2 * unit * np.abs(x)
        if x.ndim == 3:  # windows see zeros behind the end
            x, noise = (np.where(np.arange(x.shape[1])[None, :, None] < counts[:, None, None], each, 0)
                        for each in (x, noise))
    return x, noise
