"""What `trainer sweep` and `trainer cv` print: how each trial goes, and the table at the end."""

import re

from .said import human_seconds
from .texts import Text, taken

NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?|-?inf|-?nan|undefined)"


def check_console(sheet, sweep, console):
    """`sweep`: the content of sweep.json, whose figures are checked by themselves."""
    lines = [line for line in console.splitlines() if not re.match(r"\d{4}-\d\d-\d\d ", line)]
    text = Text(sheet, "console", "\n".join(lines))
    text.ignore(r"^written: .*|use it: .*|^the sweep goes on: .*|, in \S+$|^(?:\S+: rank \d+: )?(?:warning|error): .*|^a failed trial .*|^there is no validation set, .*|^run  .*|validation f1|^\S+ done$")
    trials = {trial["run"]: trial for trial in sweep["trials"]}
    if found := taken(re.search(r"^([\d,]+) (?:folds|trials)\b", text, re.M)):
        sheet.printed("console: trials", found[1], sum("data.validation" in trial["settings"] or "trial" in name for name, trial in trials.items() if name != "refit"))
    for found in re.finditer(r"^\S+.*?, (\d+) at a time on (\d+) ranks? each", text, re.M):
        taken(found)
        sheet.check("console: at a time, ranks each", [int(found[1]), int(found[2])], "1 or more", lambda a, b: min(a) >= 1)
    for line in text.lines():
        check_trial_line(sheet, trials, line, sweep["measure"])
    check_table(sheet, sweep, trials, text)
    if found := taken(re.search(rf"^best: (\S+), validation (\w+)(?: of '.*?')? {NUMBER} after epoch (\S+);", text, re.M)):
        best = trials[found[1]]["validation"]
        sheet.equal("console: best", found[1], sweep["best"])
        sheet.equal("console: best measure", found[2], sweep["measure"])
        sheet.digits("console: best value", found[3], best["value"], digits=6)
        sheet.printed("console: best epoch", found[4], best["epoch"])


def check_trial_line(sheet, trials, line, measure):
    """A trial that waits, as others are at the same step, has a value of an earlier rung."""
    found = re.match(rf"(\S+) (begins|resumes) on ranks? [\d to]+: (.*)|(\S+) (done|waits|dropped): validation (\w+) {NUMBER} after epoch (\S+)", line)
    if not found or (found[1] or found[4]) not in trials:
        return
    taken(re.match(r"(.*)", line))
    name = found[1] or found[4]
    trial, place = trials[name], f"console: {name} {found[2] or found[5]}"
    if found[1]:
        settings = ", ".join(f"{key} {value}" for key, value in trial["settings"].items())
        sheet.equal(place, found[3], settings)
        return
    sheet.equal(place + ": measure", found[6], measure)
    if found[5] == "done":
        sheet.printed(place, found[7], trial["validation"]["value"])
        sheet.printed(place + ": epoch", found[8], trial["validation"]["epoch"])
    else:
        sheet.check(place, found[7], trial.get("rungs", []), lambda a, b: any(f"{each:.4f}" == a for each in b if each is not None))


def cells_of(line):
    return [(found[0], found.end()) for found in re.finditer(r"\S+(?: \S+)*", line)]


def check_table(sheet, sweep, trials, text):
    lines = list(text.lines())
    begin = next((i for i, line in enumerate(lines) if re.match(r"run  +\S", line)), None)
    if begin is None:
        sheet.differ("console: table", "(missing)", "a table")
        return
    heads = {end: name for name, end in cells_of(lines[begin])}
    order = []
    for line in lines[begin + 1 :]:
        (name, _), *cells = cells_of(line) or [("", 0)]
        if name not in trials and name not in ("mean", "standard deviation"):
            break
        taken(re.match(r"(.*)", line))
        row = {heads.get(end, "?"): cell for cell, end in cells}
        order.append(name)
        check_row(sheet, sweep, trials, name, row)
    sheet.equal("console: rows", order, [trial["run"] for trial in sweep["trials"] if trial["run"] != "refit"] + (["mean", "standard deviation"] if "mean" in sweep else []))


def check_row(sheet, sweep, trials, name, row):
    trial, v = trials.get(name), (trials.get(name) or {}).get("validation") or {}
    measures = {"mean": sweep.get("mean"), "standard deviation": sweep.get("standard_deviation")}.get(name) or v.get("evaluation", {})
    for head, shown in row.items():
        place = f"console: {name}: {head}"
        if head.startswith("validation "):
            measure = re.sub(r" of '.*'$", "", head.removeprefix("validation "))
            right = v["value"] if measure == sweep["measure"] and v else measures.get(measure)
            if folds := re.fullmatch(r"(.*) \((\d+) of (\d+) folds\)", shown):
                values = [(t["validation"] or {}).get("evaluation", {}).get(measure) for n, t in trials.items() if n != "refit"]
                sheet.equal(place + ": folds", (int(folds[2]), int(folds[3])), (sum(value is not None for value in values), len(values)))
                shown = folds[1]
            sheet.printed(place, shown, right)
        elif head.startswith("test "):
            sheet.printed(place, shown, (trial.get("test") or {}).get(re.sub(r" of '.*'$", "", head.removeprefix("test "))))
        elif head == "epoch":
            sheet.printed(place, shown, v["epoch"])
        elif head == "records":
            sheet.printed(place, shown, v["evaluation"]["samples"])
        elif head == "steps":
            sheet.printed(place, shown, trial["steps"])
        elif head == "time":
            sheet.equal(place, shown, human_seconds(trial["seconds"]))
        elif head == "state":
            sheet.equal(place, shown, trial["state"])
        else:
            sheet.equal(place, shown, trial["settings"].get(head, "(no such setting)") if trial else "")
