"""The log of a run, whose lines the console shows, too."""

import re

from .log_data import check_setup_line, first_averaged, ignore_names
from .positive import positive_of, quoted, without_class
from .said import check_rate_text, check_said, check_time_text, human_bytes, without_scale
from .summary import best_line, fallen, length_of
from .texts import Line, Text, taken

GOES_ON = "goes on from "


def told_lines(run):
    """Without their times; of warnings with that word before them."""
    for line in run.log:
        found = re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ (\w+) (.*)", line)
        yield line if not found else found[2] if found[1] in ("info", "debug") else f"{found[1]}: {found[2]}"


def check_log(sheet, run):
    text = Text(sheet, "log.txt", "\n".join(told_lines(run)))
    text.ignore(r"^written: .*|^goes on from .*|ranks are (?:not )?bound .*|\d+ cores? a rank|precision (?:fp32|bf16)|95th|^rank \d+ serves|no better \w+")
    ignore_names(text, run)
    plan = run.text("plan.txt").splitlines()
    evaluations = [m for m in run.metrics if m["kind"] == "evaluation"]
    steps = {m["step"]: m for m in run.metrics if m["kind"] == "train"}
    handlers = {
        "done: ": check_done,
        "kept: ": check_kept_line,
        "calibrated: ": check_calibrated,
        "threshold: ": check_threshold_line,
        "checkpoint of step ": check_checkpoint,
        "stopped early after step ": check_stopped,
        "slow: rank ": check_slow,
        "this machine is busy ": check_busy,
        "staleness: ": check_staleness,
        "dropped: ": check_dropped,
        "worker ": check_worker,
        "the learning rate falls ": check_fall,
        "stopped after ": check_break,
        "sample: ": check_sample,
    }
    whole = list(text.lines())
    # Lines after a checkpoint, or after a start that came to nothing, are made twice.
    again = sum(line.startswith(("plan: ", GOES_ON)) for line in whole) > 1
    shown = [line for line in whole if re.match(r"epoch [\d.]+  (validation|test) loss ", line)]
    if not again:
        sheet.equal("log.txt: evaluations", len(shown), len(evaluations))
    numbers = {id(line): number for number, line in enumerate(shown)}
    lost = lost_lines(whole)
    for line in whole:
        if line.begin in lost:
            taken(re.fullmatch(r"(.*)", line))
            continue
        handler = next((handler for begin, handler in handlers.items() if line.startswith(begin)), None)
        if handler:
            handler(sheet, run, line)
        elif id(line) in numbers:
            check_evaluation_line(sheet, run, f"log.txt: evaluation {numbers[id(line)]}", line, evaluations, None if again else numbers[id(line)])
        elif found := re.match(r"step ([\d,]+)/([\d,]+)  epoch", line):
            check_step_line(sheet, f"log.txt: step {found[1]}", line, steps.get(int(found[1].replace(",", ""))), length_of(run), again)
        elif found := taken(re.fullmatch(r"(\w+) set: quantiles of ([\d,]+) (?:record|position)s? crossed, and were sorted", line)):
            sheet.check("log.txt: records whose quantiles crossed", int(found[2].replace(",", "")), len(run.sets[found[1]].counted()) if run.sets[found[1]] else 0, lambda a, b: 0 < a <= (b or a))
        elif line in plan:
            taken(re.fullmatch(r"(.*)", line))
        else:
            check_setup_line(sheet, run, line, again)


def check_sample(sheet, run, line):
    """The beginning of a text that the model has written."""
    taken(re.fullmatch(r"(.*)", line))
    shown = line.removeprefix("sample: ").partition("... (")[0]
    samples = [m["sample"].replace("\n", " ") for m in run.metrics if "sample" in m]
    sheet.check("log.txt: sample", shown, samples, lambda a, b: any(each.startswith(a) for each in b))


def check_told(sheet, run, console):
    """The last lines of the console stand in the log, too, whose figures are checked."""
    log = set(told_lines(run))
    ends = ("done: ", "kept: ", "calibrated: ", "threshold: ", "stopped early ", "slow: ", "this machine is busy ", "staleness: ", "dropped: ", "worker ")
    for line in console.splitlines():
        if line.startswith(ends):
            sheet.equal(f"console: {line[:30]}", line in log, True)


