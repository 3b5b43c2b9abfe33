"""Holds `trainer plan --nodes` to what a step takes here: on 2 ranks, and on 4, which may be more than there are cores."""

import json
import os
import statistics

from . import cases, runs, text

RANKS = (2, 4)
STRATEGIES = ("allreduce", "central_storage")
CONFIGS = {  # with as many replicas as there may be ranks, and steps for about two seconds
    "mlp": ("fashion_mlp_allreduce.toml", {}, 2000),
    "cnn": ("fashion_cnn_allreduce.toml", {"train.replicas": 4}, 200),
}
LINE = 0.25


def launch(ranks):
    if ranks <= len(os.sched_getaffinity(0)):
        return ["mpirun", "--bind-to", "core", "-np", ranks]
    return ["mpirun", "--oversubscribe", "--map-by", "core", "--bind-to", "core:overload-allowed", "-np", ranks]


def config_of(model):
    file, flags, _ = CONFIGS[model]
    return ["--config", runs.ROOT / "configs" / file, *runs.as_arguments(flags)]


def measured(bench, model, strategy, ranks):
    """Seconds of a step, without the first ones."""
    steps = CONFIGS[model][2]
    run = bench.fresh_run()
    flags = {"distribute.strategy": strategy, "train.steps": steps, "run.dir": run, "run.progress": "none", "eval.every": "never"}
    flags |= cases.leave_out_first(steps)
    bench.call([*launch(ranks), runs.TRAINER, *config_of(model), *runs.as_arguments(flags)])
    lines = cases.train_lines(run)
    first, last = lines[0], lines[-1]
    samples_of_step = (last["samples_seen"] - first["samples_seen"]) / (last["step"] - first["step"])
    return samples_of_step / cases.rate_after_first(lines)


def calibrated(bench, model):
    """What trainer bench says of two ranks, as a file, and the command."""
    report = bench.fresh_run().with_suffix(".json")
    bench.call([*launch(2), runs.TRAINER, "bench", *config_of(model), "--json", report])
    return report, bench.command


def predicted(bench, model, strategy, ranks, report):
    """Seconds of a step with the config's global batch."""
    file = bench.directory / "plan.json"
    command = [runs.TRAINER, "plan", *config_of(model), "--distribute.strategy", strategy, "--nodes", 1, "--ranks-per-node", ranks]
    bench.call([*command, "--from", report, "--json", file, "--overwrite"])
    return json.loads(file.read_text())["strong"]["growth"][0]["seconds"]


def rounds(bench, model):
    """(predicted, measured, the commands) of each round by strategy and ranks. Others change the machine's speed from minute to minute: what is predicted is the mean of two
    calibrations, before the runs on 2 and on 4 ranks and after them."""
    found = {(strategy, ranks): [] for strategy in STRATEGIES for ranks in RANKS}
    before, calibrating = calibrated(bench, model)
    for _ in range(bench.pairs):
        for strategy in STRATEGIES:
            took = [(measured(bench, model, strategy, ranks), bench.command) for ranks in RANKS]
            after, again = calibrated(bench, model)
            for ranks, (seconds, training) in zip(RANKS, took):
                foretold = statistics.mean(predicted(bench, model, strategy, ranks, report) for report in (before, after))
                found[strategy, ranks].append((foretold, seconds, [calibrating, training, again, bench.command]))
            before, calibrating = after, again
    return found


def forecast(bench):
    rows = []
    for model in CONFIGS:
        for (strategy, ranks), found in rounds(bench, model).items():
            *pairs, commands = zip(*found)
            ratios = [p / m for p, m in zip(*pairs)]
            p, m = (statistics.median(values) for values in pairs)
            ratio = statistics.median(ratios)
            rows.append([model, strategy, str(ranks), f"{1e3 * p:.2f} ms", f"{1e3 * m:.2f} ms", f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"])
            what = f"{model}, {strategy}, {ranks} ranks: step predicted to measured, off by"
            yield cases.Figure(what, abs(ratio - 1), LINE, f"{1e3 * p:.3g} ms to {1e3 * m:.3g} ms; {cases.spread(ratios)}", commands[-1], True)
    print(text.table(["config", "strategy", "ranks", "predicted", "measured", "predicted to measured"], rows))
