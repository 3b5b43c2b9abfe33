"""Windows of time: what the log says of them, forecasts of `trainer predict`, and their pictures in evaluation.json."""

import re
from dataclasses import replace

import numpy as np

from .outputs import from_weights, in_order, predict
from .report import same_digits
from .summary import figures_of
from .table_data import scale_of
from .texts import taken
from .window_data import list_of


def why_not(run):
    """Why the auditor knows nothing of a run on windows; empty if it does."""
    split = next((each for each in ("test", "validation", "train") if run.sets[each] is not None), None)
    if not run.config.get("data.window") or run.own_outputs(split) is not None:
        return ""
    return "its windows go through layers, or a precision, that the auditor does not compute"


def whole(text):
    return int(text.replace(",", ""))


def check_span(sheet, run, found):
    """How many windows a set has, and the times of their horizons."""
    taken(found)
    split, place = found[1].removesuffix("ing"), f"log.txt: {found[1]} set: "
    windows, config = run.sets[split].windows, run.config
    sheet.printed(place + "windows", found[2], len(windows.origins))
    sheet.equal(place + "window, horizon, stride", [whole(found[i] or "1") for i in (3, 4, 5)], [config["data.window"], config["data.horizon"], config.get("data.stride", 1)])
    used = {windows.positions.places[origin][3] for origin in windows.origins}
    series = len(windows.positions.series)
    sheet.equal(place + "series", [whole(found[i] or "1") for i in (6, 7)], [len(used), series])
    sheet.equal(place + "horizons", (found[8], found[9]), windows.ends())
    told = [line for line in run.log if f" {found[1]} set: " in line and " left out, " in line]
    sheet.equal(place + "says what was left out", bool(told), windows.left_out > 0)


def check_left_out(sheet, run, found):
    taken(found)
    sheet.printed(f"log.txt: {found[1]} set: windows that were left out", found[2], run.sets[found[1].removesuffix("ing")].windows.left_out)


def positions_with(run, column, what):
    """Those of the first file that has some."""
    files = ["train", *(split for split in ("validation", "test") if split not in run.sets.parts().among and run.sets[split] is not None)]
    return next((p for p in map(run.sets.positions, files) if getattr(p, what)), run.sets.positions("train"))


def check_gaps(sheet, run, found):
    taken(found)
    positions = positions_with(run, found[1], "gaps")
    sheet.equal("log.txt: times that are missing, gaps, the first one", [whole(found[2]), whole(found[3]), found[4]], [positions.missing, len(positions.gaps), (positions.gaps or [""])[0]])


def check_irregular(sheet, run, found):
    taken(found)
    positions = positions_with(run, found[1], "irregular")
    sheet.equal("log.txt: irregular steps, the first one", [whole(found[2]), found[3]], [len(positions.irregular), (positions.irregular or [""])[0]])


def check_repeating(sheet, run, found):
    """Forecasts that need no model: of each its name, and its mean absolute and squared errors."""
    taken(found)
    shown = [found.groups()[1:4], *([found.groups()[4:]] if found[5] else [])]
    right = run.sets[found[1]].windows.naive()
    sheet.equal(f"log.txt: {found[1]}: repeating", [name for name, *_ in shown], [name for name, *_ in right])
    for (name, absolute, squared), (_, steps, error) in zip(shown, right):
        sheet.digits(f"log.txt: {found[1]}: repeating {name}: mean_absolute_error", absolute, float(steps.mean()))
        sheet.digits(f"log.txt: {found[1]}: repeating {name}: mean_squared_error", squared, error)


