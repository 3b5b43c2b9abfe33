"""One page for a lecture: what a step, an epoch and a slow worker mean to each strategy, in questions and answers that follow from runs."""

import dataclasses
import hashlib
import json

from . import charts, parts, runs

TITLE = "One model, trained in six ways: what strategies do"
FAST, SLOW_RATE = parts.LR * parts.WORKERS, parts.LR
ORDERED = {"distribute.reduction": "ordered"}
ALL_REDUCE, ASYNC = "synchronous all-reduce", "asynchronous parameter server"
# What a strategy is called, its flags, and the learning rate that suits the samples of its steps.
STRATEGIES = {
    ALL_REDUCE: (ORDERED, FAST),
    "ZeRO-1 (optimizer state divided)": (ORDERED | {"distribute.strategy": "zero1"}, FAST),
    "synchronous parameter server": (ORDERED | parts.SERVERS, FAST),
    ASYNC: (parts.ASYNC, SLOW_RATE),
    "parameter server with bounded staleness": (parts.BOUNDED, SLOW_RATE),
    "local SGD (average every 8 steps)": ({"distribute.strategy": "local_sgd"}, FAST),
}
# An epoch of few records: most of them are held back.
ONE_EPOCH = ORDERED | {"train.lr": FAST, "train.epochs": 1, "data.validation": "share(0.9)", "train.keep": "last"}
SLOWED = (ALL_REDUCE, ASYNC)
SLOW_WORKER = parts.WORKERS - 1


@dataclasses.dataclass
class Shown:
    """A run with what the page says of it."""

    name: str
    flags: dict
    result: runs.Result
    weights: str  # a hash of the model file
    numbers: dict  # what trainer report --json has

    def losses(self, x):
        """The training loss, over "step" or "samples"."""
        curve = next(each for each in self.numbers["curves"] if (each["split"], each["measure"]) == ("train", "loss"))
        return [(at, loss) for at, loss in zip(curve[x], curve["y"]) if loss is not None]

    @property
    def staleness(self):
        """How many gradients had each staleness."""
        counts = [worker["staleness"] for worker in self.numbers["workers"]]
        return [sum(each[i] for each in counts if i < len(each)) for i in range(max(map(len, counts), default=0))]


def train(trainer, directory, name, flags):
    """One run on all workers; a lecture has no use for one that diverged."""
    result = trainer.train(parts.WORKERS, parts.base() | flags, directory)
    run = trainer.directory / directory
    if result.diverged:
        raise SystemExit(f"error: {name} diverged: {runs.as_arguments(flags)}")
    done = trainer.call([str(runs.TRAINER), "report", str(run), "--json", "-"])
    if done.returncode != 0:
        raise SystemExit(f"error: {done.stdout}{done.stderr}")
    weights = hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()
    return Shown(name, flags, result, weights, json.loads(done.stdout)["runs"][0])


def capital(words):
    return words[0].upper() + words[1:]


def listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def steps_section(shown):
    first = shown[ALL_REDUCE].result
    per_step = {name: run.result.samples / run.result.steps for name, run in shown.items()}
    stale = per_step[ASYNC]
    answer = f"""No. A step of {ALL_REDUCE} takes {per_step[ALL_REDUCE]:.0f} samples, {parts.BATCH} from each of {parts.WORKERS} workers. A step of an asynchronous
        parameter server is the gradient of one worker, {stale:.0f} samples, applied as it arrives: {shown[ASYNC].result.steps:,} steps for the same samples
        instead of {first.steps:,}. So "after 1,000 steps" says nothing until you know what a step is; compare after the same number of samples."""
    rows = [[name, f"{run.result.steps:,}", f"{per_step[name]:.0f}", f"{run.flags['train.lr']:g}", f"{run.result.accuracy:.2f} %"] for name, run in shown.items()]
    return charts.section("Is a step the same in each of them?", answer,
                          charts.bars(f"Steps for the same {first.samples:,} samples", [(name, run.result.steps, i) for i, (name, run) in enumerate(shown.items())]),
                          charts.table(["strategy", "steps", "samples of a step", "learning rate", "test accuracy"], rows))  # fmt: skip


def same_bits(shown):
    """For each run the first one with the same weights, or itself."""
    return {name: next(other for other, run in shown.items() if run.weights == shown[name].weights) for name in shown}


def bits_section(shown):
    same = same_bits(shown)
    alike = [name for name, first in same.items() if first != name]
    others = [name for name, first in same.items() if first == name and name != ALL_REDUCE]
    answer = (f"{capital(listed(alike))} gave the same bits as {ALL_REDUCE}: they divide the work in another way, and sum the same gradients in the same order "
              f"(distribute.reduction = ordered). " if alike else f"None of them gave the same bits as {ALL_REDUCE} here. ")  # fmt: skip
    answer += f"{capital(listed(others))} gave other weights: they make other updates, which is another algorithm and not only another way to run it."
    rows = [[name, "" if first == name else f"the same bits as {first}", shown[name].weights[:16]] for name, first in same.items()]
    return charts.section("Which of them compute the very same model?", answer, charts.table(["strategy", "", "sha256 of model.safetensors"], rows))


