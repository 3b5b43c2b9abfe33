"""The questions that the comparison answers, each with the runs that it takes.

Sentences name figures of the runs they were made with, or hold for any.
"""

import dataclasses

from . import runs, text

WORKERS = 4
BATCH = 32  # of a worker
BATCH_ALL = WORKERS * BATCH
LR = 0.0125  # for steps of 32 samples; as many times more for steps of more samples
PLAIN = {"distribute.reduction": "native", "eval.every": "never"}
SERVERS = {"distribute.strategy": "parameter_server"}
ASYNC = SERVERS | {"distribute.mode": "async"}
BOUNDED = SERVERS | {"distribute.mode": "bounded"}
BACKUP = SERVERS | {"distribute.backup_workers": 1}


@dataclasses.dataclass
class Effort:
    """How long runs are: samples of a run for accuracy, of one for speed, and runs with different seeds."""

    samples: int
    timed_samples: int
    seeds: int


def base(batch=BATCH, replicas=WORKERS):
    return PLAIN | {"train.replicas": replicas, "train.per_replica_batch": batch}


def with_seeds(trainer, effort, workers, flags):
    return [trainer.train(workers, flags | {"run.seed": seed}) for seed in range(1, effort.seeds + 1)]


def part(heading, *paragraphs):
    """A section of the guide; tables stay as they are."""
    return "\n".join([f"### {heading}\n", *(p if p.startswith("|") else text.wrapped(p) for p in paragraphs)])


# ---------------------------------------------------------------------------------------------------------------


def by_role(plan, what):
    """What the plan says of workers and, if there are any, of servers."""
    server = plan.get(f"{what} server")
    return plan[f"{what} rank"] + (f"; server {server}" if server else "")


@dataclasses.dataclass
class Row:
    label: str
    flags: dict
    lr: float = LR * WORKERS
    workers: int = WORKERS
    modes: tuple = ("shard", "full")

    def all_flags(self, effort, mode):
        return base(replicas=self.workers) | self.flags | {"data.mode": mode, "train.lr": self.lr, "train.samples": effort.samples}

    def results(self, trainer, effort, mode):
        return with_seeds(trainer, effort, self.workers, self.all_flags(effort, mode))

    def sent(self, trainer, effort, mode):
        """What the plan says for ranks that share no memory."""
        flags = self.all_flags(effort, mode) | {"debug.ranks_per_node": 1}
        return by_role(trainer.plan(self.workers + runs.servers_in(flags), flags, runs.CONFIG), "sent per step and")


ONE, ONE_FAST = "one worker alone", "one worker alone, high rate"
STRATEGY_ROWS = [
    Row(ONE, {}, LR, workers=1, modes=("shard",)),
    Row("allreduce", {}),
    Row("allreduce, ordered", {"distribute.reduction": "ordered"}),
    Row("allreduce, compression bf16", {"distribute.compression": "bf16"}),
    Row("allreduce, compression top_k (1 %)", {"distribute.compression": "top_k"}),
    Row("zero1", {"distribute.strategy": "zero1"}),
    Row("central_storage", {"distribute.strategy": "central_storage"}),
    Row("parameter_server, sync", SERVERS),
    Row("parameter_server, 1 backup worker", BACKUP),
    Row("parameter_server, bounded (4)", BOUNDED, LR),
    Row("parameter_server, async", ASYNC, LR),
    Row("parameter_server, async, staleness_lr", ASYNC | {"distribute.staleness_lr": "true"}, LR),
    Row("local_sgd, average every 8", {"distribute.strategy": "local_sgd"}),
    Row("local_sgd, average every 64", {"distribute.strategy": "local_sgd", "distribute.average_every": 64}),
    Row(ONE_FAST, {}, LR * WORKERS, workers=1, modes=("shard",)),
    Row("parameter_server, async, high rate", ASYNC, LR * WORKERS),
]


def strategy_cells(row, mode, results, sent):
    plan = results[0].plan
    cells = [row.label, mode, f"{row.lr:g}"]
    ended = [result for result in results if not result.diverged]
    if not ended:
        return [*cells, "", "", "diverged", "", "", sent, by_role(plan, "memory per")]
    stale = [result.staleness for result in ended if result.staleness]
    staleness = f"{text.mean([s[0] for s in stale]):.2f}; {text.mean([s[1] for s in stale]):.3g}" if stale else "0"
    return [*cells, text.whole(text.mean([r.steps for r in ended])), text.whole(text.mean([r.samples for r in ended])),
            text.accuracy(results), text.rounded(text.mean([r.rate for r in ended])), staleness,
            sent, by_role(plan, "memory per")]  # fmt: skip


