"""The report: Markdown with noticed/tried by folder and operator, then all drawn errors, those that survive first."""

import collections
import re

SAME_CODE = "the same code"
TOGETHER, A_SEED, A_FOLDER, LARGE_FOLDER, EQUIVALENT = 0.85, 0.80, 0.75, 20, 0.05
HEAD = "| file and line | operator | text | with the error | noticed by |\n|---|---|---|---|---|\n"


def cell(text):
    """Code in a cell of a table; spaces of several lines are one."""
    text = re.sub(r"\s+", " ", text.encode("latin-1").decode("utf-8", "replace")).strip()
    return "`" + text.replace("|", "\\|") + "`" if text else "(left out)"


def row(error, result):
    p = error.place
    return f"| {p.file}:{p.line} | {p.operator} | {cell(p.original)} | {cell(p.changed)} | {result.text()} |"


class Result:
    """What became of an error."""

    def __init__(self):
        self.verdict = None  # of trying.Verdict; None as long as it is not tried
        self.equivalent = ""  # why it changes nothing

    @property
    def counts(self):
        return self.verdict is not None and not self.equivalent

    @property
    def noticed(self):
        return self.counts and bool(self.verdict.noticed_by)

    def text(self):
        if self.equivalent:
            return f"equivalent: {self.equivalent}"
        if self.verdict is None:
            return "not tried yet"
        if self.verdict.noticed_by:
            return self.verdict.noticed_by + (" by time" if self.verdict.how == "by time" else "")
        return f"nothing, {self.verdict.reached_by or 'no'} tests reach it"


def rate(errors, results):
    """(noticed, tried) of these errors."""
    tried = [e for e in errors if results[e.number].counts]
    return sum(results[e.number].noticed for e in tried), len(tried)


def share(rate_of):
    noticed, tried = rate_of
    return f"{noticed} | {tried} | {100 * noticed / tried:.0f} %" if tried else "0 | 0 | "


def table(name, groups, results):
    lines = [f"\n| {name} | noticed | tried | share |", "|---|---|---|---|"]
    return lines + [f"| {group} | {share(rate(errors, results))} |" for group, errors in sorted(groups.items())]


def grouped(errors, key):
    groups = collections.defaultdict(list)
    for error in errors:
        for name in key(error):
            groups[name].append(error)
    return groups


def folder(error):
    return error.place.file.split("/")[1]


def failures(errors, results):
    """What is too little, in sentences; none if all is well."""
    said = []
    folders = grouped(errors, lambda e: [folder(e)]).items()
    wanted = [("all seeds", errors, TOGETHER)]
    wanted += [(f"seed {seed}", group, A_SEED) for seed, group in grouped(errors, lambda e: e.seeds).items()]
    wanted += [(f"src/{name}", group, A_FOLDER) for name, group in folders if len(group) >= LARGE_FOLDER]
    for what, group, least in wanted:
        noticed, tried = rate(group, results)
        if tried and noticed < least * tried:
            said.append(f"{what}: {noticed} of {tried} are noticed, expected {100 * least:.0f} %")
    given = sum(r.equivalent != "" and r.equivalent != SAME_CODE for r in results.values())
    if given > EQUIVALENT * len(errors):
        said.append(f"{given} of {len(errors)} are set aside as equivalent, expected at most {100 * EQUIVALENT:.0f} %")
    return said


def write(errors, results, head, constants):
    survivors = [e for e in errors if results[e.number].counts and not results[e.number].noticed]
    aside = [e for e in errors if results[e.number].equivalent]
    others = [e for e in errors if e not in survivors and e not in aside]
    lines = [f"# {head}", f"\n{len(errors)} errors, {len(survivors)} survive, {len(aside)} change nothing."]
    lines += table("seed", {**grouped(errors, lambda e: [str(s) for s in e.seeds]), "together": errors}, results)
    lines += table("folder", grouped(errors, lambda e: [folder(e)]), results)
    lines += table("operator", grouped(errors, lambda e: [e.place.operator]), results)
    if constants:
        lines += ["\nNot drawn, as they must be constant at compile time: "
                  + ", ".join(f"{name} {count}" for name, count in sorted(constants.items())) + "."]
    for title, group in [("Survivors", survivors), ("Equivalent", aside), ("The others", others)]:
        lines += [f"\n## {title}\n", HEAD.rstrip()] + [row(e, results[e.number]) for e in group]
    return "\n".join(lines) + "\n"


ROW = re.compile(r"\| (src/\S+):(\d+) \| ([^|]+) \| (.*?)(?<!\\) \| (.*?)(?<!\\) \| ([^|]*) \|$")


def read_rows(text, title):
    """The rows below a heading of a report: (file, line, operator, text, with the error, what stands last)."""
    section = text.split(f"## {title}", 1)[1].split("\n## ")[0] if f"## {title}" in text else text
    return [(m[1], int(m[2]), m[3], m[4], m[5], m[6]) for m in map(ROW.match, section.split("\n")) if m]