def learning_section(shown):
    order = sorted(shown.values(), key=lambda run: -run.result.accuracy)
    best, last = order[0], order[-1]
    answer = f"""After {best.result.samples:,} samples {best.name} has the highest test accuracy, {best.result.accuracy:.2f} %, and {last.name} the lowest,
        {last.result.accuracy:.2f} %. These are single runs: another seed moves such figures by some tenths of a percent, and asynchronous ones move from run to run."""
    return charts.section("Which learns most from the same samples?", answer,
                          charts.lines("Over the samples", [(name, run.losses("samples")) for name, run in shown.items()], "samples", "training loss"))  # fmt: skip


def staleness_section(shown):
    stale = {name: run for name, run in shown.items() if run.staleness}
    means = [f"{run.result.staleness[0]:.2f} updates behind with the {name}" for name, run in stale.items()]
    answer = f"""While a worker computes, the others change the weights: its gradient is by then stale. On average it was computed from weights {listed(means)}.
        Synchronous strategies have none of that: there all workers compute from the same weights."""
    figures = []
    for name, run in stale.items():
        most = next(i for i in range(len(run.staleness)) if sum(run.staleness[: i + 1]) >= 0.99 * sum(run.staleness))
        rows = [(f"{i} behind", 100 * count / sum(run.staleness), list(shown).index(name)) for i, count in enumerate(run.staleness[: most + 1])]
        figures.append(charts.bars(f"Gradients by their staleness: {name}", rows, " %"))
    return charts.section("How old are the weights that a gradient comes from?", answer, *figures)


def epoch_section(shard, full):
    records = shard.result.samples
    seen = full.result.samples / records
    answer = f"""With data.mode = shard the {parts.WORKERS} workers divide the {records:,} records: an epoch has {shard.result.steps:,} steps, and each example is seen once. With full
        each worker walks the whole set in its own order: an epoch has {full.result.steps:,} steps, and each example is seen {seen:.0f} times. "One epoch of full" is as much
        training as {seen:.0f} epochs of shard, so that its test accuracy, {full.result.accuracy:.2f} % instead of {shard.result.accuracy:.2f} %, says nothing of the mode."""
    series = [(f"{run.name}, {run.result.steps:,} steps", run.losses("step")) for run in (shard, full)]
    return charts.section("Is one epoch the same with shard and with full?", answer,
                          charts.bars("Samples in one epoch", [(run.name, run.result.samples, i) for i, run in enumerate((shard, full))]),
                          charts.lines("One epoch of each", series, "step", "training loss"))  # fmt: skip


def mean_staleness(workers):
    counts = [(behind, count) for worker in workers for behind, count in enumerate(worker["staleness"])]
    return sum(behind * count for behind, count in counts) / max(1, sum(count for _, count in counts))


def slow_section(even, slowed, delay):
    left = {name: slowed[name].result.rate / even[name].result.rate for name in SLOWED}
    workers = slowed[ASYNC].numbers["workers"]
    worker = workers[SLOW_WORKER]["samples"] * parts.WORKERS / slowed[ASYNC].result.samples
    answer = f"""Worker {SLOW_WORKER} sleeps {delay} ms in each of its steps. {capital(ALL_REDUCE)} waits for it in every step, and keeps {100 * left[ALL_REDUCE]:.0f} % of its
        samples/s. The asynchronous parameter server keeps {100 * left[ASYNC]:.0f} %, as the others go on; but the slow worker's examples count {worker:.2f} times an even share, and its
        gradients were {mean_staleness(workers[SLOW_WORKER:SLOW_WORKER + 1]):.2f} updates behind on average, those of the others {mean_staleness(workers[:SLOW_WORKER]):.2f}."""
    rows = [(f"{name}, {what}", each[name].result.rate, i) for name in SLOWED for i, (what, each) in enumerate((("all alike", even), ("one slow worker", slowed)))]
    return charts.section("What does one slow worker cost?", answer, charts.bars("Samples a second", rows))


def write(trainer, effort, page):
    """Trains all that the page shows, and writes it."""
    every = {"run.log_every": 25}
    shown = {name: train(trainer, f"strategy{i}", name, {"train.lr": lr, "train.samples": effort.samples} | every | flags)
             for i, (name, (flags, lr)) in enumerate(STRATEGIES.items())}  # fmt: skip
    shard, full = (train(trainer, mode, f"{mode}: {what}", ONE_EPOCH | {"data.mode": mode, "run.log_every": 5})
                   for mode, what in (("shard", "the workers divide the records"), ("full", "each worker walks all records")))  # fmt: skip

    def timed(directory, more):
        flags = {name: {"train.lr": STRATEGIES[name][1], "train.samples": effort.timed_samples} | STRATEGIES[name][0] | more for name in SLOWED}
        return {name: train(trainer, f"{directory}{i}", name, each) for i, (name, each) in enumerate(flags.items())}

    even = timed("even", {})
    first = even[ALL_REDUCE].result
    delay = max(5, round(10_000 * first.summary["seconds"] / first.steps))
    slowed = timed("slow", {"debug.delay_rank": SLOW_WORKER, "debug.delay_ms": delay})
    lead = f"""A perceptron on Fashion-MNIST ({runs.CONFIG.name}) with {parts.WORKERS} workers, {parts.BATCH} samples of each at a time. Each strategy learns from
        {effort.samples:,} samples. All figures and answers follow from runs on this machine."""
    end = f"Made by scripts/compare-strategies --page on {runs.machine()}. Samples/s are of ranks that share these cores, without a network."
    sections = [steps_section(shown), bits_section(shown), learning_section(shown), staleness_section(shown), epoch_section(shard, full), slow_section(even, slowed, delay)]
    page.write_text(charts.document(TITLE, lead, sections, end))
