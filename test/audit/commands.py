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
from .positive import OF_POSITIVE, positive_of, quoted
from .report import number_of, same_digits
from .said import check_rate_text, check_said, without_scale
from .summary import SMALLER, best_line, figures_of, kept_measures, last_line, length_of
from .texts import Text, taken
from .windows import check_lines


def check_eval(sheet, run):
    """`trainer eval`: its text and --json, by sets."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "eval.json"
        code, text, error = run.command("eval", "--model", run.directory, "--json", path)
        if code != 0:
            if run.config.get("data.validation") or run.has_test() or run.config.get("data.validation_share") or run.config.get("data.fold"):
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
    first = taken(re.fullmatch(rf"{split}: ([\d,]+) samples(?:, ([\d,]+) positions)?, (.*)", lines[0]))
    sheet.printed(place + ": samples", first[1], shown["samples"])
    if first[2] or "positions" in shown:
        sheet.printed(place + ": positions", first[2] or "(missing)", shown.get("positions"))
    check_said(sheet, place, without_scale(sheet, place, first[3], run), shown)
    check_lines(sheet, run, lines)
    if found := taken(re.search(r"^quantiles of ([\d,]+) (?:record|position)s? crossed, and were sorted$", block, re.M)):
        sheet.check(place + ": records whose quantiles crossed", int(found[1].replace(",", "")), shown.get("positions", shown["samples"]), lambda a, b: 0 < a <= b)
    if "confusion" in shown and len(shown["confusion"]) <= 30:
        begin = lines.index("confusion matrix (row: true class, column: predicted class)") + 1
        rows = [[int(word) for word in taken(re.fullmatch(r"(.*)", line))[1].split()] for line in lines[begin : begin + len(shown["confusion"])]]
        sheet.equal(place + ": confusion", rows, shown["confusion"])
    tables = [line for line in lines if re.search(r"  +[\d,]+$", line)]
    for row in shown.get("per_class", []) if len(shown.get("per_class", [])) <= 30 else []:
        check_row(sheet, place, tables, row.get("class", row.get("output")), [row[k] for k in ("precision", "recall", "f1", "samples")])
    for row in shown.get("reliability", []):
        check_row(sheet, place, tables, f"{row['from']:.3f} to {row['to']:.3f}", [row[k] for k in ("predicted", "observed", "samples")])
    block.ignore(r"^probability of '.*samples$")
    positive = re.escape(quoted(positive_of(run) or ""))
    if found := taken(re.search(rf"with yes \(({positive})\) from a probability of (\S+) on, accuracy (\S+)", block)):
        threshold = float(run.metadata.get("threshold", run.config.get("eval.threshold", 0.5)))
        p, yes, weights = yes_samples(figures_of(run, split))
        sheet.digits(place + ": threshold", found[2], threshold)
        sheet.digits(place + ": accuracy at the threshold", found[3], float(np.average((p >= threshold) == yes, weights=weights)))


def check_row(sheet, place, lines, name, values):
    """A row has its name and these values, and no others."""
    # A token of a text may be a blank, with which other rows begin, too.
    row = next((line for line in lines if line.startswith(str(name) + " ") and (str(name).strip() or len(line.split()) == len(values))), None)
    if row is None:
        sheet.differ(f"{place}: {name}", "(no row)", values)
        return
    cells = taken(re.fullmatch(rf"({re.escape(str(name))} .*)", row))[1][len(str(name)) :].split()
    sheet.equal(f"{place}: {name}: cells", len(cells), len(values))
    for shown, right in zip(cells, values):
        sheet.printed(f"{place}: {name}", shown, right)


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
    s, right = run.summary, run.summary.get("evaluation")
    sheet.equal("compare: state", row["state"], "stopped early" if "early_stopping" in s else "done")
    sheet.printed("compare: steps", row["steps"], s["steps"])
    sheet.number("compare: seconds", float(row["seconds"]), s["seconds"])
    split, measure, best = best_shown(run)
    sheet.equal("compare: best_split", row["best_split"], split)
    sheet.equal("compare: best_measure", row["best_measure"], measure)
    sheet.number("compare: best_value", float(row["best_value"]), best[measure], relative=1e-9)
    sheet.number("compare: best_step", float(row["best_step"]), best["step"], relative=1e-9)
    known = {"run", "state", "reason", "steps", "seconds", "best_split", "best_measure", "best_value", "best_step", "commit", "ranks", "cpu", "weights"}
    for name, shown in row.items():
        found = re.fullmatch(r"(last_|)(validation|test)_(\w+)", name)
        if not found:
            sheet.equal(f"compare: column {name} is known", name in known, True)
            continue
        last, split, measure = found.groups()
        of = last_line(run, split) if last else kept_measures(run, split)
        sheet.number(f"compare: {name}", None if shown == "" else float(shown), of.get(measure))
    wanted = [f"{split}_{name}" for split in ("validation", "test") for name in kept_measures(run, split) or {}]
    wanted += [f"last_{name}" for name in wanted if name.startswith("validation_") and "last_evaluation" in s]
    sheet.equal("compare: measures that are left out", [name for name in wanted if name not in row], [])
    check_compare_text(sheet, run, row, right)


def table_of(text):
    """Heads and cells of the row of one run. Heads stand above the cells, in several lines each."""
    *heads, cells = text.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", cells)]
    ends = starts[1:] + [None]
    words = [" ".join(part for head in heads if (part := head[a:b].strip())) for a, b in zip(starts, ends)]
    return words, [cells[a:b].strip() for a, b in zip(starts, ends)]


def check_compare_text(sheet, run, row, right):
    """The table as people read it has the figures of the CSV, which are checked by themselves, with fewer digits."""
    heads, cells = table_of(run.command("compare", run.directory, "--all")[1])
    split = right["split"] if right else ""
    positive = positive_of(run)

    def titled(measure):
        return f"{measure} of {quoted(positive)}" if positive is not None and measure in OF_POSITIVE else measure

    deciding = titled(row["best_measure"])
    values = {f"best {row['best_split']} {deciding}": row["best_value"], "at step": row["best_step"], "steps": row["steps"]}
    values.update({f"{split} {titled(name.removeprefix(split + '_'))}": value for name, value in row.items() if split and name.startswith(split + "_")})
    values.update({f"last {row['best_split']} {deciding}": value for name, value in row.items() if name == f"last_{row['best_split']}_{row['best_measure']}"})
    if split == row["best_split"] and row[f"{split}_{row['best_measure']}"] == row["best_value"]:
        values.pop(f"{split} {deciding}")  # it stands there as the best
    for name, shown in zip(heads, cells):
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
    if code != 0 or len(view) < 4:
        sheet.differ("status", (text + error).strip()[-200:], "what can be read")
        return
    shown, s, length = json.loads(text)[0], run.summary, length_of(run)
    sheet.document("status", shown)
    split, measure, best = best_shown(run)
    kept, last = (kept_measures(run, split), last_line(run, split)) if split != "train" else (best, best)
    state = "stopped early" if "early_stopping" in s else "done"
    right = {"state": state, "exit_code": 0, "steps": s["steps"], "planned_steps": length.steps, "samples_seen": s["samples_seen"], "epochs": s["epochs"], "seconds": s["seconds"], "seconds_left": None, "split": split, "measure": measure, "last": last.get(measure), "best": best[measure], "best_step": best["step"]}  # fmt: skip
    for name, value in right.items():
        sheet.equal(f"status: {name}", shown[name], value)
    sheet.number("status: value", shown["value"], kept.get(measure))
    sheet.equal("status: kept.step", shown["kept"]["step"], s["kept"]["step"])
    sheet.check("status's text: state", view[0], state, lambda a, b: re.search(rf"  {b}(?::|$)", a) is not None)
    head = re.match(r"step ([\d,]+)/([\d,]+) \((\d+) %\)(?:  ([\d,.]+) samples/s  )?", view[1])
    if not head:
        sheet.differ("status's text", view[1], "steps and rate")
        return
    sheet.equal("status's text: steps", head[1], f"{s['steps']:,}")
    sheet.equal("status's text: planned", head[2], f"{length.steps:,}")
    sheet.printed("status's text: share", head[3], 100 * s["steps"] / length.steps)
    if head[4]:
        check_rate_text(sheet, "status's text:", head[4], s["samples_seen"] / s["seconds"])
    positive = re.escape(quoted(positive_of(run) or ""))
    found = re.fullmatch(rf"(\w+) (\w+)(?: of {positive})? (\S+) at step ([\d,]+)( \(best(?:: (\S+))?\))?(?:; last: (\S+))?", view[3])
    if not found:
        sheet.differ("status's text", view[3], "the measure that decides")
        return
    sheet.equal("status's text: measure", (found[1], found[2]), (split, measure))
    sheet.digits("status's text: value", found[3], kept.get(measure))
    sheet.equal("status's text: step of the value", found[4], f"{best['step']:,}")
    sheet.equal("status's text: the best", found[5] is not None, s["kept"]["weights"] == "best")
    if found[6] or found[5] and shown["value"] != shown["best"]:
        sheet.digits("status's text: value of the best", found[6] or "nan", right["best"])
    if found[7] or "last_evaluation" in s:
        sheet.digits("status's text: last", found[7] or "nan", right["last"])
