"""Windows of time: forecasts of `trainer predict`, and their pictures in evaluation.json."""

from dataclasses import replace

import numpy as np

from .outputs import from_weights, in_order, predict
from .report import same_digits
from .summary import figures_of
from .table_data import scale_of
from .window_data import list_of


def why_not(run):
    """Why the auditor knows nothing of a run on windows; empty if it does."""
    split = next((each for each in ("test", "validation", "train") if run.sets[each] is not None), None)
    if not run.config.get("data.window") or run.own_outputs(split) is not None:
        return ""
    return "its windows go through layers, or a precision, that the auditor does not compute"


def why_no_forecast(run, positions):
    """What `trainer predict` says of a file that it does not go on from; empty if it does."""
    for i, name in enumerate(list_of(run.config.get("data.series"))):
        column = run.sets.column(name)
        named = column["use"] == "feature" and column["kind"] == "categorical" and column["encode"] != "hash"
        known = column.get("values", []) if named else []
        unknown = any(series[i] not in known for series in positions.series)
        if 0 < len(known) < run.config["data.vocabulary"] and unknown:
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
    """`trainer predict` of the training file: a row for each series and step behind its last label. Gives its
    columns."""
    positions, place = run.sets.positions("train"), "predict: "
    if reason := why_no_forecast(run, positions):
        code, _, error = run.command("predict", "--model", run.directory, "--input", run.config["data.train"],
                                     "--output", "-")
        return sheet.check(place + "no forecast", (code, error), reason, lambda a, b: a[0] != 0 and b in a[1])
    names, cells = predict(run.trainer, run.directory, run.config["data.train"], run.cwd, run.config)
    origins = positions.last_origins()
    features = np.array([positions.features(origin) for origin in origins], np.float32)
    own = from_weights(run.config, run.tensors, run.temperature, replace(run.sets["train"], features=features))
    levels = max(len(run.form.levels), 1)
    own = in_order(own, levels) if run.form.loss == "quantile" else own
    times = [[*positions.names(origin), positions.time_text(origin, step)] for origin in origins
             for step in range(positions.horizon)]
    known = len(times[0])
    sheet.equal(place + "columns of series and time", names[: known + 1],
                ["row", *list_of(run.config.get("data.series")), run.config["data.time"]])
    sheet.equal(place + "rows, series and times", [row[: known + 1] for row in cells],
                [[str(i), *each] for i, each in enumerate(times)])
    cut = lambda each: each.reshape(len(origins), -1, positions.horizon, levels)
    by_step = lambda each: cut(each).transpose(0, 2, 1, 3).reshape(len(times), -1)
    value, error = by_step(own.values), by_step(own.error)
    if run.form.link == "exp":
        value, error = np.exp(value), error * np.exp(value)
    for k in range(value.shape[1]):
        scale = scale_of(run.label_columns()[k // levels])
        off = scale.undone_error(value[:, k], error[:, k])
        for row, right, slack in zip(cells, scale.undo(value[:, k]), off):
            sheet.check(f"{place}{names[known + 1 + k]} of {' '.join(row[1 : known + 1])}", row[known + 1 + k],
                        float(right), lambda a, b: abs(float(a) - b) <= slack + 3e-7 * abs(b))
    return names[:1] + names[known + 1 :]


def check_windows(sheet, run, json):
    """Of the last window of each series; of several labels one each, of the first series."""
    shown, of_labels = json.get("windows") or [], len(run.label_columns()) > 1
    windows, figures = run.sets[json["split"]].windows, figures_of(run, json["split"])
    last = {windows.positions.places[origin][3]: i for i, origin in enumerate(windows.origins)} if windows else {}
    chosen = [(at, label) for at in list(last.values())[: 1 if of_labels else 4]
              for label in range(min(len(run.label_columns()), 4))]
    sheet.equal("evaluation.json: windows", len(shown), len(chosen))
    for i, (window, (at, label)) in enumerate(zip(shown, chosen)):
        check_window(sheet, run, f"evaluation.json: windows[{i}]", window, at, label, windows, figures)


def check_window(sheet, run, place, window, at, label, windows, figures):
    positions, origin, labels = windows.positions, windows.origins[at], run.label_columns()
    first, horizon = origin - min(positions.window, 4 * positions.horizon, 600), positions.horizon
    name = ", ".join(positions.names(origin))
    sheet.equal(place + ".name", window["name"], labels[label]["name"] if len(labels) > 1 or not name else name)
    sheet.equal(place + ".times", window["times"],
                [positions.text(positions.places[p][1]) for p in range(first, origin + horizon)])
    for part, begin, end in (("past", first, origin), ("truth", origin, origin + horizon)):
        right = positions.scales[label].undo(positions.labels[begin:end, label])
        single = 1e-6 * max(map(abs, window["past"]))  # scaled labels are in single precision
        sheet.equal(f"{place}.{part}: positions", len(window[part]), end - begin)
        for k, (shown, value) in enumerate(zip(window[part], right)):
            sheet.check(f"{place}.{part}[{k}]", shown, float(value),
                        lambda a, b: same_digits(a, b, 5) or abs(a - b) <= single)
    levels = len(figures.form.levels)
    parts = {"forecast": levels // 2} | ({"low": 0, "high": levels - 1} if levels > 1 else {})
    sheet.equal(f"{place}: has a band", [part in window for part in ("low", "high")], [levels > 1] * 2)
    for part, level in parts.items():
        sheet.equal(f"{place}.{part}: positions", len(window[part]), horizon)
        value, error = figures.middle(level)
        for k, shown in enumerate(window[part]):
            sheet.check(f"{place}.{part}[{k}]", shown, float(value[at, label, k]),
                        lambda a, b: same_digits(a, b, 6) or abs(a - b) <= error[at, label, k] + 1e-5 * abs(b))
