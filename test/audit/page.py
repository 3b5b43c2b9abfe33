"""report.html: the numbers that it holds (those of `trainer report --json`), its charts, and what its script computes,
as its functions return it under Node.js. That texts say these numbers is for test/unit/page_script_test.js."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

from .figures import f1_of
from .report import leaves, same_digits
from .summary import SMALLER, kept_measures, last_line

MOST_POINTS = 2000
DRAW = pathlib.Path(__file__).resolve().parent.parent / "support/draw_page.js"
TIMES = {"waiting for other ranks": "waiting", "idle for other stages": "idle"}  # others have their names


def drawn(page):
    """Charts, and what the script computes; None where Node.js is not there."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        print(f"{page}: its charts are not audited: Node.js is not there (Debian: nodejs)", file=sys.stderr)
        return None
    return json.loads(subprocess.run([node, str(DRAW), str(page)], capture_output=True, text=True, check=True).stdout)


def check_page(sheet, run):
    page = run.directory / "report.html"
    if not page.exists():
        return
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page.read_text(errors="replace"), re.S)[1]
    (data,) = json.loads(found)["runs"]
    check_numbers(sheet, run, data)
    if (made := drawn(page)) is None:
        return
    check_values(sheet, run, data, made["values"][0])
    for chart in made["charts"]:
        place, title = f"report.html: {chart['title']}", chart["title"]
        kinds = [check for begin, check in CHARTS.items() if title.startswith(begin)]
        if chart["kind"] == "curve":
            check_curve_chart(sheet, run, place, chart)
        elif kinds:
            kinds[0](sheet, run, place, chart)
        else:
            sheet.differ(place, "a chart", "(no check)")


def same_as(sheet, place, shown, right):
    """Figures of another document, which has its own checks."""
    sheet.equal(f"report.html: {place}", dict(leaves(shown)), dict(leaves(right)))


def check_numbers(sheet, run, data):
    record, s, place = run.record, run.summary, "report.html: "
    for name in ("steps", "epochs", "seconds", "state", "reason", "positive", "scaled_label"):
        sheet.equal(place + name, data[name], (s if name in ("steps", "epochs", "seconds") else record)[name])
    sheet.equal(place + "samples", data["samples"], s["samples_seen"])
    plan = record["plan"]
    for name, right in (("plan", plan["table"]), ("model", plan["model"]), ("stages", plan["stages"])):
        stripped = lambda rows: [[cell.strip() for cell in row] for row in rows]
        sheet.equal(place + name, stripped(data[name]), stripped(right))
    numbers = {name: value for name, value in plan.items() if isinstance(value, (int, float))}
    sheet.equal(place + "planned", data["planned"], numbers)
    sheet.equal(place + "sentences", data["sentences"], plan["sentences"])
    placed = enumerate(zip(record["launch"]["hosts"], record["launch"]["cores"]))
    sheet.equal(place + "placement", data["placement"], [[str(rank), *of] for rank, of in placed])
    check_results(sheet, run, data)
    time = {name: s["time"].get(name, 0) for name in data["time"]} if data.get("time") else {}
    sheet.same(place + "time", data.get("time") or {}, time)
    check_samples(sheet, run, data["texts"])
    check_confusion(sheet, run, data.get("confusion"))
    check_predictions(sheet, run, data)
    workers = s.get("asynchrony", {}).get("workers", [])
    right = [{name: worker[name] for name in data["workers"][i]} for i, worker in enumerate(workers)]
    same_as(sheet, "workers", data["workers"], right)
    check_slow(sheet, run, data["slow"])
    if run.schema and "columns" in run.schema and data.get("columns"):
        check_columns(sheet, run, data["columns"])
    for line in data["config"]:
        right = run.config.get(line["key"])
        if isinstance(right, (int, float)) and not isinstance(right, bool) and line["value"]:
            sheet.equal(f"{place}config: {line['key']}", float(line["value"]), float(right))


def check_results(sheet, run, data):
    """The measures of each set with the kept weights, and of the last ones where they are others."""
    last = run.summary.get("last_evaluation")
    splits = [split for split in ("validation", "test") if last_line(run, split)]
    names = dict.fromkeys(splits, run.summary["kept"]["step"]) | ({"last validation": last["step"]} if last else {})
    sheet.equal("report.html: results", {each["name"]: each["step"] for each in data["results"]}, names)
    for each in data["results"]:
        names = [name for name, *_ in each["values"]]
        of_last = each["name"].startswith("last")
        right = {name: last.get(name) for name in names} if of_last else kept_measures(run, each["name"])
        sheet.equal(f"report.html: {each['name']}: measures", sorted(names), sorted(right))
        for name, value, less in each["values"]:
            sheet.number(f"report.html: {each['name']}: {name}", value, right.get(name))
            sheet.equal(f"report.html: {each['name']}: less of {name} is better", less, name in SMALLER)
    kept = run.summary["kept"]
    shown = (data["kept"]["step"], data["kept"]["best"])
    sheet.equal("report.html: kept", shown, (kept["step"], kept["weights"] == "best"))
    if best := data.get("best"):
        right = run.record["deciding"][best["split"]]
        sheet.equal("report.html: best", (best["measure"], best["value"]), (right["measure"], right["value"]))


