"""What the auditor finds, and which of it is known.

A figure has a place, "FILE: PATH", as in "summary.json: evaluation.auc". A check says what the figure should be, and may
say what known faults of the program make of it. A difference is known only if what is shown is what such a fault gives:
so a fault that is written down in known.toml hides no other error at the same place.
"""

import fnmatch
import math
import pathlib
import re
import tomllib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Difference:
    place: str
    shown: object
    right: object
    fault: str = ""  # the known fault that gives what is shown

    def __str__(self):
        return f"{self.place} | {self.shown} | {self.right}" + (f" | known: {self.fault}" if self.fault else "")


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


def pattern_of(place):
    """The place without what differs between elements of a list: one line of unaudited.txt is for all of them."""
    return re.sub(r"\[\d+\]", "[]", place)


def known_faults():
    with open(HERE / "known.toml", "rb") as file:
        return {entry["kind"]: entry for entry in tomllib.load(file).get("known", [])}


def unaudited():
    lines = (HERE / "unaudited.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class Sheet:
    """Collects the differences of one run."""

    def __init__(self):
        self.differences = []
        self.checked = set()
        self.figures = {}  # place -> shown, of documents of which each figure needs a check
        self.texts = []  # each number of them needs a check, too
        self.known = known_faults()

    def differ(self, place, shown, right, fault=""):
        if fault and not re.search(self.known.get(fault, {}).get("pattern", "(?!)"), place):
            fault = ""
        self.differences.append(Difference(place, shown, right, fault))

    def check(self, place, shown, right, accept, faults=None):
        """`accept(shown, right)` says whether the one is the other as it is printed; `faults`: their names with what they give,
        as a dictionary or as pairs."""
        self.checked.add(place)
        if accept(shown, right):
            return
        for name, value in faults.items() if isinstance(faults, dict) else faults or ():
            if accept(shown, value):
                self.differ(place, shown, right, name)
                return
        self.differ(place, shown, right)

    def number(self, place, shown, right, faults=None, relative=1e-6):
        """A number with all its digits, of a JSON or CSV file."""
        self.check(place, shown, right, lambda a, b: same_number(a, b, relative), faults)

    def equal(self, place, shown, right, faults=None):
        self.check(place, shown, right, lambda a, b: a == b, faults)

    def printed(self, place, text, right, faults=None):
        """A number as people read it: it has to be the right one, rounded to the digits that it is printed with."""
        self.check(place, text, right, same_text, faults)

    def digits(self, place, shown, right, faults=None, digits=5):
        """A number that is printed with so many significant digits, zeros at the end left out."""
        self.check(place, shown, right, lambda a, b: same_digits(a, b, digits), faults)

    def rounded(self, place, shown, right, faults=None, decimals=5):
        """A number of a JSON file that is rounded to so many decimals."""
        self.check(place, shown, right, lambda a, b: within(a, b, 0.5000001 * 10.0**-decimals), faults)

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
        for text in self.texts:
            self.figures.update(text.figures())
        for place, shown in self.figures.items():
            if place in self.checked:
                continue
            if not any(fnmatch.fnmatchcase(pattern_of(place), escape(pattern)) for pattern in patterns):
                self.differ(place, shown, "(no check)")
        return self.differences


def escape(pattern):
    """[] of a pattern is no set of characters."""
    return pattern.replace("[", "[[]")


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
    if math.isinf(right.value) or math.isinf(float(shown)):
        return right.value == float(shown)
    return right.low - slack <= float(shown) <= right.high + slack


def same_number(shown, right, relative=1e-6):
    return within(shown, right, relative * max(1e-9, abs(span(right).value)) if right is not None else 0)


def decimals_of(text):
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def number_of(text):
    """ "1,829,281", "81.3 %", "inf" or "undefined" as a number."""
    text = text.strip().rstrip("%").replace(",", "").strip()
    return math.nan if text in ("undefined", "-", "") else float(text)


def same_text(text, right):
    shown = number_of(text)
    if not math.isfinite(shown):
        return within(shown, right, 0)
    plain = text.strip().rstrip("%").replace(",", "").strip()
    return within(shown, right, 0.5000001 * 10.0 ** -decimals_of(plain))


def same_digits(text, right, digits=5):
    shown = number_of(text) if isinstance(text, str) else text
    if shown is None or not math.isfinite(shown):
        return within(shown, right, 0)
    size = abs(span(right).value)
    unit = 10.0 ** (math.floor(math.log10(size)) - digits + 1) if size > 0 and math.isfinite(size) else 0
    return within(shown, right, 0.5000001 * unit)
