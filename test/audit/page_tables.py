"""The tables of report.html: each cell with a number has a check, and a table that is not known is a difference."""

import re

import numpy as np

from .figures import f1_of
from .page_words import check_value
from .report import number_of, same_digits, same_text
from .summary import kept_measures, length_of


def check_tables(sheet, run, tables, charts, names):
    """`charts`: those of the page's data, by title; `names`: measures by the titles of their curves."""
    for caption, rows in tables:
        place = f"report.html: table '{caption[:40]}'"
        title, _, points = caption.partition(" by step")
        if title in charts and " by step" in caption:
            check_curve_table(sheet, run, place, rows, charts[title], names.get(title, title), points)
        elif caption in charts:
            check_chart_table(sheet, place, rows, charts[caption])
        elif caption.startswith("Samples of the "):
            check_confusion_table(sheet, run, place, caption, rows)
        elif caption.startswith("Each class: "):
            check_class_table(sheet, run, place, rows)
        elif caption == "Planned and done":
            check_planned(sheet, run, place, rows)
        elif " records of the " in caption and "largest losses" in caption:
            check_worst_table(sheet, run, place, caption, rows)
        elif caption == "Columns of the table, as training has seen them":
            check_columns_table(sheet, run, place, rows)
        elif caption == "What each worker gave":
            check_worker_table(sheet, run, place, rows)
        elif caption.startswith("What the kept weights came to"):
            check_results(sheet, run, place, rows, names)
        elif caption in ("What differs from the defaults", "All other keys"):
            check_config_table(sheet, run, place, rows)
        elif caption in (of_plan := planned_tables(run)):
            sheet.equal(place, [[cell.strip() for cell in row] for row in rows], of_plan[caption])
        elif any(re.search(r"\d", cell) for row in rows for cell in row):
            sheet.differ(place, "a table", "(no check)")


def planned_tables(run):
    """Tables that are those of run.json, which has its own checks."""
    plan, launch = run.record["plan"], run.record["launch"]
    tables = {"The layers of the model": plan["model"], "The stages of the model": plan["stages"], "The plan": [["", "planned"]] + plan["table"]}
    tables["Where each rank ran"] = [["rank", "host", "cores"]] + [[str(rank), *of] for rank, of in enumerate(zip(launch["hosts"], launch["cores"]))]
    return {caption: [[cell.strip() for cell in row] for row in rows] for caption, rows in tables.items()}


def check_curve_table(sheet, run, place, rows, chart, measure, points):
    """The numbers of a chart whose data are checked by themselves. Of a long curve a part is shown."""
    longest = 0
    for column, split in enumerate(rows[0][1:], 1):
        lines = {m["step"]: m for m in run.metrics if m.get("split", m["kind"]) == split and measure in m}
        longest = max(longest, len(lines))
        series = chart["series"][column - 1]
        known = dict(zip(series["step"], series["y"]))
        for row in rows[1:]:
            shown, step = row[column], int(number_of(row[0]))
            if shown and shown != "-":
                sheet.check(f"{place}: {split}, step {row[0]}", shown, known.get(step), lambda a, b: b is not None and step in lines and same_digits(a, b, 5))
    if found := re.fullmatch(r": ([\d,]+) of ([\d,]+) points, with the least and the greatest", points):
        sheet.check(f"{place}: points shown", int(number_of(found[1])), len(rows) - 1, lambda a, b: 0 < a <= b)
        sheet.printed(f"{place}: points", found[2], longest)


def check_chart_table(sheet, place, rows, chart):
    """The numbers of a chart whose data are checked by themselves: all, or of many points a part."""
    series = [each for each in chart["series"] if each.get("style") != "guide"]
    if chart["kind"] == "points":
        for row in rows[1:]:
            if times := chart.get("times"):
                row = [row[0], str(times.index(row[1]) if row[1] in times else -1), row[2]]
            known = [point for each in series if each["label"] == row[0] for point in zip(each["x"], each["y"])]
            near = lambda point: all(a == "-" and b is None or a != "-" and b is not None and same_digits(a, b, 5) for a, b in zip(row[1:], point))
            sheet.equal(f"{place}: {row}", any(map(near, known)), True)
        return
    for i, row in enumerate(rows[1:]):
        sheet.equal(f"{place}: name {i}", row[0], re.sub(r"\s+", " ", chart["names"][i]).strip())
        for shown, each in zip(row[1:], series):
            sheet.check(f"{place}: {row[0]}: {each['label']}", shown, each["y"][i], same_bar)


def same_bar(shown, right):
    """ "12.3 %", "0.0123 s" or a count."""
    number = shown.split(" ")[0]
    return same_text(number, right) or same_digits(number, right, 4)


def last_confusion(run, caption):
    found = re.match(r"Samples of the (\w+) set after step ([\d,]+)", caption)
    lines = [m for m in run.metrics if m["kind"] == "evaluation" and m["split"] == found[1] and m["step"] == int(number_of(found[2]))]
    return lines[-1]["confusion"] if lines and "confusion" in lines[-1] else None


def check_confusion_table(sheet, run, place, caption, rows):
    right = last_confusion(run, caption)
    run.found["page confusion"] = right
    if right is None:
        sheet.differ(place, caption, "the step of an evaluation with a confusion matrix")
        return
    sheet.equal(place, [[int(number_of(c)) for c in row[1:]] for row in rows[1:]], right)
    sheet.equal(place + ": step", int(number_of(re.search(r"step ([\d,]+)", caption)[1])), run.summary["kept"]["step"])