def check_samples(sheet, run, shown):
    """The texts that the model has written, if there are few enough for all of them to be shown."""
    written = [(m["step"], m["sample"]) for m in run.metrics if "sample" in m]
    shown = [(each["step"], each["text"]) for each in shown]
    of_many = lambda a, b: len(b) > 20 >= len(a) and set(a) <= set(b)
    sheet.check("report.html: samples", shown, written, lambda a, b: a == b or of_many(a, b))


def check_confusion(sheet, run, shown):
    if not shown:
        return
    lines = run.evaluations(shown["split"], shown["step"])
    counts = lines[-1].get("confusion") if lines else None
    sheet.equal("report.html: confusion", shown["counts"], counts)
    at = (run.summary.get("evaluation") or {}).get("threshold")
    right = dict(at, counts=at["confusion"]) if at else {}
    right.pop("confusion", None)
    sheet.same("report.html: confusion: threshold", shown.get("threshold", {}), right)
    sheet.equal("report.html: confusion: step", shown["step"], run.summary["kept"]["step"])
    for k, score in enumerate(shown["scores"]):
        true, said, both = sum(counts[k]), sum(row[k] for row in counts), counts[k][k]
        right = {"samples": true, "f1": f1_of(both, true, said)}
        right |= {"precision": both / said if said else None, "recall": both / true if true else None}
        sheet.same(f"report.html: scores of class {k}", score, right)


def check_predictions(sheet, run, data):
    """What evaluation.json has: all, or of many points a part."""
    if run.evaluation is None:
        return
    shown, own, place = data["predictions"], run.evaluation, "report.html: predictions: "
    sheet.equal(place + "samples", shown["samples"], own["samples"])
    for i, (curve, right) in enumerate(zip(shown["curves"], own.get("curves", []))):
        points = lambda of: list(zip(of["recall"], of["false_positive_rate"], of["precision"]))
        at = f"{place}curves[{i}]: "
        sheet.equal(at + "class, area", (curve["class"], curve["area"]), (right["class"], right["area"]))
        sheet.equal(at + "points that the curve does not have", sorted({*points(curve)} - {*points(right)}), [])
    for name in ("fits", "worst", "windows"):
        sheet.equal(f"{place}{name}: how many", len(shown[name]), len(own.get(name) or []))
        for i, (each, right) in enumerate(zip(shown[name], own.get(name) or [])):
            both = each.keys() & right.keys()
            parts = ({key: of[key] for key in both} for of in (each, right))
            same_as(sheet, f"predictions: {name}[{i}]", *parts)
    rows = (run.summary.get("evaluation") or {}).get("reliability", [])
    shown = data.get("reliability") or {}
    for name in ("predicted", "observed", "samples"):
        sheet.equal(f"report.html: reliability: {name}", shown.get(name, []), [row[name] for row in rows])


def check_slow(sheet, run, slow):
    ranks = run.summary.get("ranks")
    for each in slow:
        i, place = each["rank"], f"report.html: slow rank {each['rank']}"
        names = {"slowness": "slow", "to_best": "to_best", "to_own": "to_own"}
        right = {name: ranks[own][i] for name, own in names.items()} if ranks else {}
        sheet.equal(place, {name: each[name] for name in names}, right)
        if ranks:
            cost = ranks["delay"][i] / ranks["seconds"]
            sheet.near(place + ": cost", each["cost"], cost, 1e-6 + 1e-6 / ranks["seconds"])


def check_columns(sheet, run, shown):
    """What schema.json has, which is checked by itself; it has nothing of what is left out."""
    for row, column in zip(shown["rows"], run.schema["columns"]):
        place = f"report.html: column {column['name']}"
        sheet.equal(place, row[1:3], [column["use"], column.get("kind", "")])
        missing = "" if column["use"] == "ignore" else f"{column['missing_count']:,}"
        sheet.equal(place + ": missing", row[3], missing)
        if found := re.fullmatch(r"(\S+) to (\S+), mean (\S+)", row[4]):
            for text, name in zip(found.groups(), ("min", "max", "mean")):
                sheet.digits(f"{place}: {name}", text, column[name])


