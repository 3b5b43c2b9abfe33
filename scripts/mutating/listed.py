"""The errors of test/mutations.toml, put into the code one at a time.

For each error: the text `find` of `file` becomes `replace`, the programs of the tests that `tests` matches (a regular
expression, as `ctest -R` takes it) are built, and these tests run until one fails. The file is as before at the end,
also after Ctrl-C.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = ROOT / "test" / "mutations.toml"
KEYS = {"find", "replace", "tests"}
ENOUGH = 0.95


@dataclasses.dataclass
class Mutation:
    file: str
    error: str
    find: str
    replace: str
    tests: str

    @property
    def path(self):
        return ROOT / self.file

    def place(self):
        text = self.path.read_text()
        return f"{self.file}:{text[:text.index(self.find)].count(chr(10)) + 1}"

    def wrong(self):
        """What is wrong with the entry; "" if nothing is."""
        if not self.path.is_file():
            return "there is no such file"
        found = self.path.read_text().count(self.find)
        if found != 1:
            return f"`find` stands there {found} times, expected once"
        return "`replace` is the same text" if self.find == self.replace else ""


def read_list():
    mutations = []
    for file, errors in tomllib.loads(LIST.read_text()).items():
        for error, entry in errors.items():
            if set(entry) != KEYS:
                sys.exit(f"error: {LIST}: {error}: has the keys {sorted(entry)}, expected {sorted(KEYS)}")
            mutations.append(Mutation(file, error, **entry))
    return mutations


class Build:
    def __init__(self, directory):
        self.directory = directory
        if self.run(["cmake", "--preset", "separate", "-DLOCKSTEP_TESTS=ON", "-B", directory], ROOT).returncode != 0:
            sys.exit(f"error: CMake cannot configure {directory}: scripts/test installs what it needs")
        self.make({"all"})  # ctest knows no command of a program that was never built

    def tests(self, pattern):
        """The names of the fast tests that match, and the programs that they start."""
        shown = json.loads(self.run(["ctest", "-R", pattern, "-L", "^fast$", "--show-only=json-v1"]).stdout)
        names = [test["name"] for test in shown["tests"]]
        unbuilt = [test["name"] for test in shown["tests"] if "command" not in test]
        if unbuilt:
            sys.exit(f"error: {unbuilt[0]} was never built: cmake --build {self.directory}")
        words = [word for test in shown["tests"] for word in test.get("command", [])]
        programs = {pathlib.Path(word).name for word in words if word.startswith(str(self.directory) + "/")}
        return names, programs

    def run(self, command, directory=None):
        return subprocess.run(command, cwd=directory or self.directory, capture_output=True, text=True, check=False)

    def make(self, programs):
        """What the compiler says; "" if all is well."""
        if not programs:  # the test reads the file itself
            return ""
        done = self.run(["cmake", "--build", ".", "--target", *sorted(programs)])
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def failing(self, pattern):
        """The first test that fails; "" if none does."""
        done = self.run(["ctest", "-R", pattern, "-L", "^fast$", "--stop-on-failure", "--timeout", "300"])
        if "No tests were found" in done.stdout + done.stderr:
            sys.exit(f"error: no fast test is called {pattern}")
        failed = re.findall(r"^\s+\d+ - (\S+) \(", done.stdout, re.MULTILINE)
        return failed[0] if failed else ""


class Applied:
    """The error is in the code as long as this lives. The file's objects are put back too, to save a compilation."""

    def __init__(self, mutation, build):
        self.path = mutation.path
        self.kept = pathlib.Path(tempfile.mkdtemp())
        self.objects = list(build.directory.rglob(mutation.file + ".o"))
        self.mutation = mutation

    def __enter__(self):
        shutil.copy2(self.path, self.kept / "source")
        for number, file in enumerate(self.objects):
            shutil.copy2(file, self.kept / str(number))
        self.path.write_text(self.path.read_text().replace(self.mutation.find, self.mutation.replace))

    def __exit__(self, *_):
        shutil.copy2(self.kept / "source", self.path)
        for number, file in enumerate(self.objects):
            shutil.copy(self.kept / str(number), file)  # as new: what is linked from it is out of date
        if not self.objects:
            os.utime(self.path)
        shutil.rmtree(self.kept)


def look(mutation, build, whole, touched):
    """Which test notices it; "no" if none does. Adds the programs that are built to `touched`."""
    names, programs = build.tests(mutation.tests)
    if not names:
        return f"wrong entry: no fast test is called {mutation.tests}"
    if "end_to_end/" in mutation.tests:
        programs.add("trainer")
    touched |= programs
    with Applied(mutation, build):
        said = build.make(programs)
        if said:
            lines = [line for line in said.splitlines() if "error:" in line]
            return "wrong entry: does not build: " + (lines or ["?"])[0]
        noticed = build.failing(mutation.tests)
        if not noticed and whole:
            touched.add("all")
            build.make({"all"})
            noticed = build.failing(".")
    return noticed or "no"


def run_list(only, build_directory, whole, checks):
    """Tries the errors whose file or sentence `only` matches, or only looks whether they fit the code."""
    chosen = [m for m in read_list() if re.search(only, m.file + " " + m.error)]
    wrong = [f"{m.file}: {m.error}: {m.wrong()}" for m in chosen if m.wrong()]
    if wrong:
        sys.exit("\n".join(f"error: {LIST.name}: {line}" for line in wrong))
    if checks:
        print(f"all {len(chosen)} entries of {LIST.name} fit the code")
        return
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", *sorted({m.file for m in chosen})],
                             capture_output=True, text=True, check=False).stdout
    if changed:
        sys.exit(f"error: these files have changes that are not committed, and would be written over:\n{changed}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build = Build(build_directory.resolve())

    print("| file and line | error | noticed by | seconds |\n|---|---|---|---|")
    results = []
    touched = set()  # programs that were linked with an error in them
    for mutation in chosen:
        place, start = mutation.place(), time.monotonic()
        results.append(look(mutation, build, whole, touched))
        print(f"| {place} | {mutation.error} | {results[-1]} | {time.monotonic() - start:.0f} |", flush=True)
    build.make(touched)
    noticed = sum(result != "no" and not result.startswith("wrong entry") for result in results)
    print(f"\n{noticed} of {len(results)} are noticed, {noticed / max(1, len(results)):.1%}")
    sys.exit(0 if noticed >= ENOUGH * len(results) and not any(r.startswith("wrong entry") for r in results) else 1)
