"""What the end of a run chooses on the validation set: the threshold and the temperature."""

import numpy as np

from . import metrics
from .figures import Figures, answered, moved
from .outputs import Outputs
from .report import Span
from .summary import figures_of


def measure_at(measure, p, yes, weights, threshold):
    right, wrong, missed, both = answered(p, yes, weights, threshold)
    if measure == "f1":
        return 2 * both / (2 * both + missed + wrong)
    balanced = (both / (both + missed) + right / (right + wrong)) / 2
    return 2 * balanced - 1 if measure == "youden" else balanced


def check_threshold(sheet, run):
    shown = run.summary.get("threshold")
    evaluation = run.summary.get("evaluation") or {}
    sheet.equal("summary.json: evaluation: has a threshold", "threshold" in evaluation, bool(shown and evaluation))
    if "threshold" in evaluation and run.sets[evaluation["split"]] is not None:
        figures = figures_of(run, evaluation["split"])
        right = figures.answers_at(run.metadata["threshold"], evaluation["threshold"])
        sheet.same("summary.json: evaluation.threshold", evaluation["threshold"], right)
    rule = run.config.get("eval.threshold")
    if not shown:
        return
    place = "summary.json: threshold"
    in_model = float(run.metadata["threshold"])
    sheet.number("model.safetensors: threshold", in_model, shown["probability"])
    if "measure" not in shown:
        sheet.number(place + ".probability", shown["probability"], float(rule), relative=1e-12)
        return
    sheet.equal(place + ".measure", shown["measure"], rule)
    if run.sets["validation"] is None:
        sheet.rename(place, "made-up data: threshold")
        return
    p, yes, weights = figures_of(run, "validation").yes_samples()
    kinds = np.unique(p)
    middles = np.concatenate([[kinds[0] / 2], (kinds[1:] + kinds[:-1]) / 2])
    values = np.array([measure_at(rule, p, yes, weights, t) for t in middles])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    near = min(best, key=lambda i: (round(abs(middles[i] - 0.5), 9), middles[i]))
    sheet.number(place + ".value", shown["value"], values[near], relative=1e-6)
    sheet.check(place + ".probability", shown["probability"], middles[near], lambda a, b: abs(a - b) <= 1e-6)


def slope(figures, b):
    """Of the log loss, by the inverse temperature."""
    x, targets, weights = figures.outputs.values, figures.targets, figures.weights
    if figures.form.targets == "class":
        x = x - x.max(axis=1, keepdims=True)
        p = np.exp(b * x)
        p /= p.sum(axis=1, keepdims=True)
        return (weights * ((p - metrics.shares_of(targets, x.shape[1])) * x).sum(axis=1)).sum()
    p = 0.5 * (1 + np.tanh(0.5 * b * x))
    return np.nansum(weights[:, None] * x * (p - targets))


def has_classes(figures):
    """Whether there are records of more than one class, or of yes and of no."""
    weighed = figures.targets[figures.weights > 0]
    if figures.form.targets == "class":
        return (metrics.shares_of(weighed, figures.classes).sum(axis=0) > 0).sum() > 1
    return bool(np.nansum(weighed) > 0 and np.nansum(1 - weighed) > 0)


def best_temperature(figures):
    low, high = 0.01, 100.0
    if not slope(figures, low) < 0 or not slope(figures, high) > 0:
        return None
    for _ in range(200):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if slope(figures, middle) < 0 else (low, middle)
    return 1 / np.sqrt(low * high)


def check_calibration(sheet, run):
    shown = run.summary.get("calibration")
    place = "summary.json: calibration"
    if not shown:
        return
    sheet.number("model.safetensors: temperature", run.temperature, shown["temperature"])
    if run.sets["validation"] is None:
        sheet.rename(place, "made-up data: calibration")
        return
    after = figures_of(run, "validation")
    before = figures_of(run, "validation", divided=False)
    ends = moved(run.form, before.outputs, before.targets)
    bare = [Figures(run.form, Outputs(values, np.zeros(1)), before.targets, before.weights) for values in ends]
    right = [best_temperature(each) if has_classes(before) else None for each in bare]
    unsure = len({each is None for each in right}) > 1
    sheet.check(place + ".found", shown["found"], right[0] is not None, lambda a, b: a == b or unsure)
    # Of outputs that may as well have none it may be anything up to the bound that they lie beyond.
    bound = lambda figures: 0.01 if slope(figures, 0.01) < 0 else 100.0
    ends = [each or bound(figures) for each, figures in zip(right, bare)] if shown["found"] else [1.0]
    span = Span(right[0] or ends[0], min(ends), max(ends))
    sheet.number(place + ".temperature", shown["temperature"], span, relative=2e-5)
    for figures, end in ((before, "_before"), (after, "")):
        sheet.number(f"{place}.log_loss{end}", shown["log_loss" + end], figures.named("log_loss"), relative=1e-5)
        sheet.number(f"{place}.ece{end}", shown["ece" + end], figures.named("ece"), relative=1e-4)
    sheet.equal(place + ".chose_weights", shown["chose_weights"], run.summary["kept"]["weights"] == "best")