def check_values(sheet, run, data, values):
    """What the functions of the page's script compute."""
    s, place = run.summary, "report.html: values: "
    if "asynchrony" in s:
        sheet.number(place + "mean_staleness", values["mean_staleness"], s["asynchrony"]["mean_staleness"])
    if data.get("confusion"):
        counts, names = data["confusion"]["counts"], data["confusion"]["classes"]
        recalls = [row[i] / sum(row) if sum(row) else 1 for i, row in enumerate(counts)]
        worst = recalls.index(min(recalls))
        others = [-1 if i == worst else count for i, count in enumerate(counts[worst])]
        taken = others.index(max(others))
        right = {"name": names[worst], "recall": float(recalls[worst]), "samples": sum(counts[worst])}
        right |= {"taken_for": names[taken], "count": others[taken]}
        sheet.same(place + "least_recognised", values["least_recognised"], right)
    results = {each["name"]: {name: value for name, value, _ in each["values"]} for each in data["results"]}
    split = next((split for split in ("test", "validation") if split in results), None)
    shown = values["result"]
    sheet.equal(place + "set of the result", shown and shown["set"], split)
    if split:
        deciding = data["best"]["measure"] if data.get("best") else None
        others = [name for name in results[split] if name != "loss"]
        main = deciding if deciding in others else (others or list(results[split]))[0]
        sheet.equal(place + "main result", shown["main"]["value"], results[split][main])
        sheet.equal(place + "loss", (shown.get("loss") or {}).get("value"), results[split].get("loss"))


# The charts.


def same_list(sheet, place, shown, right, digits=6):
    sheet.equal(place + ": points", len(shown), len(right))
    same = lambda a, b: a is None and b is None or a is not None and b is not None and same_digits(a, b, digits)
    for i, (a, b) in enumerate(zip(shown, right)):
        sheet.check(f"{place}[{i}]", a, b, same)


def lines_of(run, split):
    return [m for m in run.metrics if (m["split"] if m["kind"] == "evaluation" else m["kind"]) == split]


def seconds_of(run, samples):
    """Of training, at so many samples: between the training lines they rise evenly."""
    before, at = 0.0, 0.0
    for line in lines_of(run, "train"):
        step = (line["samples_seen"] - before) / line["samples_per_second"] if line["samples_per_second"] else 0.0
        if samples <= line["samples_seen"]:
            return at + step * (samples - before) / max(line["samples_seen"] - before, 1e-300)
        before, at = line["samples_seen"], at + step
    return at


def check_curve_chart(sheet, run, place, chart):
    for series in chart["series"]:
        lines = [m for m in lines_of(run, series["split"]) if chart["measure"] in m]
        if len(lines) > MOST_POINTS:
            continue
        at = f"{place}: {series['label']}"
        sheet.equal(at + ": steps", series["step"], [m["step"] for m in lines])
        sheet.equal(at + ": samples", series["samples"], [m["samples_seen"] for m in lines])
        same_list(sheet, at + ": values", series["y"], [m[chart["measure"]] for m in lines], 9)
        for i, (shown, line) in enumerate(zip(series["seconds"], lines)):
            sheet.number(f"{at}: seconds[{i}]", shown, seconds_of(run, line["samples_seen"]), relative=2e-4)
    for kept in chart["kept"]:
        step = run.summary["kept"]["step"]
        sheet.equal(place + ": kept step", kept["step"], step)
        samples = [m["samples_seen"] for m in run.metrics if m["kind"] == "evaluation" and m["step"] == step]
        sheet.equal(place + ": kept samples", kept["samples"], (samples or [run.summary["samples_seen"]])[0])


def check_threshold_chart(sheet, run, place, chart):
    curves, roc = run.evaluation.get("curves", []), chart["title"].startswith("ROC")
    shown = [s for s in chart["series"] if s["style"] != "guide"]
    sheet.equal(place + ": curves", len(shown), len(curves))
    for series, curve in zip(shown, curves):
        at = f"{place}: class {curve['class']}"
        x = [0.0] + curve["false_positive_rate"] if roc else curve["recall"]
        y = [0.0] + curve["recall"] if roc else curve["precision"]
        if len(x) == len(series["x"]):
            same_list(sheet, at + ": x", series["x"], x, 9)
            same_list(sheet, at + ": y", series["y"], y, 9)
        else:
            others = set(zip(series["x"], series["y"])) - set(zip(x, y))
            sheet.equal(at + ": points that the curve does not have", sorted(others), [])