def check_beside(sheet, run, found):
    """The model beside the best of these."""
    taken(found)
    split, shown = found["split"], found.groupdict()
    steps, slack = figures_of(run, split).errors_by_step()
    name, best = min(((name, float(steps.mean())) for name, steps, _ in run.sets[split].windows.naive()), key=lambda each: each[1])
    own, off, place = float(steps.mean()), float(slack.mean()), f"log.txt: {split}: the model beside repeating the past: "
    near = lambda right, off: lambda a, _: same_digits(a, right, 5) or abs(float(a) - right) <= off + 0.51 * 10.0 ** (np.floor(np.log10(abs(right))) - 4)
    sheet.equal(place + "name", found["name"], name)
    sheet.equal(place + "is better", "share" in shown, own < best)
    sheet.check(place + "mean_absolute_error", found["own"], own, near(own, off))
    if "share" in shown:
        sheet.check(place + "share", float(found["share"]), 100 * (1 - own / best), lambda a, b: abs(a - b) <= 0.0501 + 100 * off / best)
    else:
        sheet.digits(place + "mean_absolute_error of repeating", found["best"], best)


FORMS = (
    (r"(\w+) set: ([\d,]+) windows? of ([\d,]+) \+ ([\d,]+) positions(?:, one each ([\d,]+))?(?:, of ([\d,]+) of ([\d,]+) series)?; the horizons are from (.*) to (.*)", check_span),
    (r"(\w+) set: ([\d,]+) windows? left out, as a label is missing in (?:it|them)", check_left_out),
    (r"column '(.*)' lacks ([\d,]+) times? in ([\d,]+) gaps?, the first from (.*?): (?:positions are taken as they come .*|they are filled)", check_gaps),
    (r"column '(.*)' has ([\d,]+) steps? that (?:is|are) no multiple of the usual one, the first from (.*?): positions .*", check_irregular),
    (r"(validation|test): repeating (.*?) has mean_absolute_error (\S+) \(mean_squared_error (\S+?)(?: of the scaled label)?\)(?:, (.*) (\S+) \((\S+)\))?", check_repeating),
    (r"(?:warning: )?(?P<split>validation|test): the model's mean_absolute_error (?P<own>\S+) is (?P<share>\S+) % below that of repeating (?P<name>.*)", check_beside),
    (r"(?:warning: )?(?P<split>validation|test): repeating (?P<name>.*?) has mean_absolute_error (?P<best>\S+), and the model (?P<own>\S+): it is no better than a forecast that needs no model", check_beside),
)


def check_lines(sheet, run, lines):
    """Those of a command that tell of windows."""
    for line in lines:
        for pattern, handler in FORMS:
            if found := re.fullmatch(pattern, line):
                handler(sheet, run, found)


def why_no_forecast(run, positions):
    """What `trainer predict` says of a file that it does not go on from; empty if it does."""
    for i, name in enumerate(list_of(run.config.get("data.series"))):
        column = run.sets.column(name)
        known = column.get("values", []) if column["use"] == "feature" and column["kind"] == "categorical" and column["encode"] != "hash" else []
        if 0 < len(known) < run.config["data.vocabulary"] and any(series[i] not in known for series in positions.series):
            return "training has no series"
    for (begin, end), origin in zip(positions.ranges, positions.last_origins()):
        if origin - begin < positions.window:
            return "give a longer history"
        if not positions.known[origin - positions.window : origin].all():
            return "is missing, and the window before the forecast needs it"
        if any(known for _, known in positions.moving) and end - origin < positions.horizon:
            return "known ahead"
    return ""


