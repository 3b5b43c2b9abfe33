"""importance.json, and `trainer importance --json`: means and deviations of the repeats, and the measure without them."""

import json

import numpy as np

from .summary import SMALLER, figures_of


def check_importance(sheet, run, ask=False):
    """`ask`: also where the run has no importance.json, which takes an evaluation for each column and repeat."""
    found = run.json("importance.json")
    if found is None and ask and run.config["data.format"] == "csv":
        code, text, _ = run.command("importance", "--model", run.directory, "--json", "-")
        found = json.loads(text) if code == 0 else None
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
