"""The fast tests as ctest knows them, and how one is run with errors on: with a limit, and so that nothing is left."""

import dataclasses
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PRESET_JOBS = 6  # of the presets: PROCESSORS of the tests are made for it
MEMORY = 6 << 30  # bytes a process may ask for: an error in a size must not take the machine


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: dict
    directory: str
    processors: int
    serial: bool
    skip: int
    limit: float
    seconds: float = 0.0  # what it took without an error
    reached: frozenset = frozenset()

    @property
    def several(self):
        """Whether it starts processes, or looks at times: it may then fail for other reasons, too."""
        alone = self.name.startswith(("unit/", "catalog/", "regression/")) or self.name.endswith("/threads")
        return self.serial or not alone


@dataclasses.dataclass
class Outcome:
    how: str  # passed, failed or by time
    seconds: float
    said: str


def read_tests(directory, only, replaced):
    """Fast tests that match `only`; `replaced` gives the paths of programs that stand in for those of the build."""
    command = ["ctest", "-L", "^fast$", "-R", only, "--show-only=json-v1"]
    shown = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    tests = []
    for test in json.loads(shown.stdout)["tests"]:
        known = {p["name"]: p["value"] for p in test["properties"]}
        tests.append(Test(
            name=test["name"], command=[replaced.get(word, word) for word in test["command"]],
            environment=dict(e.split("=", 1) for e in known.get("ENVIRONMENT", [])),
            directory=known.get("WORKING_DIRECTORY", str(directory)), processors=known.get("PROCESSORS", 1),
            serial=known.get("RUN_SERIAL", False), skip=known.get("SKIP_RETURN_CODE", 0),
            limit=known.get("TIMEOUT", 600)))
    return tests


class Slots:
    """As many at a time as the machine takes; one that must be alone waits for the others, and they for it."""

    def __init__(self, count):
        self.count, self.free, self.alone = count, count, 0
        self.changed = threading.Condition()

    def take(self, number, alone):
        number = self.count if alone else min(number, self.count)
        with self.changed:
            self.alone += alone
            self.changed.wait_for(lambda: self.free >= number and (alone or not self.alone))
            self.alone -= alone
            self.free -= number
        return number

    def give(self, number):
        with self.changed:
            self.free += number
            self.changed.notify_all()


def load():
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Runner:
    def __init__(self, jobs):
        self.slots = Slots(jobs)
        self.load_then = load()  # while the tests' own times were measured
        self.count, self.lock = 0, threading.Lock()

    def run(self, test, errors=(), reached=None):
        """`errors` are numbers that are on; `reached` is the file that gets the marks."""
        taken = self.slots.take(test.processors, test.serial)
        try:
            return self.run_now(test, errors, reached)
        finally:
            self.slots.give(taken)

    def limit(self, test):
        if not test.seconds:
            return 2 * test.limit
        return (3 * test.seconds + 10) * max(1.0, load() / self.load_then)

    def run_now(self, test, errors, reached):
        with self.lock:
            self.count += 1
            mark = f"LOCKSTEP_TRIAL={os.getpid()}.{self.count}"
        environment = {**os.environ, **test.environment, "LOCKSTEP_ERRORS": " ".join(map(str, errors))}
        environment.update([mark.split("=")])
        if reached:
            environment["LOCKSTEP_ERRORS_REACHED"] = str(reached)
        files = tempfile.mkdtemp(prefix="mutate-", dir=environment.get("TMPDIR", "/tmp"))
        environment["TMPDIR"] = files
        start = time.monotonic()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(test.command, cwd=test.directory, env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            try:
                code = process.wait(self.limit(test))
                how = "passed" if code == 0 or (test.skip and code == test.skip) else "failed"
            except subprocess.TimeoutExpired:
                how = "by time"
            end_all(process, mark)
            said.seek(max(0, said.seek(0, os.SEEK_END) - 4000))
            text = said.read().decode(errors="replace")
        shutil.rmtree(files, ignore_errors=True)
        return Outcome(how, time.monotonic() - start, text)


def limit_memory():
    """Of this process, and so of all that it starts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def end_all(process, mark):
    """Ends the group of the test, and whatever it started that is left; ranks have groups of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)  # a launcher then ends its ranks
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            pass
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue
    process.wait()
