"""Errors of the page's scripts: one changed copy each, tried by the suites of the page."""

import dataclasses
import pathlib
import re
import shutil

from mutating.draw import read
from mutating.trying import Verdict

UNIT = "unit/page_script_test"
SUITES = ("end_to_end/drawn_pages_test", "audit/pairs")  # with a trainer that has the changed page in it
NEEDED = ("test/unit/page_script_test.js", "test/support/draw_page.js", "src/report/page")


class PageTrial:
    def __init__(self, overlay, tests, runner):
        self.overlay, self.runner = overlay, runner
        self.tests = {t.name: t for t in tests}

    def verdict(self, error):
        verdict = Verdict(reached_by=sum(name in self.tests for name in (UNIT, *SUITES)))
        folder = self.overlay.directory / "page" / str(error.number)
        text = read(self.overlay.build.root / error.place.file)
        changed = text[:error.place.begin] + error.place.changed + text[error.place.end:]
        self.copy(folder, error.place.file, changed)
        for name in (UNIT, *SUITES):
            if name not in self.tests or verdict.noticed_by:
                continue
            replaced = {str(self.overlay.build.root / NEEDED[0]): str(folder / NEEDED[0])}
            if name in SUITES:
                replaced[self.overlay.trainer()] = self.trainer(folder, text, changed)
            test = self.tests[name]
            test = dataclasses.replace(test, command=[replaced.get(word, word) for word in test.command])
            outcome = self.runner.run(test)
            if outcome.how != "passed":
                verdict.noticed_by, verdict.how = name, outcome.how
        shutil.rmtree(folder)
        return verdict

    def copy(self, folder, file, changed):
        shutil.rmtree(folder, ignore_errors=True)
        for name in NEEDED:
            original, copy = self.overlay.build.root / name, folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if original.is_dir():
                shutil.copytree(original, copy)
            else:
                shutil.copy(original, copy)
        (folder / file).write_bytes(changed.encode("latin-1"))

    def trainer(self, folder, text, changed):
        """A trainer with the changed page, which is a text in one of its sources."""
        trainer = folder / "trainer"
        if not trainer.exists():
            unit = "CMakeFiles/lockstep_cold.dir/generated/report_page.cpp.o"
            source = folder / "report_page.cpp"
            page = read(self.overlay.build.directory / "generated" / "report_page.cpp")
            if page.count(text) != 1:
                raise SystemExit("error: the trainer's page does not have the text of the scripts: build it again")
            source.write_bytes(page.replace(text, changed).encode("latin-1"))
            made = f"{folder}/report_page.o"
            command = re.sub(r" -c \S+", f" -c {source}", self.overlay.build.commands[unit]).replace(unit, made)
            self.overlay.must(command)
            link = self.overlay.command("trainer").replace(self.overlay.trainer(), str(trainer))
            self.overlay.must(re.sub(r" -o ", f" {made} -o ", link, count=1))
        return str(trainer)
