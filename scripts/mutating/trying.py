"""How errors are tried: each with a minute of tests that reach it; what is left together, and told apart by halves."""

import concurrent.futures
import dataclasses
import pathlib
import sys
import tempfile
import threading

from mutating.suite import PRESET_JOBS, Runner, load

MINUTE = 60  # seconds of tests, by their own times, that an error is tried with by itself
AT_ONCE = 2


@dataclasses.dataclass
class Verdict:
    noticed_by: str = ""  # a test; "" if none
    how: str = ""  # failed, or by time
    tried: set = dataclasses.field(default_factory=set)  # tests that ran with it and passed
    reached_by: int = 0


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(tests, count, jobs=PRESET_JOBS):
    """Runs all tests without an error: gives each its time and the errors that it reaches. Names those that fail."""
    runner, failed = Runner(jobs), []

    def run(test):
        with tempfile.NamedTemporaryFile(prefix="mutate-reached-") as marks:
            marks.write(bytes(count + 1))
            marks.flush()
            outcome = runner.run(test, reached=marks.name)
            if outcome.how != "passed":
                outcome = runner.run(test, reached=marks.name)
            test.seconds = outcome.seconds
            test.reached = frozenset(i for i, mark in enumerate(pathlib.Path(marks.name).read_bytes()) if mark)
        if outcome.how != "passed":
            failed.append(test.name)
            say(f"without an error: {test.name}: {outcome.how}\n{outcome.said[-1500:]}")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, sorted(tests, key=lambda t: (t.serial, -t.processors))))
    return failed


class Trial:
    def __init__(self, tests, numbers, progress):
        self.tests = sorted(tests, key=lambda t: t.seconds)
        self.verdicts = {n: Verdict(reached_by=sum(n in t.reached for t in tests)) for n in numbers}
        self.progress = progress  # called with a number and its verdict
        self.lock = threading.Lock()
        self.load_then = load()

    def runner(self, jobs):
        runner = Runner(jobs)
        runner.load_then = self.load_then
        return runner

    def all(self):
        left = [n for n in self.verdicts if self.verdicts[n].reached_by]
        for number in self.verdicts.keys() - left:
            self.progress(number, self.verdicts[number])
        runner = self.runner(AT_ONCE)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda n: self.one(runner, n), left))
        say(f"{len(self.left())} of {len(self.verdicts)} are left for the joint run")
        runner = self.runner(PRESET_JOBS)
        with concurrent.futures.ThreadPoolExecutor(PRESET_JOBS) as pool:
            list(pool.map(lambda t: self.jointly(runner, t), sorted(self.tests, key=lambda t: (t.serial, -t.seconds))))

    def left(self):
        return [n for n, v in self.verdicts.items() if v.reached_by and not v.noticed_by]

    def one(self, runner, number):
        spent = 0.0
        for test in self.tests:
            if number not in test.reached:
                continue
            if spent + test.seconds > MINUTE:
                break
            spent += test.seconds
            if self.notices(runner, test, [number]):
                return
            self.verdicts[number].tried.add(test.name)
        self.progress(number, self.verdicts[number])

    def notices(self, runner, test, numbers):
        """Whether the test fails with these errors on, twice if it starts processes. Of a single error it is noted."""
        if runner.slots.count == AT_ONCE:
            test = dataclasses.replace(test, processors=1)
        outcome = runner.run(test, numbers)
        if outcome.how == "passed":
            return False
        if outcome.how == "failed" and test.several:
            again = runner.run(test, numbers)
            if again.how == "passed":
                return False
            outcome = again
        if len(numbers) == 1:
            with self.lock:
                verdict = self.verdicts[numbers[0]]
                verdict.noticed_by, verdict.how = test.name, outcome.how
            self.progress(numbers[0], verdict)
        return True

    def jointly(self, runner, test):
        """All errors at once that the test reaches and has not been tried with."""
        with self.lock:
            numbers = [n for n in self.left() if n in test.reached and test.name not in self.verdicts[n].tried]
        self.halves(runner, test, numbers)

    def halves(self, runner, test, numbers):
        with self.lock:
            numbers = [n for n in numbers if not self.verdicts[n].noticed_by]
        if not numbers or not self.notices(runner, test, numbers):
            return
        if len(numbers) > 1:
            middle = len(numbers) // 2
            self.halves(runner, test, numbers[:middle])
            self.halves(runner, test, numbers[middle:])