def strategies(trainer, effort):
    found = {(row.label, mode): row.results(trainer, effort, mode) for mode in ("shard", "full") for row in STRATEGY_ROWS
             if mode in row.modes}  # fmt: skip
    rows = [strategy_cells(row, mode, found[row.label, mode], row.sent(trainer, effort, mode)) for mode in ("shard", "full") for row in STRATEGY_ROWS
            if mode in row.modes]  # fmt: skip
    heads = ["strategy", "data.mode", "lr", "updates", "samples used", "test accuracy, %", "samples/s",
             "staleness: mean; 95 %", "sent per step and rank, one rank a node (plan)", "memory per rank (plan)"]  # fmt: skip
    alone, stale, sync = (text.mean_accuracy(found[label, "shard"]) for label in (ONE, "parameter_server, async", "allreduce"))
    fast, stale_fast = (text.mean_accuracy(found[label, "shard"])
                        for label in (ONE_FAST, "parameter_server, async, high rate"))  # fmt: skip
    full = text.mean_accuracy(found["parameter_server, async", "full"])
    rules = f"""
All rows use the same number of samples. Accuracy is the mean over {effort.seeds} seeds, with the lowest and the highest.

- A synchronous step takes {BATCH_ALL} samples at a peak rate of {LR * WORKERS:g}.
- A step of `async` or `bounded` takes {BATCH} samples of one worker at {LR:g}, the same rate per sample.
- A replica of `local_sgd` takes {BATCH} samples at {LR * WORKERS:g}, since an average of {WORKERS} moves a quarter of their sum.
- With a backup worker a step takes {BATCH_ALL - BATCH} samples, and as many more steps are made.
- *One worker alone* makes the steps that `async` makes, none of them stale.
- The rows of *high rate* take steps of {BATCH} samples at {LR * WORKERS:g}.
"""
    found_out = f"""
In `shard` mode, one worker alone reached {alone}, and async with {WORKERS} workers {stale}. allreduce, with a quarter of the
updates, reached {sync}. async in `full` mode, where the same samples are another walk through the data, reached {full}.

What async costs is its distance from one worker alone. Hold it against the distance between seeds. At the rate of
{LR * WORKERS:g}, one worker alone reached {fast} and async {stale_fast}.
"""
    return part("What does each strategy do and cost?", rules, text.table(heads, rows), found_out)


# ---------------------------------------------------------------------------------------------------------------


def batches(trainer, effort):
    rows = []
    found = {}
    for replicas in (1, 4, 16):
        for scaling in ("none", "sqrt", "linear") if replicas > 1 else ("none",):
            flags = base(replicas=replicas) | {"train.samples": effort.samples, "train.lr": LR, "train.lr_scaling": scaling}
            if scaling != "none":
                flags |= {"train.lr_reference_batch": BATCH}
            results = with_seeds(trainer, effort, min(replicas, WORKERS), flags)
            plan = results[0].plan
            found[replicas, scaling] = results
            rows.append([str(replicas), plan["global batch"], scaling, plan["learning rate: peak"], plan["steps"],
                         text.accuracy(results)])  # fmt: skip
    heads = ["replicas", "global batch", "lr_scaling", "peak lr", "updates", "test accuracy, %"]
    said = "; ".join(
        f"{replicas} replicas: {', '.join(f'{s} {text.mean_accuracy(found[replicas, s])}' for s in ('none', 'sqrt', 'linear'))}"
        for replicas in (4, 16)
    )
    rules = f"""
Synchronous steps (allreduce) with {BATCH} samples of each replica. All rows have the same number of samples, so more replicas
make fewer updates. `lr = {LR:g}` and `lr_reference_batch = {BATCH}`, no warm-up, {effort.seeds} seeds.
"""
    found_out = f"""
One replica reached {text.mean_accuracy(found[1, "none"])}; {said}. With `none`, a larger batch only means fewer steps of the
same size. `linear` keeps the change per sample, as long as the rate that comes out is one at which the model trains.
"""
    return part("Which learning rate for a larger global batch?", rules, text.table(heads, rows), found_out)


# ---------------------------------------------------------------------------------------------------------------

WIDE = "dense(1024) relu dense(1024) relu dense(10)"
LINK = 1000  # Mbit/s


