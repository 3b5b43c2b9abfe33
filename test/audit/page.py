"""report.html: its charts, tables and sentences, as its script makes them under Node.js of the numbers that the page holds."""

import decimal
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

from .page_tables import check_tables
from .page_words import check_words
from .positive import OF_POSITIVE, positive_of, quoted
from .report import number_of, same_digits, same_number

TITLES = {
    "Loss": "loss", "Loss of the scaled label": "loss", "Accuracy": "accuracy", "Learning rate": "lr", "Throughput, in samples per second": "samples_per_second",
    "Norm of the gradient": "gradient_norm", "Norm of the weights": "weight_norm", "AUC": "auc", "Log loss": "log_loss",
    "Precision": "precision", "Recall": "recall", "R²": "r2", "Mean absolute error": "mean_absolute_error",
    "Mean squared error": "mean_squared_error", "Root mean squared error": "root_mean_squared_error",
    "Mean absolute percentage error": "mean_absolute_percentage_error", "Average precision": "average_precision",
    "Brier score": "brier", "Expected calibration error": "ece", "F1": "f1", "Matthews correlation": "mcc",
    "Balanced accuracy": "balanced_accuracy", "Rank correlation": "spearman", "Top-K accuracy": "top_k_accuracy",
    "Bits per character": "bits_per_character", "Perplexity": "perplexity",
    "Pinball": "pinball", "Poisson deviance": "poisson_deviance", "Gamma deviance": "gamma_deviance",
    "Tweedie deviance": "tweedie_deviance", "Cosine similarity": "cosine_similarity",
}  # fmt: skip


def titles_of(run):
    """Measures by their titles, which name the class of those that are about one."""
    if (positive := positive_of(run)) is None:
        return TITLES
    return {f"{title} of {quoted(positive)}" if measure in OF_POSITIVE else title: measure for title, measure in TITLES.items()}


MOST_POINTS = 2000
DRAW = pathlib.Path(__file__).resolve().parent.parent / "support/draw_page.js"


