"""The outputs of a model for the records of a set: from what `trainer predict` writes, and from the weights
themselves."""

import csv
import pathlib
import subprocess
import tempfile

import numpy as np

from .forward import forward
from .table_data import scale_of
from .window_data import list_of

UNIT = 6.0e-8  # half a unit in the last place of single precision
FAR = 30.0  # the error of an output whose probability is 0 or 1 in single precision: it may lie anywhere farther from 0
LEAST = 1.401298464324817e-45


class Outputs:
    """`values`: as the loss sees them; `error`: how far each may be off what the program had."""

    def __init__(self, values, error):
        self.values, self.error = np.asarray(values, float), np.asarray(error, float)

    def part(self, rows):
        return Outputs(self.values[rows], self.error[rows])

    def times(self, factor):
        error = self.error * abs(factor) + UNIT * np.abs(self.values)
        return Outputs(self.values * factor, np.where(self.error >= FAR, np.maximum(error, FAR), error))


def in_order(outputs, levels):
    """The quantiles of each target in rising order."""
    apart = lambda values: values.reshape(len(outputs.values), -1, levels)
    values = np.sort(apart(outputs.values), axis=2)
    error = np.broadcast_to(apart(np.broadcast_to(outputs.error, outputs.values.shape)).max(axis=2, keepdims=True),
                            values.shape)
    return Outputs(values.reshape(outputs.values.shape), error.reshape(outputs.values.shape))


def predict(trainer, model, text, cwd, config, lengths=None):
    """The lines of `trainer predict` for some files: names of the columns, and cells of each record. `lengths`: their
    file."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "predictions.csv"
        words = [trainer, "predict", "--model", str(model), "--input", text, "--output", str(path), "--allow-nan"]
        if config["data.format"] in ("csv", "libsvm"):
            words += ["--data.on_bad_record", "skip", "--data.max_bad_share", "1"]
        words += ["--lengths", lengths] if lengths else []
        done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        with open(path, newline="", errors="surrogateescape") as file:
            lines = list(csv.reader(file))
    return lines[0], lines[1:]


def numbers(cells):
    return np.array([[np.nan if cell == "" else float(cell) for cell in row] for row in cells], float)


def digits_of(cell):
    """Significant ones."""
    return len(cell.lower().partition("e")[0].replace(".", "").strip("+-").lstrip("0"))


def logarithm(p):
    """Of probabilities, and how far it may be off."""
    p = np.asarray(p, float)
    with np.errstate(divide="ignore"):
        value = np.log(np.maximum(p, LEAST))
    # An exponential of single precision is off by its argument times that.
    known = p > 1e-37
    return np.where(known, value, np.log(1e-37) - FAR), np.where(known, (2.5 + np.abs(value)) * UNIT, FAR)


def logits(value, error, no):
    """`no`: the probability of no, which is 0 in single precision from a logit of 16 on."""
    lost = no < 2 * UNIT
    return Outputs(np.where(lost, 16 + FAR, value), np.where(lost, FAR, error))


def from_predictions(form, names, cells, label_columns):
    """Outputs of the columns of predictions.csv. `label_columns`: of schema.json, numbers first; may be empty."""
    probabilities = [i for i, name in enumerate(names) if name.startswith(("p_", "score_"))]
    # A target or a kept column may be called so, too: probabilities stand last.
    if form.targets == "class":
        p = numbers([[row[i] for i in probabilities] for row in cells])
        if form.link == "score":
            return Outputs(p.astype(np.float32), np.zeros_like(p))
        value, error = logarithm(p)
        return Outputs(value, error)
    if form.targets == "binary":
        p = numbers([[row[i] for i in probabilities] for row in cells])
        if form.link == "score":
            return Outputs(p.astype(np.float32), np.zeros_like(p))
        if len(label_columns) <= 1 and p.shape[1] == 2:
            no, e1 = logarithm(p[:, :1])
            yes, e2 = logarithm(p[:, 1:])
            # The probability of no is one less that of yes, in single precision.
            return logits(yes - no, e1 + e2 + UNIT / np.maximum(p[:, :1], UNIT), p[:, :1])
        with np.errstate(divide="ignore"):
            value, error = logarithm(p)
            return logits(value - np.log(np.maximum(1 - p, 1e-9)), error + UNIT / np.maximum(1 - p, UNIT), 1 - p)
    values = numbers([row[1:] for row in cells])
    # Labels far from 0 have more digits than single precision.
    rounding = [10.0 ** (1 - most) if (most := max((digits_of(row[1 + i]) for row in cells), default=0)) > 9
                else 1.5 * UNIT for i in range(values.shape[1])]
    if form.link == "exp":
        value, error = logarithm(values)
        return Outputs(value, error)
    if form.link == "direction" or not label_columns:
        return Outputs(values, UNIT * np.abs(values))
    levels = max(len(form.levels), 1)
    columns, errors = [], []
    for i in range(values.shape[1]):
        scale = scale_of(label_columns[i // levels])
        # Beyond single precision: the scale of a label was undone, which is known up to there.
        beyond = np.isinf(values[:, i])
        x = np.clip(values[:, i], -3.4e38, 3.4e38)
        columns.append([np.nan if np.isnan(v) else scale.apply(v) for v in x])
        step = rounding[i] * np.abs(x)
        errors.append([0.0 if np.isnan(v) else abs(scale.apply(v + s) - scale.apply(v - s)) / 2 + UNIT
                       for v, s in zip(x, step)])
        columns[-1] = np.where(beyond, columns[-1] + np.sign(x) * FAR, columns[-1])
        errors[-1] = np.where(beyond, FAR, errors[-1])
    return Outputs(np.array(columns).T, np.array(errors).T)


PRESETS = {"gpt": "embedding({outputs}, 128) positions(learned) transformer(4, 4, causal=true) layer_norm "
                  "dense({outputs}, bias=false, tie=0)",
           "nlinear": "flatten dense({outputs}, init=zero)",
           "forecast_mlp": "flatten wide_deep(dense({outputs}, init=zero) | "
                           "dense(128) relu dropout(0.1) dense({outputs}))"}


def scaling_of(config):
    """How pasts of labels are scaled before the layers and behind them: (kind, labels, window), or None."""
    forecast = config.get("data.window") and config.get("data.horizon")
    kind = config.get("data.window_scale", "none") if forecast else "none"
    return None if kind == "none" else (kind, len(list_of(config["data.label"])), config["data.window"])


def from_weights(config, tensors, temperature, dataset):
    """None for a model that the auditor cannot compute."""
    if dataset.features is None or config.get("train.precision") == "bf16":
        return None
    preset = PRESETS.get(config.get("model.preset"), "")
    layers = config.get("model.layers") or preset.format(outputs=config.get("model.outputs"))
    found = forward(layers, tensors, dataset.features, scaling_of(config),
                    config.get("data.record") == "sequence" or config.get("data.format") == "text", dataset.lengths)
    if found is None:
        return None
    if dataset.of_positions:
        found = [each[dataset.places()] for each in found]
    return Outputs(found[0] / temperature, found[1] / temperature + UNIT * np.abs(found[0] / temperature))