def lost_lines(whole):
    """Where lines begin that tell of steps after the checkpoint that the last start went on from: they are made again, and
    where an exchange loses bits, or workers are as fast as they are, with other figures."""
    starts = [line for line in whole if line.startswith(GOES_ON) or line.endswith(": it starts anew")]
    if not starts:
        return set()
    found = re.search(r": ([\d,]+) steps?, epoch ([\d.]+),", starts[-1])
    steps, epochs = (int(found[1].replace(",", "")), float(found[2])) if found else (-1, -1.0)
    told = [(re.match(r"(?:step ([\d,]+)/[\d,]+  )?epoch ([\d.]+)  ", line), line) for line in whole if line.begin < starts[-1].begin]
    return {line.begin for at, line in told if at and (int(at[1].replace(",", "")) > steps if at[1] else float(at[2]) > epochs)}


def check_evaluation_line(sheet, run, place, text, evaluations, number):
    """`number`: of the evaluation; None in a run that was resumed, where it is one of that epoch and set."""
    found = taken(re.fullmatch(r"epoch ([\d.]+)  (\w+) (loss .*)  \(([\d,]+) samples, (?:([\d,]+) positions, )?(.*)\)", text))
    if not found:
        sheet.differ(place, text, "a line that can be read")
        return
    if number is None:
        line = next((e for e in evaluations if f"{e['epoch']:.2f}" == found[1] and e["split"] == found[2]), None)
    else:
        line = evaluations[number] if number < len(evaluations) else None
    if line is None:
        return sheet.differ(place, text, "an evaluation of metrics.jsonl")
    sheet.printed(place + ": epoch", found[1], line["epoch"])
    sheet.equal(place + ": split", found[2], line["split"])
    sheet.printed(place + ": samples", found[4], line["samples"])
    if found[5] or "positions" in line:
        sheet.printed(place + ": positions", found[5] or "(missing)", line.get("positions"))
    if number is not None:
        check_time_text(sheet, place + ": seconds", found[6], line["seconds"])
    check_said(sheet, place, without_scale(sheet, place, found[3], run), line)


def check_step_line(sheet, place, text, line, length, again):
    """`again`: steps after a checkpoint may be made twice, of which metrics.jsonl has the later one."""
    found = taken(re.fullmatch(r"step ([\d,]+)/([\d,]+)  epoch ([\d.]+)  (loss .*?)  lr (\S+)  ([\d,.]+) samples/s(?:  (.*) left)?", text))  # a forecast
    if not found or line is None:
        sheet.differ(place, text, "a line that can be read, of a step of metrics.jsonl")
        return
    sheet.printed(place + ": steps", found[2], length.steps)
    sheet.printed(place + ": epoch", found[3], line["epoch"])
    check_said(sheet, place, found[4], {key: line[key] for key in ("loss", "accuracy") if key in line})
    sheet.digits(place + ": lr", found[5], line["lr"])
    if not again:
        check_rate_text(sheet, place, found[6], line["samples_per_second"])


def check_done(sheet, run, text):
    """The summary in one line."""
    s, place = run.summary, "log.txt: done"
    shares = r"data ([\d.]+) %, compute (-?[\d.]+) %, communication ([\d.]+) %(?: \(hidden: (\d+) % of it\))?, waiting ([\d.]+) %(?:, idle for other stages ([\d.]+) %)?"
    mishaps = r"(?: \(([\d,]+) left out\))?(?: \(([\d,]+) with a single value in batch norm\))?(?: \(([\d,]+) with replicas made equal\))?"
    found = taken(re.fullmatch(r"done: (?:(\w+) (loss .*?); )?([\d,]+) steps?" + mishaps + r", ([\d,]+) samples? in (.*?) \(([\d,.]+) samples/s\); time: " + shares, text))
    if not found:
        sheet.differ(place, text, "a line that can be read")
        return
    if e := s.get("evaluation"):
        sheet.equal(place + ": split", found[1], e["split"])
        check_said(sheet, place, without_scale(sheet, place, found[2] or "", run), {k: v for k, v in e.items() if k not in ("top_k", "top_k_accuracy")})
    sheet.printed(place + ": steps", found[3], s["steps"])
    for shown, name in zip(found.groups()[3:6], ("skipped_steps", "single_value_steps", "desync_repairs")):
        sheet.equal(f"{place}: {name}", shown and int(shown.replace(",", "")), s.get(name))
    sheet.printed(place + ": samples", found[7], s["samples_seen"])
    check_time_text(sheet, place + ": seconds", found[8], s["seconds"])
    check_rate_text(sheet, place, found[9], s["samples_per_second"])
    for shown, name in zip(found.groups()[9:], ("data", "compute", "communication", "hidden", "waiting", "idle")):
        if shown is not None:
            sheet.printed(f"{place}: {name}", shown, 100 * s["time"][name])


