"""Draws errors, builds them all behind their switches, tries them, and reports."""

import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

from mutating import report, same_code, suite, trying
from mutating.draw import SWITCH, Draw, Error, prefix_of, read, with_errors
from mutating.overlay import MainBuild, Overlay
from mutating.page_trial import PageTrial

JOBS = 2


class Schemata:
    """The programs of the tests with all errors in them."""

    def __init__(self, build, overlay, programs):
        self.build, self.overlay, self.programs = build, overlay, programs
        self.errors = []

    def texts(self):
        by_file = collections.defaultdict(list)
        for error in self.errors:
            if not error.place.file.endswith(".js"):
                by_file[error.place.file].append((error.place, error.number))
        texts = {}
        for file, placed in by_file.items():
            path = self.build.root / file
            texts[file] = prefix_of(path) + with_errors(read(path), placed)
        return texts

    def make(self, errors):
        """Places that the build refuses; none if all programs are made."""
        self.errors = errors
        changed = self.texts()
        self.overlay.copy_sources(changed)
        self.overlay.make_switch(max((e.number for e in errors), default=0), SWITCH)
        outputs = self.overlay.out_of_date(set(changed), self.programs)
        trying.say(f"{len(changed)} files are changed, {len(outputs)} objects and programs are made again")
        said = "\n".join(self.overlay.make(outputs, JOBS))
        refused = [e.place for e in errors if e.place.file in changed and self.is_blamed(e.place, said)]
        if said and not refused:
            sys.exit(f"error: the build with errors in it fails, for another reason:\n{said[:4000]}")
        return refused

    def is_blamed(self, place, said):
        lines = re.findall(rf"{re.escape(place.file)}:(\d+)(?::\d+)?: (?:fatal )?error", said)
        return any(place.line <= int(line) <= place.line + place.original.count("\n") for line in lines)


def main_build(root):
    directory = root / "build" / "release"
    configure = ["cmake", "--preset", "release", "-DLOCKSTEP_TESTS=ON"]
    for command in (configure, ["cmake", "--build", "--preset", "release"]):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stdout[-2000:] + done.stderr[-2000:]
            sys.exit(f"error: {' '.join(command)} fails: scripts/test installs what it needs\n{said}")
    return MainBuild(root, directory)


def numbered(errors, numbers):
    """The same errors with the numbers that their places have had before; new places get new ones."""
    for error in errors:
        error.number = numbers.setdefault(error.place, len(numbers) + 1)
    return sorted(errors, key=lambda e: e.number)


class Session:
    """From errors to a report, which is written anew whenever something is known."""

    def __init__(self, root, output, head, only):
        self.root, self.output, self.head = root, output, head
        self.start = time.monotonic()
        self.build = main_build(root)
        self.only = only  # a regular expression, as ctest -R takes it
        listed = suite.read_tests(self.build.directory, only, {})
        self.programs = sorted(self.programs_of(listed))
        self.overlay = Overlay(self.build, root / "build" / "mutate")
        self.draw = Draw(self.build, JOBS)
        self.results, self.errors = {}, []

    def programs_of(self, tests):
        mine = f"{self.build.directory}/"
        named = {word[len(mine):] for test in tests for word in test.command if word.startswith(mine)}
        return {name for name in named if name in self.build.commands} | {"trainer"}

    def say(self, text):
        trying.say(f"[{(time.monotonic() - self.start) / 60:.0f} min, load {suite.load():.1f}] {text}")

    def make(self, drawn):
        """Builds what `drawn(banned)` draws; what does not compile makes way for the next."""
        schemata, numbers, banned = Schemata(self.build, self.overlay, self.programs), {}, []
        while True:
            self.errors = numbered(drawn(banned), numbers)
            self.results = {e.number: report.Result() for e in self.errors}
            self.say(f"{len(self.errors)} errors are drawn")
            self.write()
            refused = schemata.make(self.errors)
            if not refused:
                break
            self.say(f"{len(refused)} do not compile, and make way for others")
            banned += refused

    def measure(self):
        replaced = {f"{self.build.directory}/{output}": path for output, path in self.overlay.made.items()}
        tests = suite.read_tests(self.build.directory, self.only, replaced)
        self.say(f"{len(tests)} tests run without an error, to see which errors each reaches")
        failed = trying.measure(tests, max((e.number for e in self.errors), default=0))
        if failed:
            self.say(f"these fail without an error, and are left out: {', '.join(failed)}")
        return [t for t in tests if t.name not in failed]

    def run(self, drawn, set_aside):
        suite.limit_memory()
        self.make(drawn)
        tests = self.measure()
        in_page = [e for e in self.errors if e.place.file.endswith(".js")]
        trial = trying.Trial(tests, [e.number for e in self.errors if e not in in_page], self.progress)
        page_trial = PageTrial(self.overlay, tests, trial.runner(trying.AT_ONCE))
        self.say("each error is tried with the tests that reach it, the quickest first")
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for error, verdict in zip(in_page, pool.map(page_trial.verdict, in_page)):
                self.progress(error.number, verdict)
        trial.all()
        self.say("survivors are compiled with and without their error")
        self.set_aside(set_aside)
        self.write()
        self.say("done")

    def progress(self, number, verdict):
        self.results[number].verdict = verdict
        self.write()

    def set_aside(self, given):
        survivors = [e for e in self.errors if not self.results[e.number].noticed]
        for error in survivors:
            row = report.row(error, self.results[error.number])
            reasons = [reason for known, reason in given if row.startswith(known)]
            self.results[error.number].equivalent = reasons[0] if reasons else ""
        left = [e for e in survivors if not self.results[e.number].equivalent and not e.place.file.endswith(".js")]
        for number in same_code.find(self.overlay, left, JOBS):
            self.results[number].equivalent = report.SAME_CODE

    def write(self):
        text = report.write(self.errors, self.results, self.head, self.draw.constants)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.output.write_text(text)
        return text


def repeated(draw, rows):
    """The errors of a report's rows, in today's code."""
    def errors(banned):
        found = []
        for file in sorted({row[0] for row in rows}):
            places = [p for p in draw.all_places(file) if p not in banned]
            for row in (r for r in rows if r[0] == file):
                same = [p for p in places if (p.operator, report.cell(p.original), report.cell(p.changed)) == row[2:5]]
                if not same:
                    trying.say(f"{file}:{row[1]}: {row[3]} is no longer there")
                    continue
                place = min(same, key=lambda p: abs(p.line - row[1]))
                if place.line != row[1]:
                    trying.say(f"{file}:{row[1]}: {row[3]} is in line {place.line} now")
                if place not in [e.place for e in found]:
                    found.append(Error(0, place, ["again"]))
        return found
    return errors


def read_equivalent(path):
    """Rows of a report, as far as the text with the error, each with a reason in its last cell."""
    if not path:
        return []
    rows = [line for line in pathlib.Path(path).read_text().split("\n") if report.ROW.match(line)]
    return [(row[:row.rstrip(" |").rindex(" | ") + 3], report.ROW.match(row)[6]) for row in rows]
