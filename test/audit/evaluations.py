"""Checks of one evaluation as JSON has it: a line of metrics.jsonl, `evaluation` of summary.json, `trainer eval
--json`."""

import numpy as np

from .figures import default_metrics
from .metrics import are_zero
from .report import same_number

EVALUATED = {"loss", "accuracy", "top_k_accuracy"}


def metric_names(config, figures):
    named = config.get("eval.metrics")
    if named is None:
        return default_metrics(figures.form, figures.targets, figures.classes)
    return [named] if isinstance(named, str) else list(named)


def check_evaluation(sheet, place, json, figures, config):
    sheet.equal(f"{place}.samples", json.get("samples"), figures.samples)
    sheet.equal(f"{place}.positions", json.get("positions"), len(figures.targets) if figures.of_positions else None)
    wanted = ["loss"] + (["accuracy"] if figures.form.targets != "value" else [])
    k = config.get("eval.top_k", 5)
    if figures.form.targets == "class" and figures.classes > k:
        wanted.append("top_k_accuracy")
        sheet.equal(f"{place}.top_k", json.get("top_k"), k)
    wanted += metric_names(config, figures)
    for name in wanted:
        sheet.number(f"{place}.{name}", json.get(name, "(missing)"), figures.named(name, k))
    if "mean_absolute_percentage_error" in wanted:
        zeros = int(are_zero(figures.labels(figures.targets)).sum())
        of_zero = {"mean_absolute_percentage_error": zeros} if zeros else {}
        sheet.same(f"{place}.left_out", json.get("left_out", {}), of_zero)
    two = (figures.form.targets, figures.classes) in (("class", 2), ("binary", 1))
    positive = figures.names[1] if len(figures.names) == 2 else "1"
    sheet.equal(f"{place}.positive", json.get("positive"), positive if two else None)
    if "forecast" in json:
        check_forecast(sheet, f"{place}.forecast", json["forecast"], figures)
    if "confusion" in json:
        check_confusion(sheet, f"{place}.confusion", json["confusion"], figures)
    elif two or figures.form.targets == "class" and figures.classes <= 100:
        sheet.differ(f"{place}.confusion", "(missing)", figures.confusion().tolist())


def check_confusion(sheet, place, shown, figures):
    right = figures.confusion()
    shown = np.array(shown)
    if shown.shape != right.shape:
        sheet.differ(place, shown.tolist(), right.tolist())
        return
    slack = figures.unsure()
    for i, row in enumerate(right):
        for k, count in enumerate(row):
            sheet.check(f"{place}[{i}][{k}]", int(shown[i, k]), int(count), lambda a, b: abs(a - b) <= slack)
    sheet.equal(f"{place} total", int(shown.sum()), int(right.sum()))


def check_forecast(sheet, place, shown, figures):
    """Errors by step ahead of the model, and of repeating the past."""
    right = [("the model", *figures.errors_by_step(), None)]
    right += [(f"repeating {name}", steps, 1e-9 * steps, squared) for name, steps, squared in figures.windows.naive()]
    sheet.equal(f"{place}: names", [each["name"] for each in shown], [name for name, *_ in right])
    for i, (each, (_, steps, slack, squared)) in enumerate(zip(shown, right)):
        at = f"{place}[{i}]"
        sheet.equal(f"{at}.by_step: steps", len(each["by_step"]), len(steps))
        for k, error in enumerate(each["by_step"][: len(steps)]):
            sheet.near(f"{at}.by_step[{k}]", error, float(steps[k]), slack[k] + 1e-9 * steps[k])
        mean, off = float(steps.mean()), slack.mean() + 1e-9 * steps.mean()
        sheet.near(f"{at}.mean_absolute_error", each["mean_absolute_error"], mean, off)
        if squared is not None:
            sheet.number(f"{at}.squared_error", each["squared_error"], squared, relative=1e-9)


def check_tables(sheet, place, json, figures):
    """per_class and reliability."""
    if "per_class" in json:
        several = figures.form.targets == "binary" and figures.classes > 1
        right = figures.per_class()
        sheet.equal(f"{place}.per_class rows", len(json["per_class"]), min(len(right), 100))
        for i, (row, want) in enumerate(zip(json["per_class"], right)):
            at = f"{place}.per_class[{i}]"
            name = figures.names[i] if i < len(figures.names) else str(i)
            sheet.equal(f"{at}.{'output' if several else 'class'}", row.get("output", row.get("class")), name)
            both, true, said, unsure = want
            possible = [figures.scores(b, true, s) for s in range(max(said - unsure, 0), said + unsure + 1)
                        for b in range(max(both - unsure, 0), min(both + unsure, true, s) + 1)]
            for key, value in figures.scores(both, true, said).items():
                sheet.check(f"{at}.{key}", row[key], value, lambda a, b: same_number(a, b, 1e-9)
                            or any(same_number(a, each[key], 1e-9) for each in possible))
            sheet.equal(f"{at}.samples", row["samples"], true)
    if "reliability" in json:
        check_reliability(sheet, f"{place}.reliability", json["reliability"], figures)


def check_reliability(sheet, place, rows, figures):
    right, unsure = {bin_: of for bin_, *of in figures.reliability()}, figures.unsure_bins()
    bins = [round(15 * row["from"]) for row in rows]
    accept = lambda a, b: a == sorted(a) and all(unsure[each] for each in set(a) ^ set(b))
    sheet.check(f"{place} rows", bins, sorted(right), accept)
    for i, (row, bin_) in enumerate(zip(rows, bins)):
        at = f"{place}[{i}]"
        samples, predicted, observed, _ = right.get(bin_, (0, row["predicted"], row["observed"], 0))
        sheet.number(f"{at}.from", row["from"], bin_ / 15)
        sheet.number(f"{at}.to", row["to"], (bin_ + 1) / 15)
        sheet.check(f"{at}.samples", row["samples"], samples, lambda a, b: abs(a - b) <= unsure[bin_])
        # Where a record may be in the bin or not, the means are anything that the bin has room for.
        sheet.near(f"{at}.predicted", row["predicted"], predicted, 1 / 15 if unsure[bin_] else 1e-6)
        sheet.near(f"{at}.observed", row["observed"], observed, 1 if unsure[bin_] else 1e-6)
