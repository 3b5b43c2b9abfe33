"""The order in which the figures of a run, or of a sweep's directory, are checked."""

import pathlib
import sys
from dataclasses import replace

from .chosen import check_calibration, check_threshold
from .commands import check_compare, check_eval, check_status
from .data_facts import check_data
from .importance import check_importance
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
from .sweeps import check_sweep
from .text_data import check_vocabulary
from .windows import why_not


def check_run(run_dir, trainer, cwd=".", longer=False, like=None):
    """The differences between what a run shows and what it should show. `longer`: also what inspect and importance say.
    `like`: a run of the same model, whose predictions stand in; no command is asked then."""
    directory, trainer, cwd = (pathlib.Path(each).absolute() for each in (run_dir, trainer, cwd))
    if not (directory / "sweep.json").exists():
        run = Run(directory, trainer, cwd)
        run.found |= {key: value for key, value in like.found.items() if len(key) == 2} if like else {}
        return check_one(run, longer, asks=like is None)
    sheet, found = Sheet(), []
    for run in check_sweep(sheet, directory, trainer, cwd):
        found += [replace(d, place=f"{run.directory.name}: {d.place}") for d in check_one(run, longer)]
    return sheet.finish() + found


def check_one(run, longer, asks=True):
    sheet = Sheet()
    if reason := why_not(run):
        print(f"{run.directory} is not audited: {reason}", file=sys.stderr)
        return []
    parts = [check_weights, check_record, check_plan, check_data, check_summary, check_counted_steps, check_metrics,
             check_threshold, check_calibration, check_single, check_page, check_schema, check_vocabulary]  # fmt: skip
    parts += [check_predictions, check_eval, check_compare, check_status] * asks + [check_inspect] * longer
    for part in parts:
        part(sheet, run)
    check_importance(sheet, run, ask=longer)
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
