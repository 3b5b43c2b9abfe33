"""Pictures of windows of time in evaluation.json: past and truth are those of the table, of its own reading."""

import csv
import math
import pathlib
import re

from .report import same_digits


def texts_of(value):
    return value if isinstance(value, list) else [value] if value else []


def time_of(text):
    """As the program writes it: without seconds, and without an hour, where these are 0."""
    return re.sub(r"(?:[ T]00:00)(?::00)?$|(?<=\d\d:\d\d):00$", "", text)


def table_of(run, split):
    """The text of each label by the names of its series and by its time, in the file that holds a set."""
    _, file = run.files_text(split if run.config.get(f"data.{split}") else "train")
    labels, series = texts_of(run.config.get("data.label")), texts_of(run.config.get("data.series"))
    with open(pathlib.Path(run.cwd) / file, newline="") as lines:
        return {(", ".join(row[name] for name in series), time_of(row[run.config.get("data.time")])): {name: row[name] for name in labels} for row in csv.DictReader(lines)}


def check_windows(sheet, run, json):
    if not json.get("windows"):
        return
    table = table_of(run, json["split"])
    labels = texts_of(run.config.get("data.label"))
    first = next(iter(table))[0]
    for i, window in enumerate(json["windows"]):
        place = f"evaluation.json: windows[{i}]"
        series = first if len(labels) > 1 or not texts_of(run.config.get("data.series")) else window["name"]
        label = window["name"] if len(labels) > 1 else labels[0]
        single = 1e-6 * max(map(abs, window["past"]))  # scaled labels are in single precision
        for part, times in (("past", window["times"][: len(window["past"])]), ("truth", window["times"][len(window["past"]) :])):
            sheet.equal(f"{place}.{part}: positions", len(window[part]), len(times))
            for k, (shown, time) in enumerate(zip(window[part], times)):
                text = table.get((series, time), {}).get(label, "")
                right = float(text) if text else math.nan
                sheet.check(f"{place}.{part}[{k}]", shown, right, lambda a, b: same_digits(a, b, 5) or abs(a - b) <= single)
        sheet.equal(f"{place}.forecast: positions", len(window["forecast"]), len(window["truth"]))
        for k, (low, middle, high) in enumerate(zip(window.get("low", []), window["forecast"], window.get("high", []))):
            sheet.check(f"{place}: levels of {k}", [low, middle, high], sorted([low, middle, high]), lambda a, b: a == b)