def same_line(line, text):
    """What is left of a line once a part is checked: its figures are taken of what it was."""
    if text == line or isinstance(text, Line) or not isinstance(line, Line):
        return text
    for found in re.finditer(r"\d(?:[\d.,]*\d)?", line):
        line.text.free[line.begin + found.start() : line.begin + found.end()] = bytes(found.end() - found.start())
    return text


def check_kept_line(sheet, run, text):
    kept, place = run.summary["kept"], "log.txt: kept"
    if average := taken(re.search(r"\(train\.ema (\S+)\)", text)):
        sheet.digits(place + ": train.ema", average[1], run.config["train.ema"])
    if average := taken(re.search(r"from step ([\d,]+) on \(train\.swa_from\)", text)):
        sheet.printed(place + ": first step of the average", average[1], first_averaged(run))
    text = same_line(text, without_class(sheet, place, text, [kept.get("measure")], positive_of(run)))
    if found := taken(re.match(r"kept: .* of step ([\d,]+) \(epoch ([\d.]+)\), with the best (\S+) of the validation set, (\S+?)(?:;|$)", text)):
        sheet.printed(place + ": step", found[1], kept["step"])
        sheet.printed(place + ": epoch", found[2], kept.get("epoch"))
        sheet.equal(place + ": measure", found[3], kept.get("measure"))
        sheet.digits(place + ": value", found[4], kept.get("value"))
    if last := taken(re.search(r"; last: (.*)$", text)):
        check_said(sheet, place + ": last", without_scale(sheet, place + ": last", last[1], run), {k: v for k, v in run.summary.get("last_evaluation", {}).items() if k not in ("top_k", "top_k_accuracy")})


def check_calibrated(sheet, run, text):
    c, place = run.summary.get("calibration", {}), "log.txt: calibrated"
    taken(re.fullmatch("(.*)", text))
    numbers = re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text)
    names = ["temperature", "log_loss_before", "log_loss", "ece_before", "ece"]
    sheet.equal(place + ": figures", len(numbers), len(names))
    sheet.equal(place + ": chose the weights, too", "chose the weights" in text, c.get("chose_weights"))
    for name, shown in zip(names, numbers):
        sheet.digits(f"{place}: {name}", shown, c.get(name))


def check_threshold_line(sheet, run, text):
    t, place = run.summary.get("threshold", {}), "log.txt: threshold"
    text = same_line(text, without_class(sheet, place, text, [t.get("measure")], positive_of(run)))
    if positive := positive_of(run):
        sheet.equal(place + ": class", f" says yes ({quoted(positive)}) from " in text, True)
        text = same_line(text, text.replace(f" ({quoted(positive)})", "", 1))
    if found := taken(re.match(r"threshold: the model says yes from a probability of (\S+) on(?:, where the (\S+) of the validation set is largest, (\S+))?", text)):
        sheet.digits(place + ": probability", found[1], t.get("probability"))
        if found[2]:
            sheet.equal(place + ": measure", found[2], t.get("measure"))
            sheet.digits(place + ": value", found[3], t.get("value"))


def check_checkpoint(sheet, run, text):
    found = taken(re.match(r"checkpoint of step ([\d,]+): (.*?) in ", text))
    path = run.directory / "checkpoints" / f"step-{int(found[1].replace(',', '')):09d}" if found else None
    if found and path.exists():
        size = sum(f.stat().st_size for f in path.iterdir())
        sheet.equal(f"log.txt: checkpoint of step {found[1]}", found[2], human_bytes(size))


def check_stopped(sheet, run, text):
    found = taken(re.match(r"stopped early after step ([\d,]+): .*", text))
    sheet.printed("log.txt: stopped early", found[1], run.summary["steps"])
    if patience := taken(re.search(r"of the validation set for (.*?);", text)):
        sheet.equal("log.txt: stopped early: patience", patience[1], run.config["train.early_stopping"])
    if best := taken(re.search(r"the best was (\S+) after step ([\d,]+)", text)):
        measure, line = best_line(run, kept=False)
        sheet.check("log.txt: stopped early: best", best[1], line and line[measure], lambda a, b: b is not None and abs(float(a) - b) <= 1e-5 * abs(b) + 1e-9)
        sheet.printed("log.txt: stopped early: step of the best", best[2], line and line["step"])


