"""The sentences of report.html, and the descriptions of its charts for those who do not see them."""

import html
import re

from .report import number_of, same_digits, span, within
from .summary import kept_measures, length_of
from .texts import Text, taken
from .said import same_rate

SHARES = ("accuracy", "top_k_accuracy", "precision", "recall")
NUMBER = r"(-?[\d.,]+(?:e[+-]?\d+)?|-|undefined)"


def words_of(page):
    """A line for each piece of text, tables, code, legends and the large figures left out."""
    body = re.sub(r"<(table|pre|button|dl)\b.*?</\1>", "", page, flags=re.S)
    labels = re.findall(r'aria-label="([^"]*)"', body)
    lines = [*re.sub(r"<[^>]+>", "\n", body).split("\n"), *labels]
    return "\n".join(html.unescape(line.strip()) for line in lines)


def check_words(sheet, run, page, charts, names):
    """`charts`: those of the page's data, by title; `names`: measures by their titles."""
    text = Text(sheet, "report.html", words_of(page))
    own = r"^(?:Table of )?(?:" + "|".join(re.escape(title) for title in charts) + r")(?: by step(?:: .*)?)?$"
    text.ignore(own + rf"|^The log warns: .*|^{re.escape(run.directory.name)}(?:: report of Lockstep)?$|^A model \".*?\" (?=of )|(?<=trained on ).*?(?= \(\d|, with)|(?<=losses, of ).*(?=; records)|^There was no validation set: .*|^Picture of record [\d,]+$|^F1$|top-K")
    plan = {line.strip() for line in run.record["plan"]["sentences"]}  # which has its own check
    text.ignore("|".join(f"^{re.escape(line)}$" for line in plan if line) or r"(?!)")
    if run.record["state"] == "stopped early":
        text.ignore("^" + re.escape(f"It ended early: {run.record['reason']}.") + "$")
    forms = (
        (r"^.*of ([\d,]+) parameters was trained on .*?(?: \(([\d,]+) records\))?, with the loss \w+(?: of the scaled label \((.*); other measures are in its own units\))? and .*", check_model),
        (r"^It made ([\d,]+) of ([\d,]+) steps?, (\S+) epochs? with ([\d,]+) samples?, on (\d+) ranks?, in (.*?) of training \(([\d,.e+]+) samples a second\)\.", check_length),
        (r"^The model is right about (\S+ %) of the (\w+) set, which", lambda *of: check_verdict(*of, "Accuracy", names)),
        (r"^The model is off by (\S+) on average on the (\w+) set, which", lambda *of: check_verdict(*of, "Mean absolute error", names)),
        (r"^The model has the (.*) on the (\w+) set, which", lambda *of: check_verdict(*of, "", names)),
        (r"^Kept are the weights of step ([\d,]+), with the best (.*?) of the validation set\.", lambda *of: check_kept(*of, names)),
        (r"^After step ([\d,]+)$", lambda *of: None),  # above its sample, which has its own check
        (r"^Kept are the last weights, those of step ([\d,]+)\.", check_last_kept),
        (r"^The validation set was best at step ([\d,]+) of ([\d,]+), ", check_best_step),
        (r"^(\d+) % of the time (?:was spent in |went into |)(waiting for the slowest|the exchange|waiting for samples|stages waited)", check_time),
        (r"^Rank (\d+) on host \S+ is slow \((\w+)\): its data and compute take (\S+) times those of the fastest rank and (\S+) times its own best, and waiting for it costs (\S+) % of the time", check_slow),
        (r"^Class (.*) is recognised least: (\S+) % of its samples in the (\w+) set\. It is most often taken for class (.*) \(([\d,]+) of ([\d,]+)\)", check_class),
        (r"^Permutation importance: the \w+ is (\S+) with all columns", lambda sheet, run, place, found: sheet.digits(place, found[1], run.json("importance.json")["baseline"])),
        (r"^Predictions against targets of (\d+) samples", lambda sheet, run, place, found: sheet.equal(place, int(found[1]) in [len(fit["target"]) for fit in run.evaluation["fits"]], True)),
        (r"^The last window of the \w+ set: its past, then truth and forecast from (.*) to (.*)\.$", check_window_words),
        (r"^Samples of the \w+ set after step ([\d,]+): rows are true classes", lambda *of: None),  # as the caption of their table
        (r"^The ([\d,]+) of ([\d,]+) records of the \w+ set with the largest losses.*; records are counted from (0)", lambda *of: None),  # as the caption of their table
    )
    shown = 0
    for line in text.lines():
        for pattern, handler in forms:
            if found := taken(re.match(pattern, line)):
                handler(sheet, run, "report.html: summary", found)
                shown += handler is check_length
        for pattern, handler in ((r"([^:]+): (.* from .*)\.$", check_ends), (r"(Precision against recall|ROC curves|Mean absolute error at each step ahead).*?: (.*); the table below has the numbers\.$", check_curve_labels)):
            if (found := re.match(pattern, line)) and (found[1] in charts or handler is check_curve_labels):
                handler(sheet, run, f"report.html: description of '{found[1]}'", taken(found), charts)
    sheet.equal("report.html: summary: sentences on the length", shown, 1)
    check_large_figures(sheet, run, page, names)
    check_pictures(sheet, run, text)
    text.ignore("^" + re.escape(launch_words(run.record["launch"])) + "$")


