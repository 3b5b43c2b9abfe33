"""The log of a run, whose lines the console shows, too."""

import re

from .said import check_rate_text, check_said, check_time_text, human_bytes
from .summary import length_of


def lines_of(run):
    for line in run.log:
        found = re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ (\w+) (.*)", line)
        if found:
            yield found[1], found[2]


def check_log(sheet, run):
    evaluations = [m for m in run.metrics if m["kind"] == "evaluation"]
    steps = {m["step"]: m for m in run.metrics if m["kind"] == "train"}
    handlers = {
        "done: ": check_done,
        "kept: ": check_kept_line,
        "calibrated: ": check_calibrated,
        "threshold: ": check_threshold_line,
        "checkpoint of step ": check_checkpoint,
        "stopped early after step ": check_stopped,
    }
    whole = [text for _, text in lines_of(run)]
    starts = [i for i, text in enumerate(whole) if text.startswith("goes on from ")]
    for text in whole:
        for begin, handler in handlers.items():
            if text.startswith(begin):
                handler(sheet, run, text)
    if starts:
        return  # lines after a checkpoint are made twice
    shown = [text for text in whole if re.match(r"epoch [\d.]+  (validation|test) loss ", text)]
    sheet.equal("log.txt: evaluations", len(shown), len(evaluations))
    for number, (text, line) in enumerate(zip(shown, evaluations)):
        check_evaluation_line(sheet, f"log.txt: evaluation {number}", text, line)
    for text in whole:
        if found := re.match(r"step ([\d,]+)/([\d,]+)  epoch", text):
            step = int(found[1].replace(",", ""))
            if step in steps and " lr " in text:
                check_step_line(sheet, f"log.txt: step {step}", text, steps[step], length_of(run))


def check_evaluation_line(sheet, place, text, line):
    found = re.fullmatch(r"epoch ([\d.]+)  (\w+) (loss .*)  \(([\d,]+) samples, (.*)\)", text)
    if not found:
        sheet.differ(place, text, "a line that can be read")
        return
    sheet.printed(place + ": epoch", found[1], line["epoch"])
    sheet.equal(place + ": split", found[2], line["split"])
    sheet.printed(place + ": samples", found[4], line["samples"])
    check_time_text(sheet, place + ": seconds", found[5], line["seconds"])
    check_said(sheet, place, found[3], line)


def check_step_line(sheet, place, text, line, length):
    found = re.fullmatch(r"step ([\d,]+)/([\d,]+)  epoch ([\d.]+)  (loss .*?)  lr (\S+)  ([\d,]+) samples/s.*", text)
    if not found:
        sheet.differ(place, text, "a line that can be read")
        return
    sheet.printed(place + ": steps", found[2], length.steps)
    sheet.printed(place + ": epoch", found[3], line["epoch"])
    check_said(sheet, place, found[4], {key: line[key] for key in ("loss", "accuracy") if key in line})
    sheet.digits(place + ": lr", found[5], line["lr"])
    check_rate_text(sheet, place, found[6], line["samples_per_second"])


def check_done(sheet, run, text):
    """The summary in one line."""
    s, place = run.summary, "log.txt: done"
    found = re.fullmatch(r"done: (?:(\w+) (loss .*?); )?([\d,]+) steps(.*?), ([\d,]+) samples in (.*?) \(([\d,]+) samples/s\); time: (.*)", text)
    if not found:
        sheet.differ(place, text, "a line that can be read")
        return
    if e := s.get("evaluation"):
        sheet.equal(place + ": split", found[1], e["split"])
        check_said(sheet, place, found[2] or "", {k: v for k, v in e.items() if k not in ("top_k", "top_k_accuracy")})
    sheet.printed(place + ": steps", found[3], s["steps"])
    sheet.printed(place + ": samples", found[5], s["samples_seen"])
    check_time_text(sheet, place + ": seconds", found[6], s["seconds"])
    check_rate_text(sheet, place, found[7], s["samples_per_second"])
    names = {"idle for other stages": "idle"}
    for name, share in re.findall(r"(data|compute|communication|waiting|idle for other stages) ([\d.]+) %", found[8]):
        sheet.printed(f"{place}: {name}", share, 100 * s["time"][names.get(name, name)])


def check_kept_line(sheet, run, text):
    kept, place = run.summary["kept"], "log.txt: kept"
    if found := re.match(r"kept: .* of step ([\d,]+) \(epoch ([\d.]+)\), with the best (\S+) of the validation set, (\S+?)(;|$)", text):
        sheet.printed(place + ": step", found[1], kept["step"])
        sheet.printed(place + ": epoch", found[2], kept.get("epoch"))
        sheet.equal(place + ": measure", found[3], kept.get("measure"))
        sheet.digits(place + ": value", found[4], kept.get("value"))


def check_calibrated(sheet, run, text):
    c, place = run.summary.get("calibration", {}), "log.txt: calibrated"
    numbers = re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text)
    names = ["temperature", "log_loss_before", "log_loss", "ece_before", "ece"]
    sheet.equal(place + ": figures", len(numbers), len(names))
    for name, shown in zip(names, numbers):
        sheet.digits(f"{place}: {name}", shown, c.get(name))


def check_threshold_line(sheet, run, text):
    t, place = run.summary.get("threshold", {}), "log.txt: threshold"
    if found := re.match(r"threshold: the model says yes from a probability of (\S+) on(?:, where the (\S+) of the validation set is largest, (\S+))?", text):
        sheet.digits(place + ": probability", found[1], t.get("probability"))
        if found[2]:
            sheet.equal(place + ": measure", found[2], t.get("measure"))
            sheet.digits(place + ": value", found[3], t.get("value"))


def check_checkpoint(sheet, run, text):
    found = re.match(r"checkpoint of step ([\d,]+): (.*?) in ", text)
    path = run.directory / "checkpoints" / f"step-{int(found[1].replace(',', '')):09d}" if found else None
    if found and path.exists():
        size = sum(f.stat().st_size for f in path.iterdir())
        without = size - (path / "manifest.json").stat().st_size
        sheet.equal(f"log.txt: checkpoint of step {found[1]}", found[2], human_bytes(size), {"checkpoint-without-manifest": human_bytes(without)})


def check_stopped(sheet, run, text):
    found = re.match(r"stopped early after step ([\d,]+): .*", text)
    sheet.printed("log.txt: stopped early", found[1], run.summary["steps"])
    if best := re.search(r"the best was (\S+) after step ([\d,]+)", text):
        sheet.check("log.txt: stopped early: best", best[1], run.summary["kept"].get("value"), lambda a, b: b is not None and abs(float(a) - b) <= 1e-5 * abs(b) + 1e-9)
        sheet.printed("log.txt: stopped early: step of the best", best[2], run.summary["kept"]["step"])
