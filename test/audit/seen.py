"""What is said of the columns of a table: schema.json of a run, and what `trainer inspect` prints."""

import json
import re

import numpy as np

from .notations import date_number, has_short_year, written_date
from .positive import positive_class, quoted
from .report import same_digits
from .table_data import signed_log
from .table_text import read_table
from .texts import Text, taken


def statistics(values):
    values = np.array(values, float)
    mean = float(values.mean()) if len(values) else 0.0
    return {"count": len(values), "mean": mean, "deviation": float(np.sqrt(((values - mean) ** 2).mean())) if len(values) else 0.0, "min": float(values.min()) if len(values) else 0.0, "max": float(values.max()) if len(values) else 0.0}


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
            sheet.check(place + ".squares", column["squares"], right["count"] * right["deviation"] ** 2, lambda a, b: abs(a - b) <= 1e-6 * abs(b) + 1e-9 * size * size)
            if "quartiles" in column and len(values) <= 65536:
                for i, share in enumerate((0.25, 0.5, 0.75)):
                    low, high = (float(np.quantile(values, share, method=m)) for m in ("lower", "higher"))
                    sheet.check(f"{place}.quartiles[{i}]", column["quartiles"][i], (low, high), lambda a, b: b[0] - 1e-9 * size <= a <= b[1] + 1e-9 * size)
        elif column["use"] == "label":
            check_class_order(sheet, run, place, column)
        elif column["use"] == "feature" and column["encode"] != "hash":
            counts = {}
            for value in found:
                counts["" if value is None else value] = counts.get("" if value is None else value, 0) + 1
            order = sorted(counts, key=lambda v: (-counts[v], v.encode("utf-8", "surrogateescape")))
            sheet.equal(place + ".values", column["values"], order[: run.config.get("data.vocabulary", 1000)])


def check_class_order(sheet, run, place, column):
    """Of all records of the training files, whether they are held back or not. Runs made before have them by their names."""
    whole, labels = run.sets.files("train"), run.config["data.label"]
    cells = [whole.table.cells[i].get(column["name"]) for i in whole.numbers]
    counts = {text: cells.count(text) for text in set(cells) - {None}}
    named = run.config.get("data.positive") or [None]
    if len(counts) == 2:
        right = positive_class(counts, named[labels.index(column["name"])] if len(named) > 1 else named[0])
        sheet.equal(place + ": positive class", column["values"][1:], [right])
        sheet.equal("model.safetensors: positive", run.metadata.get("positive"), right if len(labels) == 1 else run.metadata.get("positive"))


def check_inspect(sheet, run):
    """`trainer inspect` of the training file, as JSON and as text."""
    if run.config["data.format"] != "csv":
        return
    labels = run.config["data.label"]
    words = ["inspect", run.config["data.train"], "--label", ",".join(labels)]
    code, text, _ = run.command(*words, "--json", "-")
    code_text, shown, _ = run.command(*words)
    if code or code_text:
        return
    found = json.loads(text)
    for column in found["columns"]:
        sheet.document(f"inspect: {column['name']}", column, dot=".")
    shown = Text(sheet, "inspect's text", shown[: shown.find("To train on it:")])
    shown.ignore(r"years of two digits: 69 to 99 are 19xx, 00 to 68 are 20xx|, before=\d+|'[^'\n]*'|such as .*|date\(.*\)|\(RFC 4180\)")
    table = read_table(run.config["data.train"], run.cwd, run.config)
    if head := taken(re.search(r"^.*: ([\d,]+) records of ([\d,]+) columns, ", shown, re.M)):
        sheet.printed("inspect's text: records", head[1], found["records"])
        sheet.printed("inspect's text: columns", head[2], len(table.names))
    sheet.equal("inspect: records", found["records"] + found["bad_records"], len(table.records))
    good = [r for r in table.records if isinstance(r, list) and len(r) == len(table.names)]
    if found["bad_records"]:
        return  # which of them are bad depends on the kinds that it guesses
    missing = set(run.config.get("data.missing_values", []))
    if found.get("positive"):
        cells = [r[table.names.index(labels[0])] for r in good]
        counts = {text: cells.count(text) for text in set(cells) - missing}
        sheet.equal("inspect: positive", found["positive"], positive_class(counts, (run.config.get("data.positive") or [None])[0]))
        sheet.equal("inspect's text: positive", f"; yes is {quoted(found['positive'])}" in shown, True)
    for place, column in ((f"inspect: {c['name']}", c) for c in found["columns"]):
        cells = [r[table.names.index(column["name"])] for r in good]
        there = [c for c in cells if c not in missing]
        sheet.equal(place + ".missing", column["missing"], len(cells) - len(there))
        sheet.number(place + ".missing_share", column["missing_share"], (len(cells) - len(there)) / max(len(cells), 1))
        row = taken(re.search(rf"^  ({re.escape(column['name'])}) {{2,}}(.*)$", shown, re.M))
        words = re.split(r" {2,}", row[2], maxsplit=2) if row else []
        if len(words) < 2:
            sheet.differ(place + ": as text", words, "a row that can be read")
            continue
        said = (words + [""])[2]
        sheet.printed(place + ": missing as text", "0" if words[1] == "-" else words[1], 100 * (len(cells) - len(there)) / len(cells))
        different = [taken(re.search(rf"column '{re.escape(column['name'])}': ([\d,]+) different texts", shown)), re.match(r"([\d,]+) different", said)]
        for each in filter(None, different):
            sheet.printed(place + ": different as text", each[1], len(set(there)))
        if "numbers" in column:
            check_numbers(sheet, place, column, there, said, shown)
        if "values" in column and "different" in column:
            check_values(sheet, place, column, there, len(good), said)