def check_window_words(sheet, run, place, found):
    spans = [(each["times"][len(each["past"])], each["times"][-1]) for each in run.evaluation["windows"]]
    sheet.equal(place + ": span of the forecast", (found[1], found[2]) in spans, True)


def launch_words(launch):
    """The line of the log about ranks and hosts, of the launch in run.json, which has its own check."""
    count = lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}"
    hosts, replicas, threads = launch["hosts"], count(launch["replicas"], "replica"), count(launch["threads"], "thread")
    return f"{count(len(hosts), 'rank')} on {count(len(set(hosts)), 'host')}, {replicas}, {threads}, precision {launch['precision']}; {launch['placement']}"


def check_model(sheet, run, place, found):
    parameters = sum(t.size for name, t in run.tensors.items() if "running_" not in name and "num_batches" not in name)
    sheet.printed(place + ": parameters", found[1], parameters)
    if found[2]:
        sheet.printed(place + ": records", found[2], length_of(run).rows)
    scaled = [f"{c['name']}: {c['scale']}" for c in run.label_columns() if c["kind"] == "numeric" and c.get("scale", "none") != "none"]
    # The first in the order of the file.
    sheet.check(place + ": scaled label", found[3], scaled, lambda a, b: a in b or a is None and not b)


def check_length(sheet, run, place, found):
    s, length = run.summary, length_of(run)
    sheet.printed(place + ": steps", found[1], s["steps"])
    sheet.printed(place + ": planned steps", found[2], length.steps)
    sheet.digits(place + ": epochs", found[3], s["epochs"], digits=4)
    sheet.printed(place + ": samples", found[4], s["samples_seen"])
    sheet.printed(place + ": ranks", found[5], length.ranks)
    check_duration(sheet, place + ": seconds", found[6], s["seconds"])
    rate = s["samples_seen"] / s["seconds"]
    sheet.check(place + ": samples/s", found[7], rate, lambda a, b: same_digits(a, b, 5) if "e" in a else same_rate(a, b))


def measure_words(words, names):
    """Measure, number and factor of "balanced accuracy 0.86" or "recall 82.4 %"."""
    known = {title.lower(): measure for title, measure in names.items()}
    name, _, shown = words.removesuffix(" %").rpartition(" ")
    return known.get(name.lower(), name), shown, 100 if words.endswith("%") else 1


def accepted(shown, right, factor):
    if right is None:
        return shown in ("-", "undefined")
    return within(float(shown), span(right).map(lambda x: 100 * x), 0.00501) if factor == 100 else same_digits(shown, right, 5)


def check_verdict(sheet, run, place, found, title, names):
    """Of the set that says most one measure, in the sentence that a reader reads first."""
    measure, shown, factor = measure_words(f"{title} {found[1]}".strip(), names)
    right = (kept_measures(run, found[2]) or {}).get(measure)
    sheet.check(f"{place}: verdict: {measure}", shown, right, lambda a, b: accepted(a, b, factor))


