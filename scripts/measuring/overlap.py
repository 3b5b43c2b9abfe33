"""Two hosts on one machine with a slow link between them, and what of the exchange is hidden there."""

import dataclasses
import json
import os
import shutil
import statistics
import subprocess

from . import hosts, runs

RATE = "1gbit"
LINE = 0.5  # share of what can be hidden that has to be
BATCH = 1024
STEPS = 40
ONE_BUCKET = 1_000_000  # KiB: more than the gradient
MODEL = {"model.layers": "dense(2048) relu dense(2048) relu dense(10)", "train.replicas": 2, "train.lr": 0.01,
         "train.schedule": "constant", "eval.every": "never"}  # fmt: skip
CASES = {
    "auto": {"distribute.reduction": "native", "distribute.strategy": "allreduce"},
    "native": {"distribute.reduction": "native", "distribute.algorithm": "ring"},
    "helper": {"distribute.reduction": "native", "distribute.algorithm": "ring", "distribute.progress_thread": "true"},
    "ordered": {"distribute.reduction": "ordered"},
    "zero1": {"distribute.reduction": "native", "distribute.strategy": "zero1"},
}
# Half of what zero1 sends are new weights, after the step: there is nothing to hide them behind.
NOT_HELD = {"zero1"}
# 64 million weights: 256 MB of gradients, while the activations of a micro-batch that cross a cut are 256 KiB. Two stages of about equal work, 64 samples a step.
STAGES_LINE = 3
STAGES_MODEL = {"model.layers": "dense(4096) relu dense(4096) relu dense(4096) relu dense(4096) relu dense(2048) relu dense(10)", "train.replicas": 4,
                "train.per_replica_batch": 16, "train.steps": 6, "train.lr": 0.01, "train.schedule": "constant", "eval.every": "never",
                "checkpoint.every": "never", "data.test": "", "data.test_labels": "", "report.html": "false",
                "distribute.reduction": "native", "distribute.strategy": "allreduce"}  # fmt: skip
ALONE = {"distribute.reduction": "native", "distribute.strategy": "local_sgd", "distribute.average_every": 1_000_000}


def require_tools():
    hosts.require_tools()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("error: each rank needs a core of its own, and there is only one")


def halves(cores):
    """As taskset wants them."""
    half = len(cores) // 2
    return [",".join(map(str, part)) for part in (cores[:half], cores[half : 2 * half])]


@dataclasses.dataclass
class Times:
    """Seconds of a step."""

    step: float
    exchange: float
    backward: float


class Link(hosts.Hosts):
    """Two hosts with a slow link between them."""

    def __init__(self, directory):
        super().__init__(directory, 2, RATE)

    def make(self):
        super().make()
        first, second = halves(sorted(os.sched_getaffinity(0)))
        self.script("rank", f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && cores={first} || cores={second}\n'
                            f'exec taskset -c $cores {runs.TRAINER} "$@"\n')  # fmt: skip

    def train(self, flags):
        """One run: a rank on each host, on cores of its own."""
        run = self.directory / "run"
        shutil.rmtree(run, ignore_errors=True)
        command = [*self.mpirun([0, 1]), str(self.directory / "rank"), "--config", str(runs.CONFIG), *runs.as_arguments(flags), "--run.dir", str(run),
                   "--run.progress", "none"]  # fmt: skip
        with subprocess.Popen(command, cwd=runs.ROOT, env=runs.mpi_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
            try:
                said = started.communicate()[0]
            except BaseException:
                started.terminate()  # mpirun then ends the ranks
                raise
        if started.returncode != 0:
            raise SystemExit(f"error: {' '.join(command)}\n{said}")
        summary = json.loads((run / "summary.json").read_text())
        step, time = summary["seconds"] / summary["steps"], summary["time"]
        return Times(step, step * time["communication"], step * (time["compute"] - time["forward"] - time["optimizer"]))


def in_turn(link, kinds, arguments):
    """The median of each kind of run."""
    size = MODEL | {"train.per_replica_batch": arguments.batch, "train.steps": arguments.steps}
    times = {name: [] for name in kinds}
    for _ in range(arguments.rounds):
        for name, flags in kinds.items():
            times[name].append(link.train(size | flags))
    return {name: Times(*(statistics.median(getattr(one, field.name) for one in all_of) for field in dataclasses.fields(Times)))
            for name, all_of in times.items()}  # fmt: skip


def milliseconds(seconds):
    return f"{1000 * seconds:.0f} ms"


def measure(link, arguments):
    """The least share, over the cases that are held to the line, that is hidden of what can be. Nothing leaves before backward has begun, so backward and exchange both bound that."""
    kinds = {"alone": ALONE}
    for case in arguments.cases:
        kinds |= {f"{case} without": CASES[case] | {"distribute.bucket_kib": ONE_BUCKET}, f"{case} with": CASES[case]}
    found = in_turn(link, kinds, arguments)
    alone = found["alone"]
    print(f"{arguments.batch} samples of a rank; a step without any exchange {milliseconds(alone.step)}, of it backward {milliseconds(alone.backward)}\n")
    print("| | exchange alone | step without overlap | step with overlap | can be hidden at most | hidden | share |\n|---|---|---|---|---|---|---|")
    shares = []
    for case in arguments.cases:
        without, overlapped = found[f"{case} without"], found[f"{case} with"]
        limit = min(without.exchange, alone.backward)
        hidden = without.step - overlapped.step
        cells = [without.exchange, without.step, overlapped.step, limit, hidden]
        print(f"| {case} | {' | '.join(milliseconds(cell) for cell in cells)} | {100 * hidden / limit:.0f} % |")
        if case not in NOT_HELD:
            shares.append(hidden / limit)
    return min(shares, default=LINE)


def compare_buckets(link, arguments):
    """A line for each case and size: how long a step takes."""
    for case in arguments.cases:
        kinds = {f"{size} KiB": CASES[case] | {"distribute.bucket_kib": size} for size in arguments.buckets}
        print(f"\n{case}, {arguments.batch} samples of a rank")
        for name, times in in_turn(link, kinds, arguments).items():
            print(f"  {name:<30} {milliseconds(times.step)}", flush=True)


def compare_stages(link, arguments):
    """How many times as fast two stages are as two data parallel ranks, on a net with much more gradient than activations."""
    times = {"data parallel": [], "2 stages": []}
    for _ in range(arguments.rounds):
        for name, flags in (("data parallel", {}), ("2 stages", {"distribute.stages": 2})):
            times[name].append(link.train(STAGES_MODEL | flags).step)
    for name, all_of in times.items():
        print(f"  {name:<14} {milliseconds(statistics.median(all_of))} a step ({', '.join(map(milliseconds, all_of))})", flush=True)
    ratio = statistics.median(one / other for one, other in zip(*times.values()))
    print(f"  stages are {ratio:.3g} times as fast (at least {STAGES_LINE})")
    return ratio
