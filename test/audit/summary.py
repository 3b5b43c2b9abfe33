"""summary.json and metrics.jsonl."""

import math

import numpy as np

from .config import span_of
from .evaluations import check_evaluation, check_tables
from .figures import Figures
from .length import length_of
from .outputs import Outputs
from .report import leaves
from .table_data import scale_of
from .timing import check_ranks, check_shares, check_workers, gradients_of

NO_MEASURES = ("step", "epoch", "samples_seen", "samples", "positions", "top_k", "seconds")
SMALLER = {"loss", "log_loss", "bits_per_character", "perplexity", "brier", "ece", "mean_absolute_error", "pinball",
           "mean_squared_error", "root_mean_squared_error", "mean_absolute_percentage_error", "poisson_deviance",
           "tweedie_deviance", "gamma_deviance"}  # fmt: skip


def figures_of(run, split, model="", divided=True):
    """`divided`: by the temperature, as `predict` gives outputs of a finished run."""
    key = ("figures", split, model, divided)
    if key not in run.found:
        outputs = run.outputs(split, model)
        if not divided and run.temperature != 1:
            outputs = outputs.times(run.temperature)
        labels = run.label_columns()
        names = run.class_names() or ([c["name"] for c in labels] if len(labels) > 1 else [])
        dataset = run.sets[split]
        targets, weights = dataset.counted().targets, run.weights(split)
        found = run.found[key] = Figures(run.form, outputs, targets, weights, names, scales_of(labels))
        found.characters = dataset.text and dataset.text.characters
        found.windows, found.samples, found.of_positions = dataset.windows, len(dataset), dataset.of_positions
    return run.found[key]


def scales_of(labels):
    """None if no label is scaled."""
    scaled = any(c.get("scale", "none") != "none" for c in labels if c["kind"] == "numeric")
    return [scale_of(c) for c in labels] if scaled else []


def kept_figures(run, line):
    """Of the model that an evaluation was made of, if it is there: the kept weights, or those of a checkpoint."""
    kept = run.summary["kept"]
    if run.sets[line["split"]] is None:
        return None
    if line["step"] == kept["step"] or line["split"] == "test" and run.has_validation():
        return "", False
    if run.config.get("train.ema") or run.config.get("train.swa_from") or run.config.get("eval.precise_bn"):
        return None
    checkpoint = run.directory / f"checkpoints/step-{line['step']:09d}"
    return (f"@step-{line['step']}", True) if checkpoint.exists() else None


def check_summary(sheet, run):
    summary, length = run.summary, length_of(run)
    sheet.document("summary.json", summary)
    place = "summary.json: "
    ended = summary["steps"]
    if "early_stopping" not in summary:
        sheet.equal(place + "steps", ended, length.steps)
    else:
        sheet.check(place + "steps", ended, length.steps, lambda a, b: 0 < a <= b)
    check_progress(sheet, place, summary, ended, length, "epochs")
    speed = summary["samples_seen"] / summary["seconds"]
    sheet.number(place + "samples_per_second", summary["samples_per_second"], speed)
    sheet.check(place + "seconds", summary["seconds"], 0, lambda a, b: a > 0)
    check_rate(sheet, run, place + "lr", summary["lr"], ended)
    check_shares(sheet, run, place + "time", summary["time"])
    if "ranks" in summary:
        gradients = gradients_of(run, summary | summary.get("asynchrony", {}))
        check_ranks(sheet, run, place + "ranks", summary["ranks"], length, gradients)
    if "asynchrony" in summary:
        check_workers(sheet, run, place + "asynchrony", summary["asynchrony"], summary["samples_seen"])
    check_kept(sheet, run, place)
    if e := summary.get("evaluation"):
        check_kept_evaluation(sheet, run, e)
    check_last_weights(sheet, run)


def check_kept_evaluation(sheet, run, e):
    place, length = "summary.json: evaluation", length_of(run)
    sheet.equal(place + ".step", e["step"], run.summary["kept"]["step"])
    check_progress(sheet, place + ".", e, e["step"], length)
    sheet.check(place + ".seconds", e["seconds"], 0, lambda a, b: a >= 0)
    sheet.equal(place + ".split", e["split"], "test" if run.has_test() else "validation")
    if run.sets[e["split"]] is None:
        sheet.rename(place + ".", "made-up data: summary.json: evaluation.")
        return
    figures = figures_of(run, e["split"])
    check_evaluation(sheet, place, e, figures, run.config)
    check_tables(sheet, place, e, figures)
    sheet.equal(place + ": has a forecast", "forecast" in e, figures.windows is not None)


