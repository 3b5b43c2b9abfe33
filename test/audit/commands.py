"""What commands say of a finished run: eval, compare, status."""

import csv
import io
import json
import pathlib
import re
import tempfile

import numpy as np

from .chosen import yes_samples
from .evaluations import check_evaluation, check_tables
from .log_data import check_setup_line, ignore_names
from .report import number_of, same_digits
from .said import check_rate_text, check_said, without_scale
from .summary import SMALLER, best_line, figures_of, length_of
from .texts import Text, taken


def check_eval(sheet, run):
    """`trainer eval`: its text and --json, by sets."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "eval.json"
        code, text, error = run.command("eval", "--model", run.directory, "--json", path)
        if code != 0:
            if run.config.get("data.validation") or run.config.get("data.test") or run.config.get("data.validation_share") or run.config.get("data.fold"):
                sheet.differ("eval", f"exit code {code}: {error.strip()[-200:]}", "an evaluation")
            return
        found = json.loads(path.read_text())
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
        check_eval_text(sheet, run, split, text, shown)
    first = re.search(r"^(?:validation|test): [\d,]+ samples", text, re.M)
    before = Text(sheet, "eval's text", text[: first.start()] if first else text)
    ignore_names(before, run)
    for line in before.lines():
        check_setup_line(sheet, run, line, again=False)


def check_eval_text(sheet, run, split, text, shown):
    place = f"eval's text: {split}"
    block = re.search(rf"^{split}: [\d,]+ samples.*?(?=^\w+: [\d,]+ samples|\Z)", text, re.M | re.S)
    if not block:
        sheet.differ(place, "(missing)", "a line")
        return
    block = Text(sheet, place, block[0])
    block.ignore(r"^(?:class|output)  .* f1  samples$")
    lines = list(block.lines())
    first = taken(re.fullmatch(rf"{split}: ([\d,]+) samples, (.*)", lines[0]))
    sheet.printed(place + ": samples", first[1], shown["samples"])
    check_said(sheet, place, without_scale(sheet, place, first[2], run), shown)
    if found := taken(re.search(r"^quantiles of ([\d,]+) records? crossed, and were sorted$", block, re.M)):
        sheet.check(place + ": records whose quantiles crossed", int(found[1].replace(",", "")), shown["samples"], lambda a, b: 0 < a <= b)
    if "confusion" in shown and len(shown["confusion"]) <= 30:
        begin = lines.index("confusion matrix (row: true class, column: predicted class)") + 1
        rows = [[int(word) for word in taken(re.fullmatch(r"(.*)", line))[1].split()] for line in lines[begin : begin + len(shown["confusion"])]]
        sheet.equal(place + ": confusion", rows, shown["confusion"])
    tables = [line for line in lines if re.search(r"  +[\d,]+$", line)]
    for row in shown.get("per_class", []) if len(shown.get("per_class", [])) <= 30 else []:
        check_row(sheet, place, tables, row.get("class", row.get("output")), [row[k] for k in ("precision", "recall", "f1", "samples")])
    for row in shown.get("reliability", []):
        check_row(sheet, place, tables, f"{row['from']:.3f} to {row['to']:.3f}", [row[k] for k in ("predicted", "observed", "samples")])
    if found := taken(re.search(r"with yes from a probability of (\S+) on, accuracy (\S+)", block)):
        threshold = float(run.metadata.get("threshold", run.config.get("eval.threshold", 0.5)))
        p, yes, weights = yes_samples(figures_of(run, split))
        sheet.digits(place + ": threshold", found[1], threshold)
        sheet.digits(place + ": accuracy at the threshold", found[2], float(np.average((p >= threshold) == yes, weights=weights)))


def check_row(sheet, place, lines, name, values):
    """A row has its name and these values, and no others."""
    row = next((line for line in lines if line.startswith(str(name) + " ")), None)
    if row is None:
        sheet.differ(f"{place}: {name}", "(no row)", values)
        return
    cells = taken(re.fullmatch(rf"({re.escape(str(name))} .*)", row))[1][len(str(name)) :].split()
    sheet.equal(f"{place}: {name}: cells", len(cells), len(values))
    for shown, right in zip(cells, values):
        sheet.printed(f"{place}: {name}", shown, right)


def last_shown(run):
    """The last evaluation: that of the summary; and what a known fault shows, the last line of metrics.jsonl."""
    right = run.summary.get("evaluation")
    lines = [m for m in run.metrics if m["kind"] == "evaluation" and right and m["split"] == right["split"]]
    return right, lines[-1] if lines else None


def best_shown(run):
    """Split, measure and line of the best evaluation; where none is chosen as the best, of the last one of the validation
    set, the test set being for no choice; without one of the test set; without evaluations the last training loss."""
    measure, best = best_line(run)
    if best is not None:
        return best["split"], measure, best
    for split in ("validation", "test"):
        lines = [m for m in run.metrics if m["kind"] == "evaluation" and m["split"] == split and m.get(measure) is not None]
        if lines:
            return split, measure, lines[-1]
    return "train", "loss", [m for m in run.metrics if m["kind"] == "train"][-1]


def check_compare(sheet, run):
    code, text, error = run.command("compare", run.directory, "--csv", "-")
    if code != 0:
        sheet.differ("compare", error.strip()[-200:], "a table")
        return
    row = next(csv.DictReader(io.StringIO(text)))
    right, line = last_shown(run)
    s = run.summary
    sheet.equal("compare: state", row["state"], "stopped early" if "early_stopping" in s else "done")
    sheet.printed("compare: steps", row["steps"], s["steps"])
    sheet.number("compare: seconds", float(row["seconds"]), s["seconds"])
    split, measure, best = best_shown(run)
    sheet.equal("compare: best_split", row["best_split"], split)
    sheet.equal("compare: best_measure", row["best_measure"], measure)
    sheet.number("compare: best_value", float(row["best_value"]), best[measure], relative=1e-9)
    sheet.number("compare: best_step", float(row["best_step"]), best["step"], relative=1e-9)
    known = {"run", "state", "reason", "steps", "seconds", "best_split", "best_measure", "best_value", "best_step"}
    for name, shown in row.items():
        found = re.fullmatch(r"(validation|test)_(\w+)", name)
        if not found:
            sheet.equal(f"compare: column {name} is known", name in known, True)
            continue
        split, measure = found.groups()
        lines = [m for m in run.metrics if m["kind"] == "evaluation" and m["split"] == split]
        own = right is not None and right["split"] == split
        fault = {"calibrated-last": line.get(measure)} if own and "calibration" in s and line else None
        sheet.number(f"compare: {name}", None if shown == "" else float(shown), (right if own else lines[-1]).get(measure), fault, relative=1e-9)
    if right is not None:
        lost = [k for k, v in right.items() if isinstance(v, float) and k not in ("epoch", "seconds") and f"{right['split']}_{k}" not in row]
        sheet.equal("compare: measures that are left out", lost, [])
    check_compare_text(sheet, run, row, right)


def cells_of(text):
    """Rows of a table whose columns stand two blanks apart at least."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


