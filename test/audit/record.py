"""run.json, which everything that shows a run reads: against summary.json and metrics.jsonl. Its plan has plan.py, its
notes on the data have data_facts.py."""

from .evaluations import check_forecast
from .length import length_of
from .report import leaves, same_number
from .summary import best_line, figures_of, kept_measures, measures_of


def check_record(sheet, run):
    record, summary, length, place = run.record, run.summary, length_of(run), "run.json: "
    sheet.document("run.json", record)
    early = "early_stopping" in summary
    right = ("stopped early", summary["early_stopping"]) if early else ("done", "")
    sheet.equal(place + "state, reason", (record["state"], record["reason"]), right)
    sheet.equal(place + "exit_code", record["exit_code"], 0)
    sheet.check(place + "heartbeat.pid", record["heartbeat"]["pid"], 0, lambda a, b: a > b)
    sheet.equal(place + "config", record["config"], summary["config"])
    idle = [key for key in record["idle_keys"] if key in run.config.keys]  # others have no value
    sheet.equal(place + "idle_keys", idle, sorted(run.config.idle))
    same, shown = dict(leaves(summary)), dict(leaves(record["result"]))
    for path in sorted(set(same) | set(shown)):
        sheet.equal(f"{place}result.{path}", shown.get(path, "missing"), same.get(path, "missing"))
    for name, of in (("steps", "steps"), ("samples", "samples_seen"), ("epochs", "epochs")):
        sheet.equal(f"{place}progress.{name}", record["progress"][name], summary[of])
    sheet.equal(place + "seconds", record["seconds"], summary["seconds"])
    check_launch(sheet, place, record["launch"], length)
    check_figures(sheet, run, place, record)
    shown = (len(record["warnings"]), record["more_warnings"])
    sheet.check(place + "warnings", shown, 10, lambda a, b: a[0] <= b and (a[0] == b or a[1] == 0))
    sheet.check(place + "more_warnings", record["more_warnings"], 0, lambda a, b: a >= b)
    sheet.equal(place + "files", [name for name in record["files"] if not (run.directory / name).exists()], [])


def check_launch(sheet, place, launch, length):
    sheet.equal(place + "launch.replicas", launch["replicas"], length.replicas)
    threads = length.get("train.threads", 0)
    sheet.check(place + "launch.threads", launch["threads"], threads, lambda a, b: a == b or b == 0 and a > 0)
    for name in ("hosts", "cores"):
        sheet.equal(f"{place}launch: {name}", len(launch[name]), length.ranks)
    for i, step in enumerate(launch["resumed_at"]):
        sheet.check(f"{place}launch.resumed_at[{i}]", step, length.steps, lambda a, b: 0 <= a <= b)


def check_figures(sheet, run, place, record):
    """The last evaluation of each set, and the measure that decides."""
    evaluations = [m for m in run.metrics if m["kind"] == "evaluation"]
    last = {m["split"]: m for m in evaluations}
    sheet.equal(place + "last", sorted(record["last"]), sorted(last))
    kept, shown = run.summary["kept"], record["kept"]
    sheet.equal(place + "kept.step", shown["step"], kept["step"])
    sheet.equal(place + "kept", (shown["best"], shown["average"]), (kept["weights"] == "best", kept.get("average", "")))
    for split, figures in record["last"].items():
        line, at = last[split], f"{place}last.{split}."
        sheet.equal(at + "step", figures["step"], line["step"])
        sheet.equal(at + "epoch", figures["epoch"], line["epoch"])
        best = kept["weights"] == "best" and line["step"] == kept["step"]
        sheet.equal(at + "weights", figures["weights"].split(",")[0], "best" if best else "last")
        measures = measures_of(line)
        for name in sorted(set(measures) | set(figures["values"])):
            sheet.equal(f"{at}values.{name}", figures["values"].get(name), measures.get(name))
    check_kept_figures(sheet, run, place, record, last)
    forecasts = record.get("forecasts") or {}
    sheet.equal(place + "forecasts", sorted(forecasts), sorted(last) if run.config.get("data.horizon") else [])
    for split, shown in forecasts.items():
        check_forecast(sheet, f"{place}forecasts.{split}", shown, figures_of(run, split))
    measure, best = best_line(run)
    measured = (line for line in evaluations if line.get(measure) is not None)
    right = {line["split"]: (measure, line[measure], line["step"]) for line in measured}
    trained = [m for m in run.metrics if m["kind"] == "train" and m["loss"] is not None]
    if trained:
        right["train"] = ("loss", trained[-1]["loss"], trained[-1]["step"])
    if best is not None:
        right["validation"] = (measure, best[measure], best["step"])
    sheet.equal(place + "deciding", sorted(record["deciding"]), sorted(right))
    for split, figure in record["deciding"].items():
        name, value, step = right.get(split, (None, None, None))
        at = f"{place}deciding.{split}."
        sheet.equal(at + "measure", figure["measure"], name)
        sheet.equal(at + "value", figure["value"], value)
        sheet.equal(at + "step", figure["step"], step)


def check_kept_figures(sheet, run, place, record, last):
    """The result of each set: of the weights that are kept."""
    kept = run.summary["kept"]
    sheet.equal(place + "figures", sorted(record["figures"]), sorted(last))
    for split, figures in record["figures"].items():
        at, right = f"{place}figures.{split}.", kept_measures(run, split)
        sheet.equal(at + "step", figures["step"], kept["step"])
        sheet.check(at + "epoch", figures["epoch"], kept.get("epoch", run.summary["epochs"]), same_number)
        sheet.equal(at + "weights", figures["weights"].split(",")[0], kept["weights"])
        for name in sorted(set(right) | set(figures["values"])):
            sheet.number(f"{at}values.{name}", figures["values"].get(name), right.get(name), relative=1e-6)
