"""evaluation.json: single predictions of the set that a run was evaluated on at its end, with the weights that it
keeps."""

from .curves import check_curves
from .records import check_fits, check_worst
from .summary import figures_of
from .windows import check_windows


def check_single(sheet, run):
    json = run.evaluation
    if json is None:
        return
    sheet.document("evaluation.json", json)
    split = json["split"]
    sheet.equal("evaluation.json: split", split, "test" if run.has_test() else "validation")
    dataset = run.sets[split]
    if dataset is None:
        sheet.rename("evaluation.json: ", "made-up data: evaluation.json: ")
        return
    figures = figures_of(run, split)
    sheet.equal("evaluation.json: samples", json["samples"], len(dataset))
    check_curves(sheet, json, figures)
    check_fits(sheet, run, json, figures)
    check_worst(sheet, run, json, figures, dataset.counted())
    check_windows(sheet, run, json)
