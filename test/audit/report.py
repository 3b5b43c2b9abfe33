"""What the auditor finds: differences between a figure that is shown and what it should be.

A figure has a place, "FILE: PATH", as in "summary.json: evaluation.auc". Each figure of a document needs a check, or a
line in unaudited.txt.
"""

import fnmatch
import math
import pathlib
import re
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Difference:
    place: str
    shown: object
    right: object

    def __str__(self):
        return f"{self.place} | {self.shown} | {self.right}"


@dataclass(frozen=True)
class Span:
    """A recomputed figure, and the range it may have because what it was computed from has so many digits only."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.9g}"

    def map(self, function):
        ends = sorted((function(self.low), function(self.high)))
        return Span(function(self.value), *ends)


def span(right):
    if right is None:
        return Span(math.nan, math.nan, math.nan)
    return right if isinstance(right, Span) else Span(float(right), float(right), float(right))


def unaudited():
    lines = (HERE / "unaudited.txt").read_text().splitlines()
    # [] of a pattern is no set of characters.
    return [line.replace("[", "[[]") for line in lines if line and not line.startswith("#")]


class Sheet:
    """Collects the differences of one run."""

    def __init__(self):
        self.differences = []
        self.checked = set()
        self.figures = {}  # place -> shown, of documents of which each figure needs a check

    def differ(self, place, shown, right):
        self.differences.append(Difference(place, shown, right))

    def check(self, place, shown, right, accept):
        """`accept(shown, right)` says whether the one is the other as it is printed."""
        self.checked.add(place)
        if not accept(shown, right):
            self.differ(place, shown, right)

    def number(self, place, shown, right, relative=1e-6):
        """A number with all its digits, of a JSON or CSV file."""
        self.check(place, shown, right, lambda a, b: same_number(a, b, relative))

    def equal(self, place, shown, right):
        self.check(place, shown, right, lambda a, b: a == b)

    def digits(self, place, shown, right, digits=5):
        """A number that is printed with so many significant digits, zeros at the end left out."""
        self.check(place, shown, right, lambda a, b: same_digits(a, b, digits))

    def near(self, place, shown, right, slack):
        self.check(place, shown, right, lambda a, b: abs(a - b) <= slack)

    def same(self, place, shown, right, relative=1e-6):
        """A part of a document: the same keys and lengths, and each figure as it should be."""
        if isinstance(right, dict) and isinstance(shown, dict):
            self.equal(f"{place}: names", sorted(shown), sorted(right))
            for name in shown.keys() & right.keys():
                self.same(f"{place}.{name}", shown[name], right[name], relative)
        elif isinstance(right, (list, tuple)) and isinstance(shown, (list, tuple)):
            self.equal(f"{place}: length", len(shown), len(right))
            for i, (a, b) in enumerate(zip(shown, right)):
                self.same(f"{place}[{i}]", a, b, relative)
        elif isinstance(right, (float, Span)):
            self.number(place, shown, right, relative)
        else:
            self.equal(place, shown, right)

    def document(self, name, json, dot=": "):
        """Each figure of the document needs a check, or a line in unaudited.txt."""
        for path, value in leaves(json):
            self.figures[name + dot + path] = value

    def rename(self, begin, new):
        """Figures that cannot be recomputed, as those of made-up data, stand under another name in unaudited.txt."""
        for place in [place for place in self.figures if place.startswith(begin)]:
            self.figures[new + place[len(begin) :]] = self.figures.pop(place)

    def finish(self):
        patterns = unaudited()
        for place, shown in self.figures.items():
            # One line of unaudited.txt is for all elements of a list.
            plain = re.sub(r"\[\d+\]", "[]", place)
            if place not in self.checked and not any(fnmatch.fnmatchcase(plain, pattern) for pattern in patterns):
                self.differ(place, shown, "(no check)")
        return self.differences


def leaves(json, path=""):
    """The figures of a document: its numbers and nulls."""
    if isinstance(json, dict):
        for key, value in json.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    elif isinstance(json, list):
        for i, value in enumerate(json):
            yield from leaves(value, f"{path}[{i}]")
    elif json is None or (isinstance(json, (int, float)) and not isinstance(json, bool)):
        yield path, json


def within(shown, right, slack):
    right = span(right)
    if shown is None or (isinstance(shown, float) and math.isnan(shown)):
        return math.isnan(right.value)
    if isinstance(shown, str):
        return False
    if math.isinf(right.value) or math.isinf(float(shown)):
        return right.value == float(shown)
    return right.low - slack <= float(shown) <= right.high + slack


def same_number(shown, right, relative=1e-6):
    return within(shown, right, relative * max(1e-9, abs(span(right).value)) if right is not None else 0)


def number_of(text):
    """ "1,829,281", "81.3 %" or "inf" as a number."""
    text = text.strip().rstrip("%").replace(",", "").strip()
    return math.nan if text in ("undefined", "-", "") else float(text)


def same_digits(text, right, digits=5):
    shown = number_of(text) if isinstance(text, str) else text
    if shown is None or not math.isfinite(shown):
        return within(shown, right, 0)
    size = abs(span(right).value)
    unit = 10.0 ** (math.floor(math.log10(size)) - digits + 1) if size > 0 and math.isfinite(size) else 0
    return within(shown, right, 0.5000001 * unit)


def human_bytes(count):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while count >= 1024 and unit < 4:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {units[unit]}"