def check_large_figures(sheet, run, page, names):
    figures = {html.unescape(name): html.unescape(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", page)}
    sheet.equal("report.html: large figures: state", figures.pop("State", None), run.record["state"])
    for name, text in figures.items():
        place, (title, _, split) = f"report.html: large figures: {name}", name.rpartition(", ")
        if name == "Time of training":
            check_duration(sheet, place, text, run.summary["seconds"])
        elif split == "training":
            sheet.digits(place, text, [m["loss"] for m in run.metrics if m["kind"] == "train"][-1])
        else:
            check_value(sheet, place, text, (kept_measures(run, split.removesuffix(" set")) or {}).get(names.get(title, title)))


def check_value(sheet, place, text, right):
    """ "81.25 %" or "0.3213"."""
    sheet.check(place, text.removesuffix(" %"), right, lambda a, b: accepted(a, b, 100 if text.endswith("%") else 1))


def check_duration(sheet, place, text, right):
    number, unit = text.split(" ")
    sheet.digits(place, number, right / {"s": 1, "min": 60, "h": 3600}[unit], digits=4)


def check_kept(sheet, run, place, found, names):
    sheet.printed(place + ": kept step", found[1], run.summary["kept"]["step"])
    measure, shown, factor = measure_words(found[2], names)
    sheet.equal(place + ": kept measure", measure, run.summary["kept"]["measure"])
    sheet.check(place + ": kept value", shown, run.summary["kept"]["value"], lambda a, b: accepted(a, b, factor))


def check_last_kept(sheet, run, place, found):
    sheet.printed(place + ": kept step", found[1], run.summary["kept"]["step"])
    sheet.equal(place + ": kept weights", run.summary["kept"]["weights"], "last")


def check_best_step(sheet, run, place, found):
    sheet.printed(place + ": best step", found[1], run.summary["kept"]["step"])
    sheet.printed(place + ": of steps", found[2], run.summary["steps"])


def check_time(sheet, run, place, found):
    name = {"waiting for the slowest": "waiting", "the exchange": "communication", "waiting for samples": "data", "stages waited": "idle"}[found[2]]
    sheet.printed(f"{place}: time: {name}", found[1], 100 * run.summary["time"][name])


def check_slow(sheet, run, place, found):
    ranks, i = [m for m in run.metrics if m["kind"] == "ranks"][-1], int(found[1])
    if "ranks" not in run.summary:
        sheet.differ(f"{place}: rank {i}", "slow", "one rank")
    sheet.equal(f"{place}: rank {i}", found[2], ranks["slow"][i])
    sheet.printed(f"{place}: rank {i}: to the fastest", found[3], ranks["to_best"][i])
    sheet.printed(f"{place}: rank {i}: to its best", found[4], ranks["to_own"][i])
    sheet.check(f"{place}: rank {i}: cost", float(found[5]), 100 * ranks["delay"][i] / ranks["seconds"], lambda a, b: abs(a - b) <= 0.0501 + 1e-4 / ranks["seconds"])


def check_class(sheet, run, place, found):
    """The first of the classes with the least recall, and the one that its samples are most often taken for."""
    lines = [m for m in run.metrics if m["kind"] == "evaluation" and m["split"] == found[3] and m.get("confusion")]
    kept = [m for m in lines if m["step"] == run.summary["kept"]["step"]]
    table = (kept or lines)[-1]["confusion"]
    recall = [row[i] / sum(row) if sum(row) else 2 for i, row in enumerate(table)]
    worst = recall.index(min(recall))
    others = [-1 if i == worst else count for i, count in enumerate(table[worst])]
    taken_for = others.index(max(others))
    names = run.class_names() if "columns" in (run.schema or {}) else []
    name = lambda i: f"{i} ({names[i]})" if i < len(names) else str(i)
    sheet.equal(place + ": class of the least recall", [found[1], found[4]], [name(worst), name(taken_for)])
    sheet.printed(place + ": least recall", found[2], 100 * recall[worst])
    sheet.equal(place + ": samples taken for another class", [int(number_of(found[i])) for i in (5, 6)], [max(others), sum(table[worst])])


def check_ends(sheet, run, place, found, charts):
    """Of a chart's curves the first and the last value."""
    series = {each["label"]: each for each in charts[found[1]]["series"]}
    for label, first, last in re.findall(rf"(?:^|; )(.+?) from {NUMBER} to {NUMBER}(?=;|$| and so on)", found[2]):
        ends = [series[label]["y"][0], series[label]["y"][-1]] if label in series else []
        sheet.check(f"{place}: {label}", [first, last], ends, lambda a, b: len(b) == 2 and all(x == "-" and y is None or y is not None and same_digits(x, y, 5) for x, y in zip(a, b)))


def check_curve_labels(sheet, run, place, found, charts):
    begin = "Precision-recall curves" if found[1].startswith("Precision") else found[1]
    texts = ["; ".join(each["label"] for each in chart["series"] if each["style"] != "guide") for title, chart in charts.items() if title.startswith(begin)]
    sheet.check(place, found[2], texts, lambda a, b: a in b)


def check_pictures(sheet, run, text):
    """Records of images have their words under them."""
    worst = iter((run.evaluation or {}).get("worst", []))
    record = None
    for line in text.lines():
        if found := taken(re.fullmatch(r"true: (.*)", line)):
            record = next(worst, None)
            sheet.equal("report.html: picture: true", found[1], record and re.sub(r"\s+", " ", record["target"]))
        elif record and (found := taken(re.fullmatch(r"predicted: (.*)", line))):
            sheet.equal("report.html: picture: predicted", found[1], re.sub(r"\s+", " ", record["prediction"]))
        elif record and (found := taken(re.fullmatch(r"loss (\S+), record ([\d,]+)", line))):
            sheet.digits("report.html: picture: loss", found[1], record["loss"])
            sheet.printed("report.html: picture: record", found[2], record["record"])
