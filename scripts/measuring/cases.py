"""What scripts/bench measures: each case gives figures, each with the line that it must reach."""

import array
import dataclasses
import functools
import itertools
import json
import pathlib
import random
import re
import shlex
import statistics
import subprocess
import time

from . import runs

PEERS = runs.ROOT / "scripts/peers"
PEERS_PYTHON = PEERS / "python"
DDP = [PEERS_PYTHON, PEERS / "ddp.py"]
MULTI_WORKER_MIRRORED = [PEERS_PYTHON, "--tensorflow", PEERS / "multi_worker_mirrored.py"]
GPT = [PEERS_PYTHON, PEERS / "gpt.py"]
GPTS = {"gpt": (65, 128, 4, 4), "gpt2": (50257, 768, 12, 12)}  # tokens, width, blocks, heads
GPT_TOKENS = 640_000
CONVS = "conv2d(32, 3, padding=same) {norm} relu maxpool(2) conv2d(64, 3, padding=same) {norm} relu maxpool(2) flatten dense(128) relu dense(10)"
MODELS = {
    "mlp": "dense(256) relu dense(128) relu dense(10)",
    "wide": "dense(2048) relu dense(2048) relu dense(10)",
    "cnn": CONVS.format(norm=""),
    "bncnn": CONVS.format(norm="batch_norm"),
    # The narrow first layer makes two equal halves: the first layer of a net has no gradient of its input to compute.
    "halves": "dense(16) dense(1024) relu dense(1024) relu dense(1024) relu dense(1024) relu dense(1024) relu dense(10)",
    **{f"{layer}{positions}": f"{'as_sequence(28) ' * (positions == 28)}{layer}(128, last=true) dense(10)" for layer in ("lstm", "gru") for positions in (28, 128)},
    **{name: f"embedding({tokens}, {width}, init=normal(0.02)) positions(learned, init=normal(0.02)) transformer({blocks}, {heads}, causal=true, bias=false) "
       f"layer_norm dense({tokens}, bias=false, tie=0)" for name, (tokens, width, blocks, heads) in GPTS.items()},
    "tcn": f"{3 * 'conv1d(64, 9, padding=same) relu '}mean_over_time dense(10)",
}
CUT_OF_HALVES = "7"
SEQUENCES = pathlib.Path(__file__).resolve().parent / "sequences.toml"
TEXTS = SEQUENCES.with_name("gpt.toml")
RANDOM_SAMPLES = 4096  # as many as ddp.py makes
CHANNELS = 16
POSITIONS_OF_RANDOM = {"lstm128": 128, "gru128": 128, "tcn": 512}


@dataclasses.dataclass
class Figure:
    """A ratio, the line that it must not be below (or above), and how it came about."""

    what: str
    ratio: float
    line: float
    detail: str
    commands: list  # that made it, with what they need of the environment
    at_most: bool = False
    rate: float = 0  # our samples/s, where it is a ratio of those
    share: float = 0  # of the cores' multiply-adds, where it is known

    @property
    def missed(self):
        return self.ratio > self.line if self.at_most else self.ratio < self.line

    def __str__(self):
        bound = "at most" if self.at_most else "at least"
        verdict = "MISSES THE LINE" if self.missed else "ok"
        return "\n    ".join([f"{self.what}: {self.ratio:.3g} ({bound} {self.line:g}) {verdict}; {self.detail}", *self.commands])

    def record(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass
class Skipped:
    """Stands for figures that this machine cannot give."""

    reason: str
    missed = False

    def __str__(self):
        return f"skipped: {self.reason}"

    def record(self):
        return {"skipped": self.reason}


def spread(values):
    return f"{statistics.median(values):,.4g} ({min(values):,.4g} to {max(values):,.4g})"


def leave_out_first(steps):
    """How often a run of so many steps logs, so that what follows its first line leaves out the first 20th, 5 steps at least: they make kernels and touch memory."""
    return {"run.log_every": max(5, int(steps / 20))}


def train_lines(directory):
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "train"]


