"""Lines as people read them: numbers of at most five significant digits, shares with fixed decimals."""

import re

from .positive import without_class
from .report import number_of, same_digits


def pairs_of(text):
    """ "loss 0.34525, accuracy 0.8, top-2 1" as [("loss", "0.34525"), ...]; also with two spaces between."""
    return PAIR.findall(text)


PAIR = re.compile(r"([a-z][a-z0-9_-]*(?: accuracy)?) (-?\d[\d.,]*(?:e[+-]?\d+)?|-?inf|-?nan|undefined)(?=,? |,|$)")


OF_SCALED = " of the scaled label"


def without_scale(sheet, place, text, run):
    """The text without the words that a loss of a scaled label has behind it."""
    scaled = any(c.get("scale", "none") != "none" for c in run.label_columns() if c["kind"] == "numeric")
    if text.startswith("loss "):
        sheet.equal(place + ": says of the loss that it is of the scaled label", bool(re.match(r"loss \S+" + OF_SCALED, text)), scaled)
    return text.replace(OF_SCALED, "", 1)


def check_said(sheet, place, text, json):
    """Figures of an evaluation in a line: each as it stands in the JSON, which is checked elsewhere."""
    names = []
    text = without_class(sheet, place, text, json, json.get("positive"))
    for name, shown in pairs_of(text):
        shown = shown.rstrip(",")
        top = re.fullmatch(r"top-(\d+)( accuracy)?", name)
        key = "top_k_accuracy" if top else name
        if top:
            sheet.equal(f"{place}: K of top-K", int(top[1]), json.get("top_k"))
        names.append(key)
        if key not in json:
            sheet.differ(f"{place}: {name}", shown, "(no such figure)")
            continue
        sheet.check(f"{place}: {name}", shown, json[key], lambda a, b: same_digits(a, b, 5) if b is not None else a == "undefined")
    left = re.sub(r"[ ,]", "", PAIR.sub("", text))
    sheet.equal(f"{place}: words that are no figures", left, "")
    missing = [k for k, v in json.items() if k not in names and k not in NO_FIGURES and not isinstance(v, (list, dict, str))]
    if missing:
        sheet.differ(place, text, f"with {', '.join(missing)}")


NO_FIGURES = {"step", "epoch", "samples_seen", "samples", "positions", "seconds", "top_k"}


def human_bytes(count):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while count >= 1024 and unit < 4:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {units[unit]}"


def human_seconds(seconds):
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = int(seconds + 0.5)
    return f"{whole // 60} m {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d} m"


def check_rate_text(sheet, place, text, right):
    """Samples a second: a whole number, and two digits below 10."""
    sheet.check(place + " samples/s", text, right, same_rate)


def same_rate(text, right):
    return float(number_of(text)) == (float(f"{right:.2g}") if right < 10 else round(right))


def check_time_text(sheet, place, text, right):
    sheet.check(place, text, human_seconds(right), lambda a, b: a == b)
