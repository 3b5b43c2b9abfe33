"""What commands say of a finished run: eval, compare, status."""

import csv
import io
import json
import re

from .evaluations import check_evaluation, check_tables
from .summary import best_line, figures_of, kept_measures, last_line, length_of


def check_eval(sheet, run):
    code, text, error = run.command("eval", "--model", run.directory, "--json", "-")
    if code != 0:
        if run.has_validation() or run.has_test():
            sheet.differ("eval", f"exit code {code}: {error.strip()[-200:]}", "an evaluation")
        return
    found = json.loads(text)
    sheet.document("eval", found)
    for split, shown in found.items():
        if run.sets[split] is None:
            sheet.rename(f"eval: {split}.", "made-up data: eval: ")
            continue
        place = f"eval: {split}"
        figures = figures_of(run, split)
        sheet.check(f"{place}.seconds", shown["seconds"], 0, lambda a, b: a >= 0)
        check_evaluation(sheet, place, shown, figures, run.config)
        check_tables(sheet, place, shown, figures)
        if crossed := shown.get("crossed"):
            sheet.check(place + ".crossed", crossed, len(figures.targets), lambda a, b: 0 < a <= b)
        rule = run.metadata.get("threshold", run.config.get("eval.threshold"))
        sheet.equal(place + ": has a threshold", "threshold" in shown, rule not in (None, ""))
        if "threshold" in shown:
            sheet.same(place + ".threshold", shown["threshold"], figures.answers_at(rule, shown["threshold"]))


def best_shown(run):
    """Split, measure and line of the best evaluation; where none is chosen as the best, of the last one of the
    validation set, the test set being for no choice; without one of the test set; without evaluations the last training
    loss."""
    measure, best = best_line(run)
    if best is not None:
        return best["split"], measure, best
    for split in ("validation", "test"):
        if lines := run.evaluations(split, measure=measure):
            return split, measure, lines[-1]
    return "train", "loss", [m for m in run.metrics if m["kind"] == "train"][-1]


def check_compare(sheet, run):
    code, text, error = run.command("compare", run.directory, "--csv", "-")
    if code != 0:
        sheet.differ("compare", error.strip()[-200:], "a table")
        return
    row = next(csv.DictReader(io.StringIO(text)))
    s = run.summary
    sheet.equal("compare: state", row["state"], "stopped early" if "early_stopping" in s else "done")
    sheet.equal("compare: steps", int(row["steps"]), s["steps"])
    sheet.number("compare: seconds", float(row["seconds"]), s["seconds"])
    split, measure, best = best_shown(run)
    sheet.equal("compare: best_split", row["best_split"], split)
    sheet.equal("compare: best_measure", row["best_measure"], measure)
    sheet.number("compare: best_value", float(row["best_value"]), best[measure], relative=1e-9)
    sheet.number("compare: best_step", float(row["best_step"]), best["step"], relative=1e-9)
    known = "run state reason steps seconds best_split best_measure best_value best_step commit ranks cpu weights"
    for name, shown in row.items():
        found = re.fullmatch(r"(last_|)(validation|test)_([\w.]+)", name)
        if not found:
            sheet.equal(f"compare: column {name} is known", name in known.split(), True)
            continue
        last, split, measure = found.groups()
        of = last_line(run, split) if last else kept_measures(run, split)
        sheet.number(f"compare: {name}", None if shown == "" else float(shown), of.get(measure))
    wanted = [f"{split}_{name}" for split in ("validation", "test") for name in kept_measures(run, split) or {}]
    wanted += [f"last_{name}" for name in wanted
               if name.startswith("validation_") and "last_evaluation" in s and "threshold." not in name]
    sheet.equal("compare: measures that are left out", [name for name in wanted if name not in row], [])


def check_status(sheet, run):
    """What `status` shows of the run."""
    code, text, error = run.command("status", run.directory, "--json", "-")
    if code != 0:
        sheet.differ("status", (text + error).strip()[-200:], "what can be read")
        return
    shown, s, length = json.loads(text)[0], run.summary, length_of(run)
    sheet.document("status", shown)
    split, measure, best = best_shown(run)
    kept, last = (kept_measures(run, split), last_line(run, split)) if split != "train" else (best, best)
    state = "stopped early" if "early_stopping" in s else "done"
    right = {name: s[name] for name in ("steps", "samples_seen", "epochs", "seconds")}
    right |= {"state": state, "exit_code": 0, "planned_steps": length.steps, "seconds_left": None, "split": split}
    right |= {"measure": measure, "last": last.get(measure), "best": best[measure], "best_step": best["step"]}
    for name, value in right.items():
        sheet.equal(f"status: {name}", shown[name], value)
    sheet.number("status: value", shown["value"], kept.get(measure))
    sheet.equal("status: kept.step", shown["kept"]["step"], s["kept"]["step"])