def rate_after_first(lines):
    """Samples/s from the first of these lines of metrics to the last; a line tells the rate since the one before."""
    samples = [after["samples_seen"] - before["samples_seen"] for before, after in itertools.pairwise(lines)]
    return sum(samples) / sum(count / line["samples_per_second"] for count, line in zip(samples, lines[1:]))


def npy(shape, values, kind="|u1"):
    """An array file, of bytes or of another kind of numbers."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},)}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


@functools.cache
def random_sequences(positions):
    """Where their files are: the trainer's own synthetic data are computed in each step, on the core that trains."""
    directory = runs.ROOT / "build/bench"
    directory.mkdir(parents=True, exist_ok=True)
    random_bytes = random.Random(1).randbytes
    arrays = {f"x{positions}.npy": ((RANDOM_SAMPLES, positions, CHANNELS), random_bytes(RANDOM_SAMPLES * positions * CHANNELS)),
              "y.npy": ((RANDOM_SAMPLES,), bytes(byte % 10 for byte in random_bytes(RANDOM_SAMPLES)))}  # fmt: skip
    for name, (shape, values) in arrays.items():
        (directory / name).write_bytes(npy(shape, values))
    return {"data.train": directory / f"x{positions}.npy", "data.train_labels": directory / "y.npy"}


@functools.cache
def random_tokens(tokens):
    """Where they are, with the largest among them, which says how many there are."""
    directory = runs.ROOT / "build/bench"
    directory.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1).randrange
    ids = array.array("H", [tokens - 1, *(draw(tokens) for _ in range(GPT_TOKENS))])
    path = directory / f"ids{tokens}.npy"
    path.write_bytes(npy((len(ids),), ids.tobytes(), "<u2"))
    return {"data.train": path}