def check_compare_text(sheet, run, row, right):
    """The table as people read it has the figures of the CSV, which are checked by themselves, with fewer digits."""
    text = run.command("compare", run.directory)[1]
    table = cells_of(text[text.find("run ") :])
    sheet.equal("compare's text: rows", [len(table), len(table[0])], [2, len(table[1]) if len(table) > 1 else 0])
    split = right["split"] if right else ""
    values = {f"best {row['best_split']} {row['best_measure']}": row["best_value"], "at step": row["best_step"], "steps": row["steps"]}
    values.update({f"last {name.removeprefix(split + '_')}": value for name, value in row.items() if split and name.startswith(split + "_")})
    for name, shown in zip(table[0], table[-1]):
        if name in values:
            accept = (lambda a, b: number_of(a) == float(b)) if name.endswith(("step", "steps")) else (lambda a, b: same_digits(a, float(b or "nan"), 5))
            sheet.check(f"compare's text: {name}", shown, values.pop(name), accept)
        else:
            sheet.equal(f"compare's text: column {name} is known", name in ("run", "state"), True)
    sheet.equal("compare's text: columns that are missing", [name for name, value in values.items() if value], [])


def check_status(sheet, run):
    """What `status` shows of the run: for programs, and in the lines of its view."""
    code, text, error = run.command("status", run.directory, "--json", "-")
    view = run.command("status", run.directory)[1].splitlines()
    if code != 0 or len(view) < 3:
        sheet.differ("status", (text + error).strip()[-200:], "what can be read")
        return
    shown, s, length = json.loads(text)[0], run.summary, length_of(run)
    sheet.document("status", shown)
    lines = [m for m in run.metrics if m["kind"] == "evaluation"]
    split = "validation" if any(m["split"] == "validation" for m in lines) else "test" if lines else "train"
    of_split = [m for m in run.metrics if m.get("split", m["kind"]) == split]
    measure = run.config.get("train.early_stopping_metric", "loss")
    measure = measure if any(measure in m for m in of_split) else "loss"
    values = [(m[measure], m["step"]) for m in of_split if m.get(measure) is not None]
    best = min(values, key=lambda v: (v[0] if measure in SMALLER else -v[0], v[1])) if values else (None, None)
    state = "stopped early" if "early_stopping" in s else "done"
    right = {"state": state, "exit_code": 0, "steps": s["steps"], "planned_steps": length.steps, "samples_seen": s["samples_seen"], "epochs": s["epochs"], "seconds": s["seconds"], "seconds_left": None, "split": split, "measure": measure, "last": values[-1][0] if values else None, "best": best[0], "best_step": best[1]}  # fmt: skip
    for name, value in right.items():
        sheet.equal(f"status: {name}", shown[name], value)
    sheet.equal("status: kept.step", shown["kept"]["step"], s["kept"]["step"])
    head = re.search(rf"  {state}  step ([\d,]+)/([\d,]+) \((\d+) %\)(?:  ([\d,]+) samples/s  )?", view[0])  # 80 columns
    if not head:
        sheet.differ("status's text", view[0], "state, steps and rate")
        return
    sheet.equal("status's text: steps", head[1], f"{s['steps']:,}")
    sheet.equal("status's text: planned", head[2], f"{length.steps:,}")
    sheet.printed("status's text: share", head[3], 100 * s["steps"] / length.steps)
    if head[4]:
        check_rate_text(sheet, "status's text:", head[4], s["samples_seen"] / s["seconds"])
    found = re.fullmatch(r"(\w+) (\w+) (\S+), best (\S+) at step ([\d,]+)", view[2])
    if not found:
        sheet.differ("status's text", view[2], "the measure that decides")
        return
    sheet.equal("status's text: measure", (found[1], found[2]), (split, measure))
    sheet.digits("status's text: last", found[3], right["last"])
    sheet.digits("status's text: best", found[4], right["best"])
    sheet.equal("status's text: step of the best", found[5], f"{best[1]:,}")
