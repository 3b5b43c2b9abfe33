"""Directories of sweeps and of cross-validation: sweep.json, and predictions.csv of the folds."""

import csv
import json
import math
import pathlib
import statistics

import numpy as np

from .outputs import from_predictions
from .run import Run, aligned
from .summary import SMALLER, best_line, kept_measures
from .windows import why_not


def check_sweep(sheet, directory, trainer, cwd):
    """Returns the runs of its trials."""
    sweep = json.loads((directory / "sweep.json").read_text())
    runs = {}
    for number, trial in enumerate(sweep["trials"]):
        if trial["state"] == "done":
            run = runs[trial["run"]] = Run(directory / trial["run"], trainer, cwd)
            check_trial(sheet, f"sweep.json: trials[{number}]", trial, run)
    done = [t for t in sweep["trials"] if t["state"] == "done" and t.get("validation")]
    if sweep.get("best"):
        sign = 1 if sweep["measure"] in SMALLER else -1
        right = min(done, key=lambda t: (sign * t["validation"]["value"], t["trial"]))
        sheet.equal("sweep.json: best", sweep["best"], right["run"])
    for name, shown in sweep.get("mean", {}).items():
        values = [t["validation"]["evaluation"].get(name) for t in done if "data.validation" in t["settings"]]
        values = [v for v in values if v is not None]
        sheet.number(f"sweep.json: mean.{name}", shown, statistics.fmean(values) if values else None, relative=1e-12)
        deviation = statistics.stdev(values) if len(values) > 1 else None
        close = lambda a, b: a == b or None not in (a, b) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15)
        if name in (shown := sweep.get("standard_deviation", {})):
            sheet.check(f"sweep.json: standard_deviation.{name}", shown[name], deviation, close)
    if (directory / "predictions.csv").exists() and runs:
        check_fold_predictions(sheet, directory, runs)
    return list(runs.values())


def check_trial(sheet, place, trial, run):
    s = run.summary
    sheet.equal(place + ".steps", trial["steps"], s["steps"])
    sheet.number(place + ".seconds", trial["seconds"], s["seconds"])
    measure, best = best_line(run)
    if not trial.get("validation") or best is None:
        return
    v = trial["validation"]
    sheet.equal(place + ".measure", v["measure"], measure)
    kept = kept_measures(run, "validation")
    sheet.number(place + ".value", v["value"], kept[measure])
    sheet.equal(place + ".step", v["step"], best["step"])
    sheet.number(place + ".epoch", v["epoch"], best["epoch"])
    for name, shown in v["evaluation"].items():
        sheet.number(f"{place}.evaluation.{name}", shown, best["samples"] if name == "samples" else kept.get(name))


def is_alike(a, b, run):
    """Whether two answers are the same class, or the same number up to rounding."""
    if a == b or run.form.targets in ("class", "binary"):
        return a == b
    return math.isclose(float(a), float(b), rel_tol=2e-6, abs_tol=2e-6)


def check_fold_predictions(sheet, directory, runs):
    """Each record by the model that was not trained on it, as `predict` of that model gives it."""
    place = "cv predictions.csv"
    with open(pathlib.Path(directory) / "predictions.csv", newline="", errors="surrogateescape") as file:
        lines = list(csv.reader(file))
    header, rows = lines[0], lines[1:]
    by_fold = {run.config["data.fold"]: run for run in runs.values() if run.config.get("data.fold")}
    first = next(iter(by_fold.values()))
    whole, folds = first.sets.files("train"), first.sets.parts().folds
    of_records, places = whole.places() if whole.of_positions else (np.arange(len(whole)), None)
    sheet.equal(place + ": rows", len(rows), len(of_records))
    if whole.of_positions:
        sheet.equal(place + ": columns of positions", header[2:4], ["record", "position"])
        sheet.equal(place + ": numbers of rows", [int(row[0]) for row in rows], list(range(len(rows))))
        sheet.equal(place + ": positions", [int(row[3]) for row in rows], places.tolist())
        header, rows = header[:2] + header[4:], [[row[2], row[1]] + row[4:] for row in rows]
    others = sum(int(row[0]) != whole.rows[i] for i, row in zip(of_records, rows))
    sheet.equal(place + ": rows of another record", others, 0)
    sheet.equal(place + ": folds", [int(row[1] or 0) for row in rows], [int(folds[i]) for i in of_records])
    for fold, run in by_fold.items():
        if why_not(run):
            continue
        mine = np.flatnonzero(folds[of_records] == fold)
        given = run.outputs("validation") if whole.of_positions else run.predicted("validation").part(whole.rows[mine])
        shown = from_predictions(run.form, header[1:], [rows[i][1:] for i in mine], run.label_columns())
        values = aligned(run.form, given.values) if whole.of_positions else given.values
        # Kernels of some CPUs add in another order in the last rows of a block.
        slack = 2e-6 * max(1.0, float(np.abs(values).max(initial=0)))
        wrong = np.abs(shown.values - values) > 4 * (shown.error + given.error) + slack
        if whole.of_positions and run.form.targets != "class":
            said = []
        elif whole.of_positions:
            said = [int(rows[i][2]) == best for i, best in zip(mine, shown.values.argmax(axis=1))]
        else:
            said = [is_alike(rows[i][2], run.predicted("validation").cells[whole.rows[i]][1], run) for i in mine]
        sheet.equal(f"{place}: predictions of fold {fold} that differ", int(wrong.any(axis=1).sum()), 0)
        sheet.equal(f"{place}: answers of fold {fold} that differ", len(said) - sum(said), 0)