class Bench:
    """Runs both sides, pinned to cores, as many to a rank as it has threads."""

    def __init__(self, directory, pairs):
        self.directory = directory
        self.pairs = pairs
        self.settings = {"OMP_NUM_THREADS": "1"}
        self.environment = runs.mpi_environment() | self.settings
        self.command = ""  # the last one
        self.core_flops = 0  # the most multiply-adds a second, of several looks: others take their share now and then

    def call(self, command):
        self.command = shlex.join([*(f"{key}={value}" for key, value in self.settings.items()), *map(str, command)])
        done = subprocess.run([str(word) for word in command], cwd=runs.ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def launch(self, ranks, threads=1):
        return ["mpirun", "--map-by", f"slot:PE={threads}", "--bind-to", "core", "-np", ranks]

    def config(self, ranks, model, batch):
        config = {"model.layers": MODELS[model], "distribute.strategy": "auto", "distribute.reduction": "native", "train.replicas": ranks, "train.per_replica_batch": batch}
        if model in POSITIONS_OF_RANDOM:
            config |= random_sequences(POSITIONS_OF_RANDOM[model])
        if model in GPTS:
            config |= random_tokens(GPTS[model][0])
        return config

    def flags(self, model, config):
        """Of a command, with the file that `config` changes."""
        file = SEQUENCES if model in POSITIONS_OF_RANDOM else TEXTS if model in GPTS else runs.CONFIG
        return ["--config", file, *runs.as_arguments(config)]

    def fresh_run(self):
        return self.directory / f"run{time.monotonic_ns()}"

    def run(self, ranks, model, batch, flags):
        """One run of the trainer; gives its directory."""
        directory = self.fresh_run()
        all_flags = self.config(ranks, model, batch) | {"run.dir": directory, "run.progress": "none", "eval.every": "never"} | flags
        launch = self.launch(ranks, all_flags.get("train.threads", 1))
        self.call([*launch, runs.TRAINER, *self.flags(model, all_flags)])
        return directory

    def train(self, ranks, model, batch, epochs, flags=None):
        """Our samples/s, without the first steps: see leave_out_first(). The peer leaves out five."""
        flags = {"train.epochs": epochs} | (flags or {})
        config = self.config(ranks, model, batch) | flags
        samples = RANDOM_SAMPLES if model in POSITIONS_OF_RANDOM else runs.FASHION_MNIST_SAMPLES
        steps = samples * epochs / (config["train.replicas"] * config["train.per_replica_batch"])
        return rate_after_first(train_lines(self.run(ranks, model, batch, flags | leave_out_first(steps))))

    def train_steps(self, ranks, model, batch, steps):
        return rate_after_first(train_lines(self.run(ranks, model, batch, {"train.steps": steps} | leave_out_first(steps))))

    def peer(self, peer, ranks, model, batch, epochs, threads=1):
        """The peer's samples/s, of so many ranks or of one process with so many threads."""
        if subprocess.run([str(word) for word in peer[:-1]], check=False).returncode != 0:  # installs it, where it is missing
            raise SystemExit(1)
        command = [*peer, model, batch, epochs]
        alone = ["env", f"OMP_NUM_THREADS={threads}", "taskset", "-c", f"0-{threads - 1}", *command]
        text = self.call([*self.launch(ranks), *command] if ranks > 1 else alone)
        return float(re.search(r"samples_per_s=([\d.]+)", text).group(1))

    def machine(self, ranks, model, batch):
        """What trainer bench says."""
        report = self.directory / "bench.json"
        flags = self.flags(model, self.config(ranks, model, batch))
        self.call([*self.launch(ranks), runs.TRAINER, "bench", "--json", report, "--overwrite", *flags])
        found = json.loads(report.read_text())
        self.core_flops = max(self.core_flops, found["machine"]["flops"])
        return found

    def compare(self, what, line, ours, theirs):
        """Both in turn, after one uncounted run of each."""
        commands = []
        for side in (ours, theirs):
            side()
            commands.append(self.command)
        a, b = zip(*[(ours(), theirs()) for _ in range(self.pairs)])
        ratio = statistics.median(x / y for x, y in zip(a, b))
        return Figure(what, ratio, line, f"{spread(a)} against {spread(b)} samples/s", commands, rate=statistics.median(a))

    def share(self, ranks, model, batch, rate):
        """The share of the cores' multiply-adds that so many samples/s take."""
        step = self.machine(ranks, model, batch)["step"]
        return rate * step["flops"] / step["samples_per_second"] / (ranks * self.core_flops)

    def against(self, peer, what, line, model, batch, ours, peer_epochs, ranks=2, threads=1):
        """So many ranks against as many of the peer, or its threads; and the share of the cores' multiply-adds that our rate takes, and that one at the line would take: a line near 100 % asks for what the cores do not have."""
        self.machine(ranks, model, batch)
        shape = (1, model, batch * ranks) if threads > 1 else (ranks, model, batch)
        figure = self.compare(what, line, ours, lambda: self.peer(peer, *shape, peer_epochs, threads))
        share = self.share(ranks, model, batch, figure.rate)
        at_line = f", at the line {share * line / figure.ratio:.0%}" if line else ""
        figure.detail += f"; {share:.0%} of the multiply-adds that the cores can make{at_line}"
        figure.commands.append(self.command)
        figure.share = share
        return figure

    def beside(self, peer, what, line, *rest):
        """As against(), where the line is of the share, and the ratio is only reported."""
        figure = self.against(peer, what, 0, *rest)
        return dataclasses.replace(figure, what=f"{what}: share of the multiply-adds", ratio=figure.share, line=line, detail=f"{figure.ratio:.3g} times the peer: {figure.detail}")


def mlp(bench):
    two = lambda: bench.train(2, "mlp", 64, 6)  # noqa: E731
    one = lambda: bench.train(1, "mlp", 64, 4)  # noqa: E731
    yield bench.against(DDP, "2 ranks to DDP, batch 64", 6, "mlp", 64, two, 1)
    yield bench.compare("2 ranks to 1", 1.85, two, one)
    yield bench.compare("1 rank to PyTorch alone", 1.3, one, lambda: bench.peer(DDP, 1, "mlp", 64, 1))


def wide(bench):
    yield bench.against(DDP, "2 ranks to DDP, batch 64", 3.5, "wide", 64, lambda: bench.train(2, "wide", 64, 0.5), 0.2)
    yield bench.against(DDP, "2 ranks to DDP, batch 512", 1.4, "wide", 512, lambda: bench.train(2, "wide", 512, 1), 0.7)
    shares = []
    for _ in range(bench.pairs):
        report = bench.machine(2, "wide", 512)
        forward = [node for node in report["ops"] if node["forward_flops"]]
        gemm = max(node["forward_flops"] / node["forward_seconds"] for node in forward)
        shares.append(report["step"]["flops"] / report["ranks"] / gemm)
    yield Figure("batch 512, share of the measured GEMM rate", statistics.median(shares), 0.75, spread(shares), [bench.command])


def cnn(bench):
    two = lambda: bench.train(2, "cnn", 64, 0.5)  # noqa: E731
    yield bench.against(DDP, "2 ranks to DDP, batch 64", 2.5, "cnn", 64, two, 0.3)
    yield bench.compare("2 ranks to 1", 1.9, two, lambda: bench.train(1, "cnn", 64, 0.3))


SEQUENCE_PEERS = {1: "1 rank to PyTorch alone", 2: "2 ranks to DDP"}


def recurrent(layer):
    """Fashion-MNIST as 28 steps of 28 against PyTorch, and the share of the cores at 128 steps."""

    def figures(bench):
        short, long = f"{layer}28", f"{layer}128"
        for ranks, line in ((1, 1.4), (2, 2.5)):
            yield bench.against(DDP, f"T 28, {SEQUENCE_PEERS[ranks]}, batch 64", line, short, 64, lambda: bench.train(ranks, short, 64, 0.5 * ranks), 0.3, ranks)  # noqa: B023
        for ranks in SEQUENCE_PEERS:
            yield bench.beside(DDP, f"T 128, {SEQUENCE_PEERS[ranks]}, batch 64", 0.75, long, 64, lambda: bench.train(ranks, long, 64, 2 * ranks), 1, ranks)  # noqa: B023

    return figures


def tcn(bench):
    for ranks in SEQUENCE_PEERS:
        yield bench.beside(DDP, f"T 512, {SEQUENCE_PEERS[ranks]}, batch 64", 0.75, "tcn", 64, lambda: bench.train(ranks, "tcn", 64, ranks), 1, ranks)  # noqa: B023


def gpt(bench):
    """Both cores on each side: two ranks here, two threads there, as they come or compiled."""
    for model, batch, steps, figure, line in (("gpt", 6, 300, bench.against, 1 / 0.6), ("gpt2", 2, 20, bench.beside, 0.65)):
        ours = lambda: bench.train_steps(2, model, batch, steps)  # noqa: B023, E731
        yield figure(GPT, f"{model}, T 64, {2 * batch} samples: 2 ranks to PyTorch with 2 threads", line, model, batch, ours, steps, 2, 2)


def tensorflow(bench):
    for model, epochs, peer_epochs, line in (("mlp", 6, 1, 6), ("cnn", 0.5, 0.3, 2)):
        two = lambda: bench.train(2, model, 64, epochs)  # noqa: B023, E731
        yield bench.against(MULTI_WORKER_MIRRORED, f"{model}, 2 ranks to MultiWorkerMirrored, batch 64", line, model, 64, two, peer_epochs)


def bncnn(bench):
    local = lambda: bench.train(2, "bncnn", 64, 0.4)  # noqa: E731
    yield bench.against(DDP, "2 ranks to DDP, batch 64, local", 2.5, "bncnn", 64, local, 0.2)
    sync = lambda: bench.train(2, "bncnn", 64, 0.4, {"model.batch_norm": "sync"})  # noqa: E731
    yield bench.compare("sync to local", 0.9, sync, local)


def threads(bench):
    """Two replicas of one rank, on a core each."""
    for model, epochs in (("mlp", 5), ("wide", 0.5), ("cnn", 0.4)):
        of = lambda count: lambda: bench.train(1, model, 64, epochs, {"train.replicas": 2, "train.threads": count})  # noqa: B023, E731
        yield bench.compare(f"{model}, 1 rank: 2 threads to 1, batch 64 a replica", 1.85, of(2), of(1))


def update(bench):
    """Exchange and optimizer step, without anything else."""
    found = {}
    lines = []  # which tell whether the cores have a cache in common: with one each, the 4 M weights fit better
    for _ in range(bench.pairs):
        plain = None
        report = bench.machine(2, "mlp", 64)
        lines.append(1e9 * report["cache_line_seconds"])
        for rate in report["updates"]:
            if rate["name"].startswith("MPI"):
                plain = rate["seconds"]
            else:
                found.setdefault((rate["weights"], rate["name"]), []).append(plain / rate["seconds"])
    for (weights, name), ratios in found.items():
        if name == "central_storage":
            yield Figure(f"{name}, {weights:,} weights, to MPI_Allreduce and a step", statistics.median(ratios), 4, f"{spread(ratios)}; a cache line takes {spread(lines)} ns", [bench.command])


def ordered(bench):
    for model, epochs in (("mlp", 6), ("cnn", 0.5)):
        for factor, line in ((1, 0.95), (4, 0.85)):
            flags = {"train.replicas": 2 * factor, "train.per_replica_batch": 64 // factor}
            native = lambda: bench.train(2, model, 64, epochs, flags)  # noqa: B023, E731
            tree = lambda: bench.train(2, model, 64, epochs, flags | {"distribute.reduction": "ordered"})  # noqa: B023, E731
            yield bench.compare(f"{model}, ordered to native, {factor} replicas a rank", line, tree, native)


def bf16(bench):
    if not runs.has_bf16():
        yield Skipped("this CPU has no bf16")
        return
    half = lambda: bench.train(2, "wide", 512, 1, {"train.precision": "bf16"})  # noqa: E731
    yield bench.compare("wide, 2 ranks, batch 512, bf16 to fp32", 1.4, half, lambda: bench.train(2, "wide", 512, 1))


def startup(bench):
    """The whole process, from mpirun to its end, with one step and no evaluation in between."""
    seconds = []
    for _ in range(bench.pairs + 1):
        started = time.monotonic()
        bench.run(2, "mlp", 64, {"train.steps": 1})
        seconds.append(time.monotonic() - started)
    yield Figure("seconds from mpirun to the end of one step and a test", statistics.median(seconds[1:]), 1, spread(seconds[1:]), [bench.command], True)


def pipeline(bench):
    """Two stages on two cores: the time in which they are idle, against the formula, and their rate against data parallel ranks."""
    slow = {"train.lr": 0.001, "distribute.reduction": "ordered"}
    stages = slow | {"distribute.stages": 2, "distribute.cut": CUT_OF_HALVES}
    for schedule in ("1f1b", "gpipe"):
        for micro_batches in (2, 4, 8, 16):
            flags = stages | {"distribute.schedule": schedule, "train.replicas": micro_batches, "train.steps": 800 // micro_batches}
            found = []
            for _ in range(bench.pairs):
                time = json.loads((bench.run(2, "halves", 64, flags) / "summary.json").read_text())["time"]
                idle = time["idle"]
                found.append(100 * idle / (idle + time["compute"] - time["optimizer"]))
            formula = 100 / (micro_batches + 1)
            yield Figure(f"{schedule}, {micro_batches} micro-batches: points of idle time above (S - 1) / (m + S - 1)", statistics.median(found) - formula, 5,
                         f"{spread(found)} % against {formula:.3g} %", [bench.command], True)  # fmt: skip
    eight = {"train.replicas": 8}
    staged = lambda: bench.train(2, "halves", 64, 0.5, eight | stages)  # noqa: E731
    together = lambda: bench.train(2, "halves", 64, 0.5, eight | slow)  # noqa: E731
    yield bench.compare("2 stages with 8 micro-batches to 2 data parallel ranks, equal halves", 0.85, staged, together)


CASES = {"mlp": mlp, "wide": wide, "cnn": cnn, "lstm": recurrent("lstm"), "gru": recurrent("gru"), "tcn": tcn, "gpt": gpt, "tensorflow": tensorflow, "bncnn": bncnn, "threads": threads, "update": update, "ordered": ordered, "bf16": bf16, "startup": startup,
         "pipeline": pipeline}  # fmt: skip