def check_class_table(sheet, run, place, rows):
    counts = run.found.get("page confusion")
    if counts is None:
        return
    counts = np.array(counts)
    sheet.equal(place + ": classes", len(rows) - 1, len(counts))
    for k, row in enumerate(rows[1:]):
        true, said, both = counts[k].sum(), counts[:, k].sum(), counts[k, k]
        sheet.printed(f"{place}: {row[0]}: samples", row[1], int(true))
        p, r = both / said if said else np.nan, both / true if true else np.nan
        for name, shown, right in zip(("precision", "recall", "F1"), row[2:], (p, r, f1_of(both, true, said))):
            sheet.printed(f"{place}: {row[0]}: {name}", shown, 100 * right)


def check_results(sheet, run, place, rows, names):
    """A column for each set, and one for the last weights where they are others than the kept ones."""
    for column, head in enumerate(rows[0][1:], 1):
        split, _, step = head.partition(", step ")
        last = run.summary.get("last_evaluation", {}) if split.startswith("last ") else None
        sheet.equal(f"{place}: {split}: step", int(number_of(step)), run.summary["kept"]["step"] if last is None else last.get("step"))
        right = (kept_measures(run, split) or {}) if last is None else last
        for row in rows[1:]:
            measure = names.get(row[0], row[0])
            if row[column] or measure in right:
                check_value(sheet, f"{place}: {split}: {measure}", row[column], right.get(measure))


def check_planned(sheet, run, place, rows):
    s, length = run.summary, length_of(run)
    right = {
        "steps": (length.steps, s["steps"]),
        "samples": (length.samples(length.steps), s["samples_seen"]),
        "epochs": (length.epochs(length.steps), s["epochs"]),
        "each example seen": (length.samples(length.steps) / length.rows, s["samples_seen"] / length.rows),
    }
    for row in rows[1:]:
        if row[0] not in right:
            sheet.differ(f"{place}: {row[0]}", row[1:], "(no check)")
            continue
        for shown, value, digits, what in zip(row[1:], right[row[0]], (5, 4), ("planned", "done")):
            if not length.asynchronous or what == "done":
                sheet.check(f"{place}: {row[0]} {what}", shown.split(" time")[0], value, lambda a, b: same_digits(a, b, digits if row[0] not in ("steps", "samples") else 15))


def check_worst_table(sheet, run, place, caption, rows):
    found = re.match(r"The ([\d,]+) of ([\d,]+) records of the (\w+) set with the largest losses", caption)
    worst = run.evaluation["worst"]
    sheet.equal(f"{place}: records", [number_of(found[1]), number_of(found[2]), found[3]], [len(worst), run.evaluation["samples"], run.evaluation["split"]])
    if rows[0][1] == "position":
        sheet.equal(f"{place}: positions", [number_of(row[1]) for row in rows[1:]], [record["position"] for record in worst])
        rows = [row[:1] + row[2:] for row in rows]
    columns = rows[0][4:]
    for i, (row, record) in enumerate(zip(rows[1:], worst)):
        sheet.printed(f"{place}: record {i}", row[0], record["record"])
        sheet.digits(f"{place}: loss {i}", row[1], record["loss"])
        sheet.equal(f"{place}: words {i}", row[2:4], [re.sub(r"\s+", " ", record[k]).strip() for k in ("target", "prediction")])
        cells = ([record.get("file", "")] if columns[:1] == ["file"] else []) + [str(cell) for cell in record.get("cells", [])]
        sheet.equal(f"{place}: cells {i}", [cell for cell in row[4:] if cell], [text for cell in cells if (text := re.sub(r"\s+", " ", cell).strip())])


def check_columns_table(sheet, run, place, rows):
    """What schema.json has, which is checked by itself; it has nothing of what is left out."""
    for row, column in zip(rows[1:], run.schema["columns"]):
        at = f"{place}: {column['name']}"
        sheet.equal(at + ": words", row[1:3], [column["use"], column.get("kind", "")])
        if column["use"] == "ignore":
            sheet.equal(at + ": missing", row[3], "")
            continue
        sheet.printed(at + ": missing", row[3], column["missing_count"])
        if found := re.fullmatch(r"(\S+) to (\S+), mean (\S+)", row[4] if len(row) > 4 else ""):
            for shown, name in zip(found.groups(), ("min", "max", "mean")):
                sheet.digits(f"{at}: {name}", shown, column[name])
        elif found := re.search(r"\(([\d,]+) in all\)$", row[4] if len(row) > 4 else ""):
            sheet.printed(at + ": values", found[1], len(column["values"]))


def check_worker_table(sheet, run, place, rows):
    workers = run.summary["asynchrony"]["workers"]
    for row, worker in zip(rows[1:], workers):
        right = [worker["computed"], worker["samples"], worker["samples"] * len(workers) / sum(each["samples"] for each in workers), worker["dropped"]]
        for name, shown, value in zip(rows[0][1:], row[1:], right):
            sheet.printed(f"{place}: worker {row[0]}: {name}", shown, value)


def check_config_table(sheet, run, place, rows):
    """Numbers of the config as they stand there."""
    for row in rows[1:]:
        right = run.config.get(row[0])
        if isinstance(right, (int, float)) and not isinstance(right, bool) and row[1] != "(not given)":
            sheet.check(f"{place}: {row[0]}", row[1], right, lambda a, b: float(a) == float(b))