def check_last_weights(sheet, run):
    """The last evaluation of the validation set stands beside that of the kept weights where these are others."""
    kept, last = run.summary["kept"], last_line(run, "validation")
    right = dict(leaves(last)) if last and kept["weights"] == "best" and kept["step"] != run.summary["steps"] else {}
    shown = dict(leaves(run.summary.get("last_evaluation", {})))
    for path in sorted(set(right) | set(shown)):
        sheet.equal("summary.json: last_evaluation." + path, shown.get(path, "missing"), right.get(path, "missing"))


def last_line(run, split):
    return (run.evaluations(split) or [None])[-1]


def measures_of(line):
    """The measures of an evaluation that are numbers."""
    finite = lambda value: isinstance(value, (int, float)) and math.isfinite(value)
    return {name: value for name, value in line.items() if finite(value) and name not in NO_MEASURES}


def kept_measures(run, split):
    """The measures of the kept weights, with their temperature and at their threshold, as numbers or as ranges; None
    where the set was not evaluated."""
    found = measures_at_half(run, split)
    if found is None or "threshold" not in run.summary:
        return found
    if run.sets[split] is None:  # made-up data: viewers are held to each other
        values = run.record["figures"][split]["values"]
        return found | {name: value for name, value in values.items() if name.startswith("threshold.")}
    named = run.record["figures"].get(split, {}).get("values", {})
    shown = {name.removeprefix("threshold."): value for name, value in named.items() if name.startswith("threshold.")}
    answers = measures_of(figures_of(run, split).answers_at(run.metadata["threshold"], shown))
    return found | {"threshold." + name: value for name, value in answers.items()}


def measures_at_half(run, split):
    last, e = last_line(run, split), run.summary.get("evaluation") or {}
    if last is None:
        return None
    line = e if e.get("split") == split else (run.evaluations(split, run.summary["kept"]["step"]) or [last])[-1]
    names = measures_of(line)
    if line is not e and "calibration" in run.summary:
        if run.sets[split] is None:  # made-up data: viewers are held to each other
            return run.record["figures"][split]["values"]
        figures = figures_of(run, split)
        return {name: figures.named(name, line.get("top_k", 5)) for name in names}
    return names


def check_progress(sheet, place, json, step, length, epochs="epoch"):
    sheet.number(place + epochs, json[epochs], length.epochs(step), relative=1e-9)
    if length.asynchronous:
        sheet.near(place + "samples_seen", json["samples_seen"], length.samples(step), length.batch * length.ranks)
    else:
        sheet.equal(place + "samples_seen", json["samples_seen"], length.samples(step))


def falls(run):
    """The steps after which schedule plateau lowers the rate, by the evaluations of the validation set."""
    get = run.config.get
    patience, unit = span_of(get("train.plateau_patience") or "never")
    measure = get("train.early_stopping_metric", "loss")
    found, best, since, waited = [], None, {"step": 0, "sample": 0, "epoch": 0.0}, 0
    for line in run.evaluations("validation") if get("train.schedule") == "plateau" else ():
        if line["step"] >= length_of(run).steps:
            continue
        now = {"step": line["step"], "sample": line["samples_seen"], "epoch": line["epoch"]}
        value = line.get(measure)
        change = None if value is None or best is None else best - value if measure in SMALLER else value - best
        if value is not None and (best is None or change > get("train.plateau_min_delta", 0.0)):
            best, since, waited = value, now, 0
        else:
            waited += 1
        if waited >= patience if unit == "evaluation" else now[unit] - since[unit] >= patience * (1 - 1e-9):
            since, waited = now, 0
            found.append(line["step"])
    return found


def fallen(run, step, before=None):
    """The rate of the step that comes after `step` others, after the falls before it (`before`: up to that step)."""
    scheduled, end = length_of(run).rate(step), run.config.get("train.end_lr", 0.0)
    rate = scheduled
    for fall in falls(run):
        if fall < (step if before is None else before) and rate > end:
            rate *= run.config.get("train.decay_factor", 0.1)
    return max(rate, min(scheduled, end))


def check_rate(sheet, run, place, shown, step):
    """Of the last of `step` steps."""
    sheet.number(place, shown, fallen(run, step - 1, step), relative=1e-6)


def best_line(run, kept=True):
    """The best evaluation of the validation set, by train.early_stopping_metric; the first of equally good ones. None
    where the last weights are kept, if `kept`."""
    measure = run.config.get("train.early_stopping_metric", "loss")
    lines = run.evaluations("validation", measure=measure)
    if not lines or kept and run.config.get("train.keep") == "last":
        return measure, None
    sign = 1 if measure in SMALLER else -1
    return measure, min(lines, key=lambda m: (sign * m[measure], m["step"]))


def check_kept(sheet, run, place):
    kept = run.summary["kept"]
    measure, best = best_line(run)
    if best is None:
        sheet.equal(place + "kept.weights", kept["weights"], "last")
        sheet.equal(place + "kept.step", kept["step"], run.summary["steps"])
        return
    sheet.equal(place + "kept.weights", kept["weights"], "best")
    sheet.equal(place + "kept.step", kept["step"], best["step"])
    sheet.number(place + "kept.epoch", kept["epoch"], best["epoch"])
    sheet.equal(place + "kept.measure", kept["measure"], measure)
    sheet.number(place + "kept.value", kept["value"], best[measure], relative=1e-12)