def servers(trainer, effort):
    rows = []
    rates = {}
    steps = max(40, effort.timed_samples // 300)
    for link in (LINK, 0):
        for count in (1, 2, 4):
            flags = base() | ASYNC | {"distribute.servers": count, "debug.server_mbit": link, "model.layers": WIDE,
                                      "train.lr": LR, "train.steps": steps}  # fmt: skip
            result = trainer.train(WORKERS, flags)
            rates[link, count] = result.rate
            rows.append([f"{link:,} Mbit/s" if link else "none", str(count), text.rounded(result.rate), f"{result.staleness[0]:.2f}",
                         f"{result.exchange:.0f} %", result.plan["gradient"]])  # fmt: skip
    heads = ["simulated link of a server", "servers", "samples/s", "mean staleness", "workers' time in exchange", "gradient"]
    rules = f"""
A wider model, `{WIDE}`, async, {WORKERS} workers, {steps} updates.

**The links are simulated**, since processes of one machine have no network between them. With `debug.server_mbit` a server
sleeps as long as a link of that speed would be busy with each message. Without it the servers compete with the workers for the
same cores, which machines of their own would not.
"""
    found_out = f"""
Every gradient crosses a server's link once as a gradient and once as weights, and the servers divide both. With the simulated
link, 2 servers gave {rates[LINK, 2] / rates[LINK, 1]:.2f} and 4 servers {rates[LINK, 4] / rates[LINK, 1]:.2f} times the samples/s
of one. Without a link, the same numbers are {rates[0, 2] / rates[0, 1]:.2f} and {rates[0, 4] / rates[0, 1]:.2f}.
"""
    return part("When are the servers the bottleneck?", rules, text.table(heads, rows), found_out)


# ---------------------------------------------------------------------------------------------------------------

SLOW = WORKERS - 1  # a worker, not the first
SLOW_ROWS = [
    ("allreduce", {}, LR * WORKERS),
    ("parameter_server, 1 backup worker", BACKUP, LR * WORKERS),
    ("parameter_server, bounded (4)", BOUNDED, LR),
    ("parameter_server, async", ASYNC, LR),
]


def slow_worker(trainer, effort):
    def train(flags, lr, mode, delay):
        flags = base() | flags | {"data.mode": mode, "train.lr": lr, "train.samples": effort.timed_samples}
        if delay:
            flags |= {"debug.delay_rank": SLOW, "debug.delay_ms": delay}
        return trainer.train(WORKERS, flags)

    rate_rows, share_rows, kept = [], [], []
    step_ms = None
    for label, flags, lr in SLOW_ROWS:
        even = train(flags, lr, "shard", 0)
        if step_ms is None:
            step_ms = 1000 * even.summary["seconds"] / even.steps
            short, long = max(1, round(step_ms)), max(1, round(10 * step_ms))
        slower, slowest = (train(flags, lr, "shard", delay) for delay in (short, long))
        rate_rows.append([label, *(text.rounded(r.rate) for r in (even, slower, slowest)), *dropped_cells(slowest)])
        kept.append(f"{label} {slowest.rate / even.rate:.2f}")
        if not slowest.workers:
            continue
        for mode, result in (("shard", slowest), ("full", train(flags, lr, "full", long))):
            share_rows.append([label, mode, *share_cells(result)])
    rate_heads = ["strategy", "samples/s, all alike", f"worker {SLOW}: + {short} ms", f"worker {SLOW}: + {long} ms",
                  "gradients dropped", "samples dropped"]  # fmt: skip
    share_heads = ["strategy", "data.mode", *(f"worker {w}" for w in range(WORKERS)), f"examples of worker {SLOW}'s shard weigh"]
    rules = f"""
Worker {SLOW} sleeps in each of its steps (`debug.delay_rank`, `debug.delay_ms`). A synchronous step without delay takes
{step_ms:.1f} ms on this machine. Worker {SLOW} sleeps {short} ms, so that its steps take about twice as long, or {long} ms, ten times
as long.

The workers share cores, and one that sleeps leaves its time to the others. So the longer delay shows the strategies, and the
shorter one also the machine. All runs learn from {effort.timed_samples:,} samples; drops are those with {long} ms.
"""
    found_out = f"""
Of the samples/s without delay, {long} ms for one worker left: {"; ".join(kept)}. A step of allreduce waits for the slowest worker.
`bounded` lets the others run ahead of it by no more than its bound. Backup workers and `async` train on without it, but also
without its data:
"""
    shares = f"""
Each worker's column is its share of the samples that made updates, in multiples of an even share, with {long} ms. In `shard`
mode the examples of worker {SLOW}'s shard count as much less as it does, and the others' more. In `full` mode every worker draws
from all examples, so a small share takes nothing from any of them.
"""
    return part("What does one slow worker cost?", rules, text.table(rate_heads, rate_rows), found_out,
                text.table(share_heads, share_rows), shares)  # fmt: skip


def dropped_cells(result):
    if not result.workers:
        return ["0", "0"]
    return [text.whole(sum(worker[key] for worker in result.workers)) for key in ("dropped", "dropped_samples")]


def share_cells(result):
    shares = [worker["samples"] * WORKERS / result.samples for worker in result.workers]
    weigh = f"{shares[SLOW]:.2f}" if result.plan["data mode"] == "shard" else "1.00 (no shards)"
    return [f"{share:.2f}" for share in shares] + [weigh]


PARTS = {"strategies": strategies, "batches": batches, "servers": servers, "slow_worker": slow_worker}