def check_reliability_chart(sheet, run, place, chart):
    rows = (run.summary.get("evaluation") or {}).get("reliability", [])
    same_list(sheet, place + ": predicted", chart["series"][0]["x"], [row["predicted"] for row in rows])
    same_list(sheet, place + ": observed", chart["series"][0]["y"], [row["observed"] for row in rows])


def check_probability_bars(sheet, run, place, chart):
    rows = run.summary["evaluation"]["reliability"]
    same_list(sheet, place, chart["series"][0]["y"], [row["samples"] for row in rows])


def check_error_chart(sheet, run, place, chart):
    right = run.record["forecasts"][re.search(r", (\w+) set$", chart["title"])[1]]
    for series, each in zip(chart["series"], right, strict=True):
        at = f"{place}: {each['name']}"
        sheet.check(at + ": name", series["label"], each["name"], lambda a, b: a.startswith(b))
        sheet.equal(at + ": steps", series["x"], list(range(1, len(each["by_step"]) + 1)))
        same_list(sheet, at, series["y"], each["by_step"], 9)


def check_window_chart(sheet, run, place, chart):
    """Past and truth are those of the table: see windows.py."""
    name = chart["title"].removeprefix("Forecast against truth: ")
    window = next(each for each in run.evaluation["windows"] if each["name"] == name)
    sheet.equal(place + ": times", chart["times"], window["times"])
    for series in chart["series"]:
        part = {"lowest level": "low", "highest level": "high"}.get(series["label"], series["label"])
        begin = 0 if part == "past" else len(window["past"])
        sheet.equal(f"{place}: {part}: positions", series["x"], list(range(begin, begin + len(window[part]))))
        same_list(sheet, f"{place}: {part}", series["y"], window[part])


def fit_of(run, chart):
    found = re.search(r"target (\d+)$", chart["title"])
    return run.evaluation["fits"][int(found[1]) if found else 0]


def check_fit_chart(sheet, run, place, chart):
    fit = fit_of(run, chart)
    same_list(sheet, place + ": target", chart["series"][0]["x"], fit["target"])
    same_list(sheet, place + ": prediction", chart["series"][0]["y"], fit["prediction"])


def check_residual_bars(sheet, run, place, chart):
    fit = fit_of(run, chart)
    same_list(sheet, place, chart["series"][0]["y"], fit["residuals"])
    for i, name in enumerate(chart["names"]):
        middle = fit["residual_width"] * ((2 * i + 1) / len(fit["residuals"]) - 1)
        near = lambda a, b: same_digits(a, b, 3) or abs(b) < 1e-6 * fit["residual_width"] and float(a) == 0
        sheet.check(f"{place}: middle {i}", name, middle, near)


def check_time_bars(sheet, run, place, chart):
    for series in chart["series"]:
        name = TIMES.get(series["label"], series["label"])
        same_list(sheet, f"{place}: {name}", series["y"], [100 * run.summary["time"].get(name, 0)])
    sheet.near(place + " together", sum(series["y"][0] for series in chart["series"]), 100.0, 0.01)


def check_rank_bars(sheet, run, place, chart):
    """Times of ranks are those since the last start."""
    if not (ranks := run.summary.get("ranks")):
        return sheet.differ(place, "a chart", "no chart of one rank")
    for series in chart["series"]:
        name = TIMES.get(series["label"], series["label"])
        if len(series["y"]) == len(ranks["host"]):
            same_list(sheet, f"{place}: {name}", series["y"], ranks[name])


def check_staleness_bars(sheet, run, place, chart):
    for series, worker in zip(chart["series"], run.summary["asynchrony"]["workers"]):
        sheet.equal(f"{place}: {series['label']}: gradients", sum(series["y"]), sum(worker["staleness"]))


def check_importance_bars(sheet, run, place, chart):
    columns = run.json("importance.json")["columns"][:20]
    same_list(sheet, place, chart["series"][0]["y"], [each["importance"] for each in columns])


CHARTS = {
    "ROC": check_threshold_chart, "Precision-recall": check_threshold_chart, "Reliability": check_reliability_chart,
    "Predictions by their probability": check_probability_bars, "Mean absolute error at each step": check_error_chart,
    "Forecast against truth": check_window_chart, "Predicted against true": check_fit_chart,
    "Residuals": check_residual_bars, "Where the time of the steps": check_time_bars,
    "Where the time of each rank": check_rank_bars, "By how much": check_importance_bars,
    "Gradients by staleness": check_staleness_bars,
}  # fmt: skip