def check_slow(sheet, run, text):
    found = taken(re.fullmatch(r"slow: rank (\d+) \(host .*?\), (\w+): slower than others in ([\d,]+) of ([\d,]+) windows; its data and compute take (\S+) times those of the fastest rank and (\S+) times its own best; waiting for it costs (\S+) % of the time", text))
    ranks = run.summary["ranks"]
    i, place = int(found[1]), f"log.txt: slow rank {found[1]}"
    sheet.equal(place, found[2], ranks["slow"][i])
    sheet.check(place + ": worth a line", [ranks["seconds"], ranks["to_best"][i], ranks.get("load", 0) - 1.1 * ranks.get("cores", 1)], "30 s, 1.1 times the fastest, an idle machine", lambda a, b: a[0] >= 30 and a[1] >= 1.1 - 1e-6 and a[2] <= 0.5)
    sheet.printed(place + ": slow windows", found[3], ranks["slow_windows"][i])
    sheet.printed(place + ": windows", found[4], ranks["windows"])
    sheet.printed(place + ": to the fastest", found[5], ranks["to_best"][i])
    sheet.printed(place + ": to its best", found[6], ranks["to_own"][i])
    sheet.check(place + ": cost", float(found[7]), 100 * ranks["delay"][i] / ranks["seconds"], lambda a, b: abs(a - b) <= 0.0501 + 1e-4 / ranks["seconds"])


def check_busy(sheet, run, text):
    found = taken(re.fullmatch(r"this machine is busy \(load (\d+) on (\d+) cores?\): all ranks are slower than their own best", text))
    ranks = run.summary["ranks"]
    sheet.printed("log.txt: load", found[1], ranks["load"])
    sheet.printed("log.txt: cores", found[2], ranks["cores"])
    sheet.check("log.txt: load: all ranks", [best for best in ranks["to_own"] if best > 1], "1.1 or more", lambda a, b: a and min(a) >= 1.1 - 1e-6)


def check_staleness(sheet, run, text):
    found = taken(re.fullmatch(r"staleness: mean (\S+), 95th percentile (\d+)", text))
    sheet.printed("log.txt: mean staleness", found[1], run.summary["asynchrony"]["mean_staleness"])
    sheet.printed("log.txt: staleness, 95th percentile", found[2], run.summary["asynchrony"]["staleness_95"])


def check_dropped(sheet, run, text):
    found = taken(re.fullmatch(r"dropped: ([\d,]+) of ([\d,]+) gradients?", text))
    for shown, name in zip(found.groups(), ("dropped", "computed")):
        sheet.printed(f"log.txt: gradients {name}", shown, sum(worker[name] for worker in run.summary["asynchrony"]["workers"]))


def check_worker(sheet, run, text):
    found = taken(re.fullmatch(r"worker (\d+): ([\d,]+) gradients? with ([\d,]+) samples?(?:, ([\d,]+) dropped with ([\d,]+) samples?)?: (\S+) times an even share", text))
    workers, place = run.summary["asynchrony"]["workers"], f"log.txt: worker {found[1]}"
    worker = workers[int(found[1])]
    for shown, name in zip(found.groups()[1:5], ("steps", "samples", "dropped", "dropped_samples")):
        sheet.equal(f"{place}: {name}", int((shown or "0").replace(",", "")), worker[name])
    sheet.printed(place + ": share", found[6], worker["samples"] * len(workers) / run.summary["samples_seen"])


def check_fall(sheet, run, text):
    found = taken(re.fullmatch(r"the learning rate falls from (\S+) to (\S+) (?:with|after) step ([\d,]+): no better \w+(?: of '.*')? of the validation set for (.*)", text))
    if not found:
        return
    place = "log.txt: the learning rate falls"
    factor = max(run.config["train.decay_factor"], run.config.get("train.end_lr", 0) / float(found[1]))
    sheet.check(place, float(found[2]), float(found[1]) * factor, lambda a, b: abs(a - b) <= 1e-4 * b)
    sheet.equal(place + ": patience", found[4], run.config["train.plateau_patience"])
    step = int(found[3].replace(",", ""))
    sheet.check(place + ": step", step, run.summary["steps"], lambda a, b: a <= b)
    sheet.digits(place + ": rate before", found[1], fallen(run, step), digits=6)


def check_break(sheet, run, text):
    """Where a sweep compares its trials, each stops, and goes on if it is good."""
    if found := taken(re.match(r"stopped after ([\d,]+) steps", text)):
        sheet.check("log.txt: stopped after steps", int(found[1].replace(",", "")), run.summary["steps"], lambda a, b: 0 < a <= b)
