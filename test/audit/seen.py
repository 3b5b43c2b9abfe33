"""What is said of a table: schema.json of a run, and `trainer inspect --json` and `trainer init --json`."""

import json
import pathlib
import re
import subprocess
import tempfile
import tomllib
from collections import Counter

import numpy as np

from .notations import date_number, has_short_year, written_date
from .positive import positive_class
from .report import Sheet
from .rng import hash_of_records
from .table_data import signed_log
from .table_text import read_table


def statistics(values):
    values = np.array(values, float)
    mean = float(values.mean()) if len(values) else 0.0
    if not len(values):
        return {"count": 0, "mean": 0.0, "deviation": 0.0, "min": 0.0, "max": 0.0}
    found = {"mean": mean, "deviation": np.sqrt(((values - mean) ** 2).mean()), "min": values.min(),
             "max": values.max()}
    return {"count": len(values)} | {name: float(value) for name, value in found.items()}


def check_schema(sheet, run):
    """schema.json: what training has seen, without what is held back."""
    if not run.schema or "columns" not in run.schema or run.config["data.format"] != "csv":
        return
    train = run.sets.records("train")
    cells = [train.table.cells[i] for i in train.numbers]
    for column in run.schema["columns"]:
        place = f"schema.json: {column['name']}"
        if column["use"] == "ignore":
            continue
        found = [row.get(column["name"]) for row in cells]
        there = [value for value in found if value is not None]
        sheet.equal(place + ".missing_count", column["missing_count"], len(found) - len(there))
        if column["kind"] == "numeric":
            values = [signed_log(v) for v in there] if column["scale"] == "log" else there
            right = statistics(values)
            sheet.equal(place + ".count", column["count"], right["count"])
            for name in ("min", "max", "mean", "deviation"):
                size = max(abs(right["max"]), abs(right["min"]), 1e-300)
                sheet.check(f"{place}.{name}", column[name], right[name], lambda a, b: abs(a - b) <= 1e-9 * size)
            sheet.check(place + ".squares", column["squares"], right["count"] * right["deviation"] ** 2,
                        lambda a, b: abs(a - b) <= 1e-6 * abs(b) + 1e-9 * size * size)
            if "quartiles" in column and len(values) <= 65536:
                for i, share in enumerate((0.25, 0.5, 0.75)):
                    low, high = (float(np.quantile(values, share, method=m)) for m in ("lower", "higher"))
                    sheet.check(f"{place}.quartiles[{i}]", column["quartiles"][i], (low, high),
                                lambda a, b: b[0] - 1e-9 * size <= a <= b[1] + 1e-9 * size)
        elif column["use"] == "label":
            check_class_order(sheet, run, place, column)
        elif column["use"] == "feature" and column["encode"] != "hash":
            counts = {}
            for value in found:
                counts["" if value is None else value] = counts.get("" if value is None else value, 0) + 1
            order = sorted(counts, key=lambda v: (-counts[v], v.encode("utf-8", "surrogateescape")))
            sheet.equal(place + ".values", column["values"], order[: run.config.get("data.vocabulary", 1000)])


def check_class_order(sheet, run, place, column):
    """Of all records of the training files, whether they are held back or not. Runs made before have them by their
    names."""
    whole, labels = run.sets.files("train"), run.config["data.label"]
    cells = [whole.table.cells[i].get(column["name"]) for i in whole.numbers]
    counts = {text: cells.count(text) for text in set(cells) - {None}}
    named = run.config.get("data.positive") or [None]
    if len(counts) == 2:
        right = positive_class(counts, named[labels.index(column["name"])] if len(named) > 1 else named[0])
        sheet.equal(place + ": positive class", column["values"][1:], [right])
        sheet.equal("model.safetensors: positive", run.metadata.get("positive"),
                    right if len(labels) == 1 else run.metadata.get("positive"))


