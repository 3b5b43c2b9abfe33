"""Outputs that people have accepted, as fingerprints: a build is compared with these where no other build is at hand.

Of each command of a case (exit code, standard output, errors) and each file that it wrote there are up to eight digests
of its masked lines, in which # stands for every figure, and three sums of its figures. A sum may be off by what another
processor makes of the last digits, so that the fingerprints hold on every machine.
"""

import base64
import collections
import hashlib
import math
import re
import textwrap

from . import masks

OUTPUT = re.compile(r"output/(\d+)\.(code|stdout|stderr)")
FILES = re.compile(r".*\.(csv|html)|.*metrics\.jsonl|(?!.*/).*\.(toml|txt|json|jsonl)|reference\..*"
                   r"|(.*/)?(run|summary|evaluation|schema|sweep|importance)\.json")
SKIPPED = re.compile(r"(.*/)?checkpoints/.*|trace.*")
FIGURE = re.compile(r"(?<![\w.])-?(?:\d[\d,]*\.\d+(?:e[+-]?\d{1,2})?|\d+e[+-]?\d{1,2})(?!\w)")
FOLDER = "running"  # in which cases run
DIGESTS, SUMS = 8, 3
CLOSE = 5e-4  # of a figure: what another processor makes of it after some steps

# (files, text, what stands instead or None where the line is left out): what depends on the machine.
MACHINE = [(re.compile(files), re.compile(what), instead) for files, what, instead in [
    (r".*", rf"/\S*/{FOLDER}/", ""),
    (masks.ERRORS, r"^(-{20,}|Primary job|a non-zero exit code|mpirun detected|the job to be|  Process name:|  Exit code:"
                   r"|prterun|mpirun|\[\S+:\d+\]|Proc: |Errorcode: |MPI_ABORT|NOTE: |You may or may not|exactly when|PRTE"
                   r"|with errorcode|$)", None),
    (r".*", r"before=20\d\d", "before=20~"),
    (r".*stdout", r"^(slow: rank .*|    for rank ~)$", None),  # of a timeline: who was slower, or waited at all, by chance
    (r".*", r"(, precision \w+; ).*", r"\1~"),
    (r".*(json|jsonl|html)", r"^(.*\.(hosts?\[\d+\]|host|cpu|cores(\[\d+\])?|placement(\[\d+\])*) = ).*", r"\1~"),
    (r".*", r"^(commit|build|MPI|kernels|bf16|compiler|libraries|  (ONNX|HDF5|libzip|ISA-L|Chart.js) [\d.]+)\b.*: .*", "~"),
    (r"version\.json", r".* = .*", "~"),
    (r".*compare\.(csv|json)", r"(?<![\w.])[0-9a-f]{16}\b|,[^,]*(?=,[0-9a-f]{16},)", "~"),
    (r".*", "[\u2800-\u28ff]+", "~"),
    (r".*", r"\.curves\[\d+\]\.(threshold|recall|false_positive_rate|precision)\[", None),
]]


def lines_of(name, path):
    """The masked lines of a file, without what depends on the machine; of a page its data and its sentences."""
    lines = masks.lines(name, path, path.read_bytes())
    lines = [text for place, text in lines if not (name.endswith(".html") and place.startswith("line "))]
    for files, what, instead in MACHINE:
        if files.fullmatch(name) and instead is None:
            lines = [line for line in lines if not what.search(line)]
        elif files.fullmatch(name):
            lines = [what.sub(instead, line) for line in lines]
    return lines


def texts_of(files):
    """{name: lines} of all that is looked at; what a command printed is one text."""
    found = collections.defaultdict(list)
    for name, path in sorted(files.items()):
        output = OUTPUT.fullmatch(name)
        if output or FILES.fullmatch(name) and not SKIPPED.fullmatch(name):
            found[output[1] if output else name] += lines_of(name, path)
    return found


def parts(things, most):
    size = max(1, math.ceil(len(things) / most))
    return [things[begin : begin + size] for begin in range(0, len(things), size)]


def digest(lines):
    text = re.sub(r" *#", " #", FIGURE.sub("#", "\n".join(lines)))
    return base64.b64encode(hashlib.blake2b(text.encode(), digest_size=3).digest())[:2].decode()


def sum_of(figures):
    """The sum of the figures' logarithms, of which each weighs otherwise, and how far off it may be."""
    total = slack = 0.0
    for place, text in enumerate(figures):
        figure, weight = float(text), 1 + place % 7 / 7
        digits, _, exponent = text.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        total += weight * math.asinh(100 * figure)
        slack += weight * (CLOSE + min(1.0, unit / (abs(figure) + 1e-2)))
    return total, slack


def sums_of(lines):
    figures = [text.replace(",", "") for line in lines for text in FIGURE.findall(line)]
    return [sum_of(part) for part in parts(figures, SUMS)]


def fingerprints(files):
    """{name: [all digests as one word or "-", the sums]} of what a case printed and wrote."""
    found = {}
    for name, lines in texts_of(files).items():
        digests = "".join(digest(part) for part in parts(lines, DIGESTS))
        found[name] = [digests or "-", *(f"{total:.4g}" for total, _ in sums_of(lines))]
    return found


def to_text(cases):
    """The file of {case: fingerprints}."""
    lines = []
    for case, found in cases.items():
        words = " ".join(word for name, words in found.items() for word in (f"{name}:", *words))
        lines += [f"case {case}", *textwrap.wrap(words, 118, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def read(text):
    """{case: fingerprints}."""
    found = {}
    for line in text.splitlines():
        if line.startswith("case "):
            case = found[line.removeprefix("case ")] = {}
        elif not line.startswith("#"):
            for word in line.split():
                if word.endswith(":"):
                    words = case[word.removesuffix(":")] = []
                else:
                    words.append(word)
    return found


def changes(lines, digests, sums):
    """What to show of a text that is no longer the accepted one; nothing: it is."""
    found = parts(lines, DIGESTS)
    before = [] if digests == "-" else re.findall("..", digests)
    shown = [line for part, old in zip(found, before) if digest(part) != old for line in part]
    if len(before) != len(found):
        return [f"{len(lines)} lines, where there were more or fewer", *shown]
    if shown:
        return shown
    figures = sums_of(lines)
    if len(figures) != len(sums):
        return ["more or fewer figures than before"]
    for number, ((total, slack), old) in enumerate(zip(figures, map(float, sums)), 1):
        if not abs(total - old) <= slack + 6e-4 * abs(old):
            return [f"part {number} of {len(sums)} of the figures: a sum of their logarithms is {total:.4g}, was {old:.4g}"]
    return []


def differences(accepted, files):
    """(name, what to show) of each text that is no longer what was accepted."""
    found = texts_of(files)
    for name in sorted(accepted.keys() | found.keys()):
        if name in accepted and name in found:
            digests, *sums = accepted[name]
            shown = changes(found[name], digests, sums)
        else:
            shown = ["no longer written" if name in accepted else "not written before"]
        if shown:
            yield name, shown