def check_numbers(sheet, place, column, there, said, shown):
    try:
        if column["kind"] == "date":
            form, *words = re.findall(r"[\w=]+", column["dates"]["read_as"])[1:]
            values = [date_number(c, form, int(dict(w.split("=") for w in words if "=" in w).get("before", 2069))) for c in there]
        else:
            values = [float(c) for c in there]
        right = statistics(values)
    except (TypeError, ValueError):
        return  # in another notation
    for name in ("count", "min", "max", "mean", "deviation"):
        if name in column["numbers"]:
            sheet.check(f"{place}.numbers.{name}", column["numbers"][name], right[name], lambda a, b: abs(a - b) <= 1e-9 * max(abs(right["max"]), abs(right["min"]), 1e-300))
    if column["kind"] == "date":
        if latest := taken(re.search(rf"column '{re.escape(column['name'])}': (?:years of two digits: .*; the latest is|the latest of its dates,) (\d[-\d]+(?: \d\d:\d\d)?)", shown)):
            sheet.equal(place + ": latest date", latest[1], written_date(right["max"]))
        ends = [written_date(right[name], form) for name in ("min", "max")]
        sheet.equal(place + ".dates", [column["dates"]["first"], column["dates"]["last"]], ends)
        sheet.equal(place + ".dates.years_of_two_digits", column["dates"]["years_of_two_digits"], sum(has_short_year(c, form) for c in there))
        if dates := taken(re.search(rf"^  {re.escape(column['name'])} .*?  (\S+(?: \d\d:\d\d)?) to (\S+(?: \d\d:\d\d)?), date\(", shown, re.M)):
            sheet.equal(place + ": dates as text", [dates[1], dates[2]], ends)
    if found := re.search(r"(\S+) to (\S+), mean (\S+), deviation (\S+)", said):
        for shown, name, digits in zip(found.groups(), ("min", "max", "mean", "deviation"), (6, 6, 6, 4)):
            sheet.check(f"{place}: {name} as text", shown, right[name], lambda a, b: same_digits(a, b, digits))


def check_values(sheet, place, column, there, records, said):
    counts = {}
    for cell in there:
        counts[cell] = counts.get(cell, 0) + 1
    sheet.equal(place + ".different", column["different"], len(counts))
    for i, value in enumerate(column["values"]):
        sheet.equal(f"{place}.values[{i}].count", value["count"], counts.get(value["value"], 0))
    for value, share in re.findall(r"'([^']*)' ([\d.]+) %", said):
        if value in counts:
            # Where no word says otherwise, a share is one of the records.
            sheet.printed(f"{place}: share of {value}", share, 100 * counts[value] / records)