def check_inspect(sheet, run):
    """`trainer inspect` of the training file."""
    if run.config["data.format"] != "csv":
        return
    labels = run.config["data.label"]
    code, text, _ = run.command("inspect", run.config["data.train"], "--label", ",".join(labels), "--json", "-")
    if code:
        return
    found = json.loads(text)
    table = read_table(run.config["data.train"], run.cwd, run.config)
    sheet.equal("inspect: records", found["records"] + found["bad_records"], len(table.records))
    good = [r for r in table.records if isinstance(r, list) and len(r) == len(table.names)]
    if found["bad_records"]:
        return  # which of them are bad depends on the kinds that it guesses
    for column in found["columns"]:
        sheet.document(f"inspect: {column['name']}", column, dot=".")
    missing = set(run.config.get("data.missing_values", []))
    cells_of = lambda name: [r[table.names.index(name)] for r in good]
    if found.get("positive"):
        counts = Counter(cell for cell in cells_of(labels[0]) if cell not in missing)
        named = (run.config.get("data.positive") or [None])[0]
        sheet.equal("inspect: positive", found["positive"], positive_class(counts, named))
    for column in found["columns"]:
        place, cells = f"inspect: {column['name']}", cells_of(column["name"])
        there = [c for c in cells if c not in missing]
        sheet.equal(place + ".missing", column["missing"], len(cells) - len(there))
        sheet.number(place + ".missing_share", column["missing_share"], (len(cells) - len(there)) / max(len(cells), 1))
        if "numbers" in column:
            check_numbers(sheet, place, column, there)
        if "values" in column and "different" in column:
            counts = Counter(there)
            sheet.equal(place + ".different", column["different"], len(counts))
            for i, value in enumerate(column["values"]):
                sheet.equal(f"{place}.values[{i}].count", value["count"], counts[value["value"]])


def check_numbers(sheet, place, column, there):
    try:
        if column["kind"] == "date":
            form, *words = re.findall(r"[\w=]+", column["dates"]["read_as"])[1:]
            values = [date_number(c, form, int(dict(w.split("=") for w in words if "=" in w).get("before", 2069)))
                      for c in there]
        else:
            values = [float(c) for c in there]
        right = statistics(values)
    except (TypeError, ValueError):
        return  # in another notation
    size = max(abs(right["max"]), abs(right["min"]), 1e-300)
    for name, shown in column["numbers"].items():
        sheet.near(f"{place}.numbers.{name}", shown, right[name], 1e-9 * size)
    if column["kind"] == "date":
        ends = [written_date(right[name], form) for name in ("min", "max")]
        sheet.equal(place + ".dates", [column["dates"]["first"], column["dates"]["last"]], ends)
        sheet.equal(place + ".dates.years_of_two_digits", column["dates"]["years_of_two_digits"],
                    sum(has_short_year(c, form) for c in there))


def check_init(trainer, cwd, path, label, preset=""):
    """What `trainer init` says of a data file and of the first config for it."""
    sheet = Sheet()
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "first.toml"
        pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": True}
        run = lambda *words: subprocess.run([str(trainer), *map(str, words)], cwd=cwd, **pipes).stdout
        words = ["--preset", preset] if preset else []
        shown = json.loads(run("init", path, "--label", label, "--output", config, "--json", "-", *words))
        (plan,) = json.loads(run("plan", "--config", config, "--json", "-"))
        share = tomllib.loads(config.read_text())["data"]["validation"]
    sheet.document("init", shown)
    table = read_table(str(path), cwd, {})
    cells = [record[table.names.index(label)] for record in table.records if isinstance(record, list)]
    counts = Counter(cell for cell in cells if cell)
    held = int((hash_of_records(1, sum(counts.values())) < float(re.search(r"[\d.]+", share)[0])).sum())
    right = {"task": shown["task"], "sets": {"train": sum(counts.values()) - held, "validation": held, "test": 0},
             "parameters": plan["parameters"], "records": len(table.records), "features": int(plan["model"][1][1])}
    if "numbers" in shown:
        found = statistics([float(cell) for cell in cells if cell])
        right["numbers"] = {name: found[name] for name in ("min", "max", "mean", "deviation")}
    else:
        order = sorted(counts, key=lambda text: [each["value"] for each in shown["classes"]].index(text))
        right["classes"] = [{"value": text, "count": counts[text]} for text in order]
        right |= {"positive": positive_class(counts)} if len(counts) == 2 else {}
    sheet.same("init", {k: v for k, v in shown.items() if k != "doubts"}, right, relative=1e-9)
    sheet.checked |= {"init: " + place.removeprefix("init.") for place in sheet.checked}
    return sheet.finish()