def drawn(page):
    """Charts, and the document as HTML; None where Node.js is not there."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        print(f"{page} is not audited: Node.js is not there (Debian: nodejs)", file=sys.stderr)
        return None
    done = subprocess.run([node, str(DRAW), str(page)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_page(sheet, run):
    page = run.directory / "report.html"
    made = drawn(page) if page.exists() else None
    if made is None:
        return
    charts, text = {chart["title"]: chart for chart in made["charts"]}, made["html"]
    for chart in made["charts"]:
        place = f"report.html: {chart['title']}"
        if chart["kind"] == "curve":
            check_curve_chart(sheet, run, place, chart)
        elif chart["title"].startswith(("ROC", "Precision-recall")):
            check_threshold_chart(sheet, run, place, chart)
        elif chart["title"].startswith("Reliability"):
            check_reliability_chart(sheet, run, place, chart)
        elif chart["title"].startswith("Mean absolute error at each step ahead"):
            check_error_chart(sheet, run, place, chart)
        elif chart["title"].startswith("Forecast against truth"):
            check_window_chart(sheet, run, place, chart)
        elif chart["title"].startswith("Predicted against true"):
            check_fit_chart(sheet, run, place, chart)
        elif chart["kind"] == "bars":
            check_bars(sheet, run, place, chart)
        else:
            sheet.differ(place, "a chart", "(no check)")
    names = titles_of(run)
    check_words(sheet, run, text, charts, names)
    check_tables(sheet, run, tables_of(text), charts, names)
    check_samples(sheet, run, text)
    areas = {four_digits(curve["area"]) for curve in (run.evaluation or {}).get("curves", []) if curve["area"] is not None}
    sheet.equal("report.html: areas that no curve has", sorted(set(re.findall(r", area (\d\.\d{4})", text)) - areas), [])


def check_samples(sheet, run, text):
    """The texts that the model has written, if there are few enough for all of them to be shown."""
    written = [(m["step"], m["sample"]) for m in run.metrics if "sample" in m]
    steps = [number_of(step) for step in re.findall(r"<h3>After step ([\d,]+)</h3>", text)]
    shown = list(zip(steps, map(html.unescape, re.findall(r'<pre class="text">(.*?)</pre>', text, re.S))))
    sheet.check("report.html: samples", shown, written, lambda a, b: a == b or len(b) > 20 >= len(a) and set(a) <= set(b))


def four_digits(area):
    """As JavaScript writes them, which rounds an exact half up."""
    return f"{decimal.Decimal(area).quantize(decimal.Decimal('0.0001'), decimal.ROUND_HALF_UP)}"


def same_list(sheet, place, shown, right, digits, faults=None):
    sheet.equal(place + ": points", len(shown), len(right))
    for i, (a, b) in enumerate(zip(shown, right)):
        sheet.check(f"{place}[{i}]", a, b, lambda x, y: x is None and y is None or x is not None and y is not None and same_digits(x, y, digits), {k: v[i] for k, v in (faults or {}).items() if i < len(v)})


def lines_of(run, split):
    return [m for m in run.metrics if m["kind"] == "train"] if split == "train" else [m for m in run.metrics if m["kind"] == "evaluation" and m["split"] == split]


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
    measure = titles_of(run).get(chart["title"], chart["title"])
    for series in chart["series"]:
        lines = [m for m in lines_of(run, series["split"]) if measure in m]
        if len(lines) > MOST_POINTS:
            continue
        at = f"{place}: {series['label']}"
        sheet.equal(at + ": steps", series["step"], [m["step"] for m in lines])
        sheet.equal(at + ": samples", series["samples"], [m["samples_seen"] for m in lines])
        same_list(sheet, at + ": values", series["y"], [m[measure] for m in lines], 9)
        for i, (shown, line) in enumerate(zip(series["seconds"], lines)):
            sheet.check(f"{at}: seconds[{i}]", shown, seconds_of(run, line["samples_seen"]), lambda a, b: same_number(a, b, 2e-4))
    for kept in chart["kept"]:
        step = run.summary["kept"]["step"]
        sheet.equal(place + ": kept step", kept["step"], step)
        samples = [m["samples_seen"] for m in run.metrics if m["kind"] == "evaluation" and m["step"] == step]
        sheet.equal(place + ": kept samples", kept["samples"], (samples or [run.summary["samples_seen"]])[0])


def check_threshold_chart(sheet, run, place, chart):
    curves = run.evaluation.get("curves", [])
    roc = chart["title"].startswith("ROC")
    shown = [s for s in chart["series"] if s["style"] != "guide"]
    sheet.equal(place + ": curves", len(shown), len(curves))
    for series, curve in zip(shown, curves):
        at = f"{place}: class {curve['class']}"
        area = f", area {four_digits(curve['area'])}" if roc and curve["area"] is not None else ""
        sheet.equal(at + ": label", series["label"], f"class {curve['class']}{area}")
        x = [0.0] + curve["false_positive_rate"] if roc else curve["recall"]
        y = [0.0] + curve["recall"] if roc else curve["precision"]
        if len(x) == len(series["x"]):
            same_list(sheet, at + ": x", series["x"], x, 9)
            same_list(sheet, at + ": y", series["y"], y, 9)
        else:
            points = set(zip(x, y))
            lost = [p for p in zip(series["x"], series["y"]) if p not in points]
            sheet.equal(at + ": points that the curve does not have", lost, [])


def check_reliability_chart(sheet, run, place, chart):
    rows = (run.summary.get("evaluation") or {}).get("reliability", [])
    series = chart["series"][0]
    same_list(sheet, place + ": predicted", series["x"], [row["predicted"] for row in rows], 6)
    same_list(sheet, place + ": observed", series["y"], [row["observed"] for row in rows], 6)


def check_error_chart(sheet, run, place, chart):
    right = run.record["forecasts"][re.search(r", (\w+) set$", chart["title"])[1]]
    sheet.equal(place + ": forecasts", [series["label"].partition(", mean ")[0] for series in chart["series"]], [each["name"] for each in right])
    for series, each in zip(chart["series"], right):
        at = f"{place}: {each['name']}"
        sheet.equal(at + ": steps", series["x"], list(range(1, len(each["by_step"]) + 1)))
        same_list(sheet, at, series["y"], each["by_step"], 9)
        sheet.printed(at + ": mean", series["label"].partition(", mean ")[2], sum(each["by_step"]) / len(each["by_step"]))


def check_window_chart(sheet, run, place, chart):
    """Past and truth are those of the table: see windows.py."""
    name = chart["title"].removeprefix("Forecast against truth: ")
    window = next(each for each in run.evaluation["windows"] if each["name"] == name)
    sheet.equal(place + ": times", chart["times"], window["times"])
    for series in chart["series"]:
        part = {"lowest level": "low", "highest level": "high"}.get(series["label"], series["label"])
        begin = 0 if part == "past" else len(window["past"])
        sheet.equal(f"{place}: {part}: positions", series["x"], list(range(begin, begin + len(window[part]))))
        same_list(sheet, f"{place}: {part}", series["y"], window[part], 6)


def check_fit_chart(sheet, run, place, chart):
    fits = run.evaluation.get("fits", [])
    found = re.search(r"target (\d+)$", chart["title"])
    fit = fits[int(found[1]) if found else 0]
    same_list(sheet, place + ": target", chart["series"][0]["x"], fit["target"], 6)
    same_list(sheet, place + ": prediction", chart["series"][0]["y"], fit["prediction"], 6)


def check_bars(sheet, run, place, chart):
    values = {series["label"]: series["y"] for series in chart["series"]}
    if chart["title"].startswith("Where the time of the steps"):
        names = {"compute": "compute", "communication": "communication", "waiting for other ranks": "waiting", "data": "data", "idle for other stages": "idle"}
        for label, shown in values.items():
            same_list(sheet, f"{place}: {label}", shown, [100 * run.summary["time"].get(names[label], 0)], 6)
        total = sum(shown[0] for shown in values.values())
        sheet.check(place + " together", total, 100.0, lambda a, b: abs(a - b) < 0.01)
    elif chart["title"].startswith("Where the time of each rank"):
        ranks = [m for m in run.metrics if m["kind"] == "ranks"][-1]
        if "ranks" not in run.summary:
            sheet.differ(place, f"{len(ranks['host'])} ranks", "no chart")
        names = {"compute": "compute", "exchange": "exchange", "waiting for other ranks": "waiting", "data": "data"}
        for label, shown in values.items():
            if len(shown) == len(ranks["host"]):
                same_list(sheet, f"{place}: {label}", shown, ranks[names[label]], 6)
    elif chart["title"].startswith("Predictions by their probability"):
        rows = run.summary["evaluation"]["reliability"]
        same_list(sheet, place, chart["series"][0]["y"], [row["samples"] for row in rows], 6)
        for i, (name, row) in enumerate(zip(chart["names"], rows)):
            sheet.printed(f"{place}: name {i}", name, row["predicted"])
    elif chart["title"].startswith("Residuals"):
        found = re.search(r"target (\d+)$", chart["title"])
        fit = run.evaluation["fits"][int(found[1]) if found else 0]
        same_list(sheet, place, chart["series"][0]["y"], fit["residuals"], 6)
        bins = len(fit["residuals"])
        for i, name in enumerate(chart["names"]):
            middle = fit["residual_width"] * ((2 * i + 1) / bins - 1)
            sheet.check(f"{place}: middle {i}", name, middle, lambda a, b: same_digits(a, b, 3) or abs(b) < 1e-6 * fit["residual_width"] and float(a) == 0)
    elif chart["title"].startswith("By how much"):
        importance = run.json("importance.json")
        if importance:
            same_list(sheet, place, chart["series"][0]["y"], [c["importance"] for c in importance["columns"]][:20], 6)


def tables_of(body):
    """Captions and rows of cells."""
    for table in re.findall(r"<table.*?</table>", body, re.S):
        cell = lambda text: html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))).strip()
        caption = re.search(r"<caption>(.*?)</caption>", table, re.S)
        rows = [[cell(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)]
        yield cell(caption[1]) if caption else "", rows