def check_last_windows(sheet, run):
    """`trainer predict` of the training file: a row for each series and step behind its last label. Gives its columns."""
    positions, place = run.sets.positions("train"), "predict: "
    if reason := why_no_forecast(run, positions):
        code, _, error = run.command("predict", "--model", run.directory, "--input", run.config["data.train"], "--output", "-")
        return sheet.check(place + "no forecast", (code, error), reason, lambda a, b: a[0] != 0 and b in a[1])
    names, cells = predict(run.trainer, run.directory, run.config["data.train"], run.cwd, run.config)
    origins = positions.last_origins()
    features = np.array([positions.features(origin) for origin in origins], np.float32)
    own = from_weights(run.config, run.tensors, run.temperature, replace(run.sets["train"], features=features))
    levels = max(len(run.form.levels), 1)
    own = in_order(own, levels) if run.form.loss == "quantile" else own
    times = [[*positions.names(origin), positions.time_text(origin, step)] for origin in origins for step in range(positions.horizon)]
    known = len(times[0])
    sheet.equal(place + "columns of series and time", names[: known + 1], ["row", *list_of(run.config.get("data.series")), run.config["data.time"]])
    sheet.equal(place + "rows, series and times", [row[: known + 1] for row in cells], [[str(i), *each] for i, each in enumerate(times)])
    by_step = lambda each: each.reshape(len(origins), -1, positions.horizon, levels).transpose(0, 2, 1, 3).reshape(len(times), -1)
    value, error = by_step(own.values), by_step(own.error)
    if run.form.link == "exp":
        value, error = np.exp(value), error * np.exp(value)
    for k in range(value.shape[1]):
        scale = scale_of(run.label_columns()[k // levels])
        off = scale.undone_error(value[:, k], error[:, k])
        for row, right, slack in zip(cells, scale.undo(value[:, k]), off):
            sheet.check(f"{place}{names[known + 1 + k]} of {' '.join(row[1 : known + 1])}", row[known + 1 + k], float(right), lambda a, b: abs(float(a) - b) <= slack + 3e-7 * abs(b))
    return names[:1] + names[known + 1 :]


def check_windows(sheet, run, json):
    """Of the last window of each series; of several labels one each, of the first series."""
    shown, of_labels = json.get("windows") or [], len(run.label_columns()) > 1
    windows, figures = run.sets[json["split"]].windows, figures_of(run, json["split"])
    last = {windows.positions.places[origin][3]: i for i, origin in enumerate(windows.origins)} if windows else {}
    chosen = [(at, label) for at in list(last.values())[: 1 if of_labels else 4] for label in range(min(len(run.label_columns()), 4))]
    sheet.equal("evaluation.json: windows", len(shown), len(chosen))
    for i, (window, (at, label)) in enumerate(zip(shown, chosen)):
        check_window(sheet, run, f"evaluation.json: windows[{i}]", window, at, label, windows, figures)


def check_window(sheet, run, place, window, at, label, windows, figures):
    positions, origin, labels = windows.positions, windows.origins[at], run.label_columns()
    first, horizon = origin - min(positions.window, 4 * positions.horizon, 600), positions.horizon
    name = ", ".join(positions.names(origin))
    sheet.equal(place + ".name", window["name"], labels[label]["name"] if len(labels) > 1 or not name else name)
    sheet.equal(place + ".times", window["times"], [positions.text(positions.places[p][1]) for p in range(first, origin + horizon)])
    for part, begin, end in (("past", first, origin), ("truth", origin, origin + horizon)):
        right = positions.scales[label].undo(positions.labels[begin:end, label])
        single = 1e-6 * max(map(abs, window["past"]))  # scaled labels are in single precision
        sheet.equal(f"{place}.{part}: positions", len(window[part]), end - begin)
        for k, (shown, value) in enumerate(zip(window[part], right)):
            sheet.check(f"{place}.{part}[{k}]", shown, float(value), lambda a, b: same_digits(a, b, 5) or abs(a - b) <= single)
    levels = len(figures.form.levels)
    parts = {"forecast": levels // 2} | ({"low": 0, "high": levels - 1} if levels > 1 else {})
    sheet.equal(f"{place}: has a band", [part in window for part in ("low", "high")], [levels > 1] * 2)
    for part, level in parts.items():
        sheet.equal(f"{place}.{part}: positions", len(window[part]), horizon)
        value, error = figures.middle(level)
        for k, shown in enumerate(window[part]):
            sheet.check(f"{place}.{part}[{k}]", shown, float(value[at, label, k]), lambda a, b: same_digits(a, b, 6) or abs(a - b) <= error[at, label, k] + 1e-5 * abs(b))
