"""importance.json, and `trainer importance --json`: means and deviations of the repeats, and the measure without
them."""

import copy
import json
from dataclasses import replace

import numpy as np

from .figures import Figures
from .outputs import Outputs, from_weights
from .summary import SMALLER, figures_of


def check_importance(sheet, run, ask=False):
    """`ask`: also what the command says, which takes an evaluation for each column and repeat."""
    found = run.json("importance.json")
    if ask and run.config["data.format"] == "csv":
        code, text, _ = run.command("importance", "--model", run.directory, "--json", "-")
        found = json.loads(text) if code == 0 else None
        if found:
            check_shuffled(sheet, run, found)
    if found is None:
        return
    place, split = "importance", found["set"]
    if run.sets[split] is not None:
        sheet.equal(place + ": samples", found.get("samples", len(run.sets[split])), len(run.sets[split]))
        sheet.number(place + ": baseline", found["baseline"], figures_of(run, split).named(found["measure"]))
    if "smaller_is_better" in found:
        sheet.equal(place + ": smaller_is_better", found["smaller_is_better"], found["measure"] in SMALLER)
    for column in found["columns"]:
        at = f"{place}: {column.get('column', column.get('name'))}"
        if "repeats" in column:
            sheet.number(at + ": importance", column["importance"], float(np.mean(column["repeats"])), relative=1e-9)
            sheet.number(at + ": deviation", column["deviation"], float(np.std(column["repeats"])), relative=1e-9)
    means = [column.get("importance", column.get("mean")) for column in found["columns"]]
    sheet.equal(place + ": order", means, sorted(means, reverse=True))


def shuffled_cells(dataset, column, order):
    table, cells = copy.copy(dataset.table), [dataset.table.cells[i] for i in dataset.numbers]
    table.cells = [{**row, column: cells[i][column]} for row, i in zip(cells, order)]
    return table.features()


def shuffled_windows(dataset, column, order):
    """All that a window has of the column."""
    mine = [owner == column for owner in dataset.windows.positions.owners]
    features = dataset.features.copy()
    features[:, mine] = features[order][:, mine]
    return features


def check_shuffled(sheet, run, found, repeats=20):
    """The auditor shuffles the columns itself: its means are near those of the program, whose order is another."""
    dataset, figures = run.sets[found["set"]], figures_of(run, found["set"])
    if run.own_outputs(found["set"]) is None:
        return
    dice, shuffled = np.random.default_rng(1), shuffled_windows if dataset.windows else shuffled_cells
    sign = 1 if found["measure"] in SMALLER else -1
    for column in found["columns"]:
        changes = []
        for _ in range(repeats):
            features = shuffled(dataset, column["column"], dice.permutation(len(dataset)))
            outputs = from_weights(run.config, run.tensors, run.temperature, replace(dataset, features=features))
            of = (run.form, Outputs(outputs.values, np.zeros(1)), figures.targets, figures.weights)
            measure = Figures(*of, scales=figures.scales).named(found["measure"]).value
            changes.append(sign * (measure - found["baseline"]))
        slack = 6 * np.std(changes) * np.sqrt(1 / repeats + 1 / len(column["repeats"])) + 1e-6
        place = f"importance: {column['column']}: shuffled here"
        sheet.near(place, column["importance"], float(np.mean(changes)), slack)