def check_metrics(sheet, run):
    """metrics.jsonl: each line, and which lines there are."""
    length = length_of(run)
    steps = {}
    for number, line in enumerate(run.metrics):
        found = kept_figures(run, line) if line["kind"] == "evaluation" else None
        between = line["kind"] == "evaluation" and found is None
        place = f"metrics.jsonl[{number}]: {line['kind']}{' in between' if between else ''}"
        sheet.document(place, line, ".")
        sheet.check(place + ".step", line["step"], run.summary["steps"], lambda a, b: 0 <= a <= b)
        check_progress(sheet, place + ".", line, line["step"], length)
        if line["kind"] == "train":
            check_rate(sheet, run, place + ".lr", line["lr"], line["step"])
            check_shares(sheet, run, place + ".time", line["time"])
            sheet.check(place + ".samples_per_second", line["samples_per_second"], 0, lambda a, b: a and a > b)
        elif line["kind"] == "ranks":
            workers = [m for m in run.metrics[:number] if m["kind"] == "workers"]
            check_ranks(sheet, run, place, line, length, gradients_of(run, workers[-1]) if workers else None)
        elif line["kind"] == "workers":
            check_workers(sheet, run, place, line, line["samples_seen"])
        else:
            steps.setdefault(line["split"], []).append(line["step"])
            sheet.check(place + ".seconds", line["seconds"], 0, lambda a, b: a >= 0)
            if between:
                check_in_between(sheet, run, place, line)
            else:
                figures = figures_of(run, line["split"], found[0], divided=line["split"] == "test" or found[1])
                check_evaluation(sheet, place, line, figures, run.config)
    check_lines(sheet, run, length, steps)


def check_in_between(sheet, run, place, line):
    """Of an evaluation whose weights are gone: what follows from its confusion counts."""
    dataset = run.sets[line["split"]]
    if dataset is not None:
        sheet.equal(place + ".samples", line["samples"], len(dataset))
    if "confusion" not in line or dataset is None:
        return
    sheet.equal(place + ".positions", line.get("positions"), len(dataset.counted()) if dataset.of_positions else None)
    dataset = dataset.counted()
    counts = np.array(line["confusion"])
    true = np.repeat(np.arange(len(counts)), counts.sum(axis=1)) if counts.size else np.zeros(0, int)
    classes = dataset.targets.argmax(axis=1) if dataset.targets.shape[1] > 1 else dataset.targets[:, 0]
    classes = classes > 0.5 if run.form.targets == "binary" else classes
    right = np.bincount(classes.astype(int), minlength=len(counts))
    for i, row in enumerate(counts):
        for k in range(len(row)):
            sheet.check(f"{place}.confusion[{i}][{k}]", int(row[k]), int(right[i]), lambda a, b: 0 <= a <= b)
        sheet.equal(f"{place}.confusion[{i}] together", int(row.sum()), int(right[i]))
    if (run.weights(line["split"]) != 1).any():
        return
    said = np.concatenate([np.repeat(np.arange(len(counts)), row) for row in counts])
    outputs = np.eye(len(counts))[said] if run.form.targets == "class" else 2.0 * said[:, None] - 1
    figures = Figures(run.form, Outputs(outputs, np.zeros(1)), true[:, None].astype(float), np.ones(len(true)))
    for name in ("accuracy", "precision", "recall", "f1", "mcc", "balanced_accuracy"):
        if name in line:
            sheet.number(f"{place}.{name}", line[name], figures.named(name))


def check_lines(sheet, run, length, steps):
    ended = run.summary["steps"]
    splits = set(steps)
    during = "validation" if "validation" in splits else "test"
    if splits and not length.asynchronous:
        right = sorted({step for step in length.evaluated() if step <= ended} | {ended})
        sheet.equal(f"metrics.jsonl: steps of {during} evaluations", steps.get(during, []), right)
    if splits == {"validation", "test"}:
        sheet.equal("metrics.jsonl: steps of test evaluations", len(steps["test"]), 1)
    train = [m["step"] for m in run.metrics if m["kind"] == "train"]
    if not length.asynchronous and not run.config.get("train.on_nan") == "skip":
        every = run.config.get("run.log_every", 100)
        want = sorted({s for s in range(every, ended + 1, every)} | {ended})
        # A line is left out if its samples weigh nothing.
        light = run.sets["train"] is not None and (run.sets["train"].weights == 0).any()
        accept = lambda a, b: a == b or light and set(a) < set(b)
        sheet.check("metrics.jsonl: steps of training lines", train, want, accept)
