"""Single records in evaluation.json: predicted against true, residuals, and the worst ones."""

import base64
import math
import re

import numpy as np

from .losses import classes_of, loss_matrix, predictions, probabilities
from .outputs import FAR
from .report import Span, same_digits
from .table_data import scale_of

RESIDUAL_BINS = 41
WORST = 20


class Values:
    """Targets and predictions in the units of the labels, and how far off the predictions may be."""

    def __init__(self, run, figures):
        form = figures.form
        levels = max(len(form.levels), 1)
        columns = run.target_columns()
        value = predictions(form, figures.outputs.values)
        error = figures.outputs.error * np.ones_like(figures.outputs.values)
        if form.link == "exp":
            error = value * error
        self.targets, self.predictions, self.errors = figures.targets.copy(), value.copy(), error.copy()
        for i in range(value.shape[1]):
            if not columns or form.link == "direction":
                continue
            scale = scale_of(columns[i // levels])
            with np.errstate(over="ignore"):
                self.predictions[:, i] = scale.undo(value[:, i])
            self.errors[:, i] = scale.undone_error(value[:, i], error[:, i])
        for i in range(self.targets.shape[1]):
            if columns and form.link != "direction":
                self.targets[:, i] = scale_of(columns[i]).undo(self.targets[:, i])
        self.levels = levels

    def middle(self, target):
        column = target * self.levels + self.levels // 2
        value = self.predictions[:, column]
        return value, self.errors[:, column] + 2e-7 * np.abs(value), self.targets[:, target]


def check_fits(sheet, run, json, figures):
    form = figures.form
    fitted = form.targets == "value" and form.link != "direction" and not run.config.get("data.horizon")
    wanted = min(figures.targets.shape[1], 4) if fitted else 0
    sheet.equal("evaluation.json: fits", len(json.get("fits", [])), wanted)
    if not wanted:
        return
    values = Values(run, figures)
    for i, fit in enumerate(json["fits"]):
        check_fit(sheet, f"evaluation.json: fits[{i}]", fit, *values.middle(i))


def check_fit(sheet, place, fit, prediction, error, target):
    there = np.isfinite(prediction) & np.isfinite(target)
    sheet.equal(f"{place}: points", len(fit["target"]), min(int(there.sum()), 1000))
    order = np.argsort(target[there], kind="stable")
    targets, predicted, errors = target[there][order], prediction[there][order], error[there][order]
    for k, (t, p) in enumerate(zip(fit["target"], fit["prediction"])):
        unit = 1.1e-5 * abs(t) + 1e-12
        around = lambda value, off: Span(value, value - off, value + off)
        near = [j for j in range(*np.searchsorted(targets, [t - unit, t + unit]))
                if same_digits(t, around(targets[j], 2e-7 * abs(targets[j])), 6)]
        sheet.check(f"{place}.target[{k}]", t, "a target of the set", lambda a, b: bool(near))
        close = [j for j in near if same_digits(p, around(predicted[j], errors[j]), 6)]
        right = min((float(predicted[j]) for j in near), key=lambda v: abs(v - p), default=math.nan)
        sheet.check(f"{place}.prediction[{k}]", p, right, lambda a, b: bool(close))
    check_residuals(sheet, place, fit, prediction, error, target, there)


def check_residuals(sheet, place, fit, prediction, error, target, there):
    width = fit["residual_width"]
    sizes = sorted(abs(p - t) for t, p in zip(fit["target"], fit["prediction"]))
    right = 1.2 * sizes[(len(sizes) - 1) * 98 // 100] if sizes else 1.0
    slack = 1e-5 * max(map(abs, fit["target"] + fit["prediction"]), default=0)
    sheet.check(f"{place}.residual_width", width, right if right > 0 else 1.0,
                lambda a, b: abs(a - b) <= 2 * slack + 1e-6 * abs(b))

    def counts(chosen):
        bins = np.clip(np.floor(((prediction - target)[chosen] / width + 1) / 2 * RESIDUAL_BINS), 0, RESIDUAL_BINS - 1)
        return np.bincount(bins.astype(int), minlength=RESIDUAL_BINS)

    unsure = counts_near_borders(prediction - target, error + 1.2e-7 * np.abs(target), width, there)
    every = counts(there)
    sheet.equal(f"{place}.residuals together", sum(fit["residuals"]), int(there.sum()))
    for b, shown in enumerate(fit["residuals"]):
        sheet.check(f"{place}.residuals[{b}]", shown, int(every[b]), lambda a, c: abs(a - c) <= unsure[b])


def counts_near_borders(residual, error, width, there):
    place = (residual[there] / width + 1) / 2 * RESIDUAL_BINS
    off = error[there] / width / 2 * RESIDUAL_BINS + 1e-9
    return [int(((np.abs(place - b) <= off) | (np.abs(place - b - 1) <= off)).sum()) for b in range(RESIDUAL_BINS)]


def record_losses(figures, outputs):
    """Of each record: the mean over its targets that are there."""
    with np.errstate(all="ignore"):
        matrix = loss_matrix(figures.form, outputs, figures.targets)
    there = ~np.isnan(matrix)
    total = np.where(there, matrix, 0).sum(axis=1)
    return total / np.maximum(there.sum(axis=1), 1)


def numbers_text(values, more_digits=()):
    digits = [5 + more for more in more_digits] or [5] * len(values)
    return ", ".join(f"{v:.{d}g}" for v, d in list(zip(values, digits))[:6]) + (", ..." if len(values) > 6 else "")


def masked(text):
    return re.sub(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", "#", text)


def same_story(shown, right, off=0.0):
    """The same words, and numbers that differ by one in the last digit at most, or by `off`."""
    if masked(shown) != masked(right):
        return False
    pattern = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
    for a, b in zip(re.findall(pattern, shown), re.findall(pattern, right)):
        decimals = len(a.partition("e")[0].partition(".")[2])
        unit = 10.0**-decimals * (10.0 ** int(a.partition("e")[2] or 0))
        if abs(float(a) - float(b)) > off + 1.01 * unit + 1e-4 * abs(float(b)) * ("." not in a and "e" not in a):
            return False
    return True


def texts_of(run, figures, values, i):
    """The words for the target and the prediction of a record."""
    form, names = figures.form, figures.names
    name = lambda k: names[k] if k < len(names) else str(k)
    row = figures.outputs.values[i : i + 1]
    if form.targets == "class":
        true, said = int(classes_of(figures.targets[i : i + 1])[0]), int(row[0].argmax())
        if not form.has_probabilities:
            return name(true), name(said)
        p = 100 * probabilities(form, row)[0]
        more = f"; {name(true)} has {p[true]:.1f} %" if said != true else ""
        return name(true), f"{name(said)} ({p[said]:.1f} %){more}"
    if form.targets == "binary" and figures.targets.shape[1] == 1:
        true = name(int(figures.targets[i, 0] > 0.5))
        if form.link == "logit":
            return true, f"{name(1)} has {100 * probabilities(form, row)[0, 0]:.1f} %"
        return true, numbers_text(row[0])
    if form.targets == "binary":
        shown = probabilities(form, row)[0] if form.link == "logit" else row[0]
        return numbers_text(figures.targets[i]), numbers_text(shown)
    more = [scale_of(column).more_digits() for column in run.target_columns()] if form.link != "direction" else []
    of_levels = [each for each in more for _ in range(values.levels)]
    return numbers_text(values.targets[i], more), numbers_text(values.predictions[i], of_levels)


def check_worst(sheet, run, json, figures, dataset):
    values = Values(run, figures) if figures.form.targets == "value" else None
    outputs, error = figures.outputs.values, figures.outputs.error
    # Of a probability that is 0 or 1 in single precision the loss may be anything farther.
    losses = record_losses(figures, outputs)
    near = record_losses(figures, outputs - np.where(error >= FAR, FAR * np.sign(outputs), 0))
    least = np.nan_to_num(np.minimum(losses, near), nan=np.inf)
    most = np.where(losses - least > 1e-5, np.inf, np.nan_to_num(losses, nan=np.inf))
    left, last = np.ones(len(losses), bool), np.inf
    sheet.equal("evaluation.json: worst", len(json["worst"]), min(WORST, len(dataset)))
    for rank, shown in enumerate(json["worst"]):
        loss = np.inf if shown["loss"] is None else shown["loss"]
        place, i = f"evaluation.json: worst[{rank}]", row_of(dataset, shown)
        off = 0.0 if i is None or (error[i] >= FAR).any() else 3 * float(error[i].max())
        slack = 2e-5 * abs(loss) + 2e-6 + off if np.isfinite(loss) else 0.0
        own = i is not None and left[i] and least[i] - slack <= loss <= most[i] + slack
        # None of those behind it has a larger loss; records of the same loss may change places, within its digits.
        first = own and loss <= last + slack and least[left].max(initial=-np.inf) <= loss + slack
        sheet.check(f"{place}.record", shown["record"], int(dataset.rows[np.argmax(np.where(left, least, -np.inf))]),
                    lambda a, b: first)
        if i is None:
            continue
        if "position" in shown:
            sheet.equal(f"{place}.position", shown["position"],
                        None if dataset.place is None else int(dataset.place[i]))
        sheet.check(f"{place}.loss", shown["loss"], float(losses[i]), lambda a, b: own)
        left[i], last = False, loss
        check_worst_record(sheet, run, place, shown, i, figures, dataset, values, json.get("columns", []))


def row_of(dataset, shown):
    """The record, or position, of the set that is shown; None for numbers that are none of its."""
    found = np.flatnonzero((dataset.rows == shown["record"])
                           & (True if dataset.place is None else dataset.place == shown.get("position")))
    if dataset.windows and len(found) > 1:  # times that a series lacks have the record before them
        time = lambda i: dataset.windows.positions.time_text(dataset.windows.origins[i], 0)
        found = [i for i in found if time(i) == shown["cells"][-1]]
    return int(found[0]) if len(found) else None


def check_worst_record(sheet, run, place, shown, i, figures, dataset, values, columns):
    files = dataset.files
    if shown.get("file"):
        sheet.check(f"{place}.file", shown["file"], files[dataset.file_of[i]], lambda a, b: b.endswith(a.lstrip("./")))
    target, prediction = texts_of(run, figures, values, i)
    sheet.check(f"{place}.target", shown["target"], target, same_story)
    off = float(np.nan_to_num(values.errors[i], posinf=0).max()) if values else 0.0
    sheet.check(f"{place}.prediction", shown["prediction"], prediction, lambda a, b: same_story(a, b, off))
    if "picture" in shown:
        check_picture(sheet, f"{place}.picture", shown["picture"], dataset)
    if dataset.windows:
        origin = dataset.windows.origins[i]
        sheet.equal(f"{place}.cells", shown["cells"],
                    [*dataset.windows.positions.names(origin), dataset.windows.positions.time_text(origin, 0)])
    if "cells" in shown and dataset.table is not None:
        check_cells(sheet, place, shown["cells"], columns, dataset, i)


def check_picture(sheet, place, picture, dataset):
    """Its size is that of the image, at most 48 pixels on a side, and it has a byte for each of its channels."""
    shape = dataset.features.shape[1:] if dataset.features is not None else ()
    right = (picture["width"], picture["height"], picture["channels"])
    if len(shape) in (2, 3):
        height, width, channels = (*shape, 1)[:3]
        longer = max(height, width, 48)
        right = (width * 48 // longer, height * 48 // longer, 3 if channels >= 3 else 1)
    for name, value in zip(("width", "height", "channels"), right):
        sheet.equal(f"{place}.{name}", picture[name], value)
    sheet.equal(f"{place}.pixels", len(base64.b64decode(picture["pixels"])), math.prod(right))


def check_cells(sheet, place, cells, columns, dataset, i):
    """What stands in the file, where the features tell it: a number to six digits, a category that training knows."""
    table, row = dataset.table, int(dataset.numbers[i])
    by_name = {c.name: c for c in table.columns}
    for k, (name, shown) in enumerate(zip(columns, cells)):
        column, value = by_name.get(name), table.cells[row].get(name)
        if column is None:
            continue
        at = f"{place}.cells[{k}] ({name})"
        if column.kind == "categorical":
            if column.json["encode"] != "hash":
                known = ("" if value is None else value) in column.json["values"]
                sheet.equal(at, shown, (value or "(missing)") if known else "(unknown)")
        elif value is None:
            sheet.check(at, shown, "no number: it is missing", lambda a, b: is_no_number(a))
        elif "date" not in column.json and "bins" not in column.json and column.json["scale"] != "robust":
            # It comes from the feature, in single precision.
            slack = 3e-7 * (abs(value) + abs(column.json.get("deviation", 0)) + abs(column.json.get("mean", 0)))
            sheet.check(at, shown, value, lambda a, b: not is_no_number(a := only_number(a, column))
                        and same_digits(a, Span(b, b - slack, b + slack), 5))


def only_number(text, column):
    """The number of "(missing or 3)", which stands where it is the number that is filled in."""
    found = re.fullmatch(r"\(missing or (\S+)\)", text)
    filled = column.json["mean"] if column.json["missing"] == "mean" else column.json["missing"]
    same = found and column.json["scale"] != "log" and abs(float(found[1]) - filled) <= 1e-4 * abs(filled) + 1e-6
    return found[1] if same else text


def is_no_number(text):
    try:
        float(text)
    except ValueError:
        return True
    return False

