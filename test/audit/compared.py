"""What `trainer compare` says of several runs: each row as that of the run by itself, keys as their configs have
them."""

import csv
import io
import pathlib

from .positive import number
from .report import Sheet
from .run import Run

PLACE = "compare of several: "


def check_compared(directories, trainer, cwd):
    sheet = Sheet()
    runs = {str(directory): Run(pathlib.Path(cwd) / directory, trainer, cwd) for directory in directories}
    any_run = next(iter(runs.values()))
    table = lambda *of: list(csv.DictReader(io.StringIO(any_run.command("compare", *of, "--csv", "-")[1])))
    for row in table(*runs):
        run = runs[row["run"]]
        (alone,) = table(row["run"])
        for name, shown in row.items():
            if "." in name:
                check_key(sheet, run, name, shown)
            else:
                sheet.equal(f"{PLACE}{name} as alone", shown, alone.get(name, ""))
    return sheet.finish()


def check_key(sheet, run, key, shown):
    """A key that the runs have with different values."""
    right = run.config.get(key)
    text = "" if right is None else str(right).lower() if isinstance(right, bool) else str(right)
    if isinstance(right, (list, float)):
        text = ",".join(right) if isinstance(right, list) else f"{right:g}"
    if key in run.config.idle:
        sheet.equal(PLACE + key, shown, "")  # it has no effect on this run
        return
    sheet.check(PLACE + key, shown, text, lambda a, b: a == b or number(a) is not None and number(a) == number(b))
