"""The order in which the figures of a run, or of a sweep's directory, are checked."""

import json
import pathlib
import sys
from dataclasses import replace

from .chosen import check_calibration, check_threshold
from .commands import check_compare, check_eval, check_status
from .importance import check_importance
from .log import check_log, check_told
from .losses import log_softmax
from .page import check_page
from .plan import check_plan
from .predictions import check_predictions
from .record import check_record
from .report import Sheet
from .run import Run
from .seen import check_inspect, check_schema
from .single import check_single
from .steps import check_counted_steps
from .summary import check_metrics, check_summary
from .text_data import check_vocabulary
from .sweep_words import check_console
from .sweeps import check_sweep
from .windows import why_not

PARTS = [check_record, check_summary, check_counted_steps, check_metrics, check_threshold, check_calibration, check_single, check_log, check_plan, check_page, check_schema, check_vocabulary, check_predictions, check_eval, check_compare, check_status]  # fmt: skip
LONGER = [check_inspect, lambda sheet, run: check_importance(sheet, run, ask=True)]


def check_run(run_dir, trainer, cwd=".", longer=False, console=""):
    """The differences between what a run shows and what it should show. `longer`: also what inspect and importance say;
    `console`: what the run, the sweep or the cross-validation printed."""
    directory, trainer, cwd = (pathlib.Path(each).absolute() for each in (run_dir, trainer, cwd))
    if (directory / "sweep.json").exists():
        sheet = Sheet()
        found = []
        for run in check_sweep(sheet, directory, trainer, cwd):
            found += [replace(d, place=f"{run.directory.name}: {d.place}") for d in check_one(run, longer)]
        if console:
            check_console(sheet, json.loads((directory / "sweep.json").read_text()), console)
        return sheet.finish() + found
    return check_one(Run(directory, trainer, cwd), longer, console)


def check_one(run, longer, console=""):
    sheet = Sheet()
    if reason := why_not(run):
        print(f"{run.directory} is not audited: {reason}", file=sys.stderr)
        return []
    check_told(sheet, run, console)
    check_weights(sheet, run)
    for part in PARTS + (LONGER if longer else []):
        part(sheet, run)
    return sheet.finish()


def check_weights(sheet, run):
    """What `predict` gives is what the weights give."""
    for split in ("validation", "test"):
        dataset = run.sets[split]
        if dataset is None or dataset.windows or dataset.text or (own := run.own_outputs(split)) is None:
            continue
        given = run.given_outputs(split)
        values = log_softmax(own.values) if run.form.link == "softmax" else own.values
        off = abs(values - given.values) > 4 * (own.error + given.error) + 1e-6
        sheet.equal(f"predict: {split}: outputs that the weights do not give", int(off.sum()), 0)
