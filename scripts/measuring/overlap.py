"""Two hosts on one machine with a slow link between them, and what of the exchange is hidden there."""

import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys

from . import runs

RATE = "1gbit"
LINE = 0.5  # share of what can be hidden that has to be
BATCH = 1024
STEPS = 40
HOSTS = ("lockstep-0", "lockstep-1")  # namespaces, their ends of the link, and host names
ADDRESSES = ("10.213.77.1", "10.213.77.2")
NETWORK = "10.213.77.0/30"
LOCK = pathlib.Path("/run/lock/lockstep-overlap")
ENTER = """#!/bin/sh
exec ip netns exec "$1" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
"""  # NAMESPACE COMMAND ...: runs it there, under the name of that host
ONE_BUCKET = 1_000_000  # KiB: more than the gradient
MODEL = {"model.layers": "dense(2048) relu dense(2048) relu dense(10)", "train.replicas": 2, "train.lr": 0.01,
         "train.schedule": "constant", "eval.every_epochs": 1e6}  # fmt: skip
CASES = {
    "native": {"distribute.reduction": "native", "distribute.algorithm": "ring"},
    "helper": {"distribute.reduction": "native", "distribute.algorithm": "ring", "distribute.progress_thread": "true"},
    "ordered": {"distribute.reduction": "ordered"},
    "zero1": {"distribute.reduction": "native", "distribute.strategy": "zero1"},
}
ALONE = {"distribute.reduction": "native", "distribute.strategy": "local_sgd", "distribute.average_every": 1_000_000}


def require_tools():
    if os.geteuid() != 0:
        raise SystemExit("error: network namespaces need root: start this as root")
    for tool in ("ip", "tc", "unshare", "taskset", "mpirun"):
        if shutil.which(tool) is None:
            raise SystemExit(f"error: {tool} is missing: install iproute2, util-linux and Open MPI")
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        raise SystemExit("error: the hosts are described to Open MPI's mpirun, but mpirun is another one")
    if len(os.sched_getaffinity(0)) < len(HOSTS):
        raise SystemExit("error: each rank needs a core of its own, and there is only one")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)}: {done.stderr.strip()}")



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


class Link:
    """The two hosts, while it is entered. One at a time: what an earlier one that was killed left behind is removed."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def __enter__(self):
        self.lock = LOCK.open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit("error: another measurement is under way") from None
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: terminated"))
        self.remove()
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()
        self.lock.close()

    def remove(self):
        for host in HOSTS:  # with it goes its end of the link, and with that the other
            subprocess.run(["ip", "netns", "delete", host], capture_output=True, check=False)

    def make(self):
        for host in HOSTS:
            call("ip", "netns", "add", host)
        call("ip", "link", "add", HOSTS[0], "netns", HOSTS[0], "type", "veth", "peer", "name", HOSTS[1], "netns", HOSTS[1])
        for host, address in zip(HOSTS, ADDRESSES, strict=True):
            call("ip", "-n", host, "address", "add", f"{address}/30", "dev", host)
            call("ip", "-n", host, "link", "set", "lo", "up")
            call("ip", "-n", host, "link", "set", host, "up")
            call("tc", "-n", host, "qdisc", "add", "dev", host, "root", "tbf", "rate", RATE, "burst", "256kb", "latency", "20ms")
        self.script("hosts", "".join(f"{address} slots=1\n" for address in ADDRESSES))
        first, second = halves(sorted(os.sched_getaffinity(0)))
        self.script("on", ENTER)
        # mpirun gives the address of the other host and a command for its shell.
        self.script("agent", f'#!/bin/sh\nshift\nexec {self.directory}/on {HOSTS[1]} sh -c "$*"\n')
        self.script("rank", f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && cores={first} || cores={second}\n'
                            f'exec taskset -c $cores {runs.TRAINER} "$@"\n')  # fmt: skip

    def script(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)

    def train(self, flags):
        """One run: a rank on each host, on cores of its own."""
        run = self.directory / "run"
        shutil.rmtree(run, ignore_errors=True)
        mpi = ["mpirun", "--hostfile", str(self.directory / "hosts"), "-np", "2", "--map-by", "node", "--bind-to", "none"]
        for name, value in {"plm_rsh_agent": str(self.directory / "agent"), "pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": NETWORK,
                            "oob_tcp_if_include": NETWORK}.items():  # fmt: skip
            mpi += ["--mca", name, value]
        command = [*mpi, str(self.directory / "rank"), "--config", str(runs.CONFIG), *runs.as_arguments(flags), "--run.dir", str(run),
                   "--run.progress", "none"]  # fmt: skip
        with subprocess.Popen([str(self.directory / "on"), HOSTS[0], *command], cwd=runs.ROOT, env=runs.mpi_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:  # fmt: skip
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
    """The least share, over the cases, that is hidden of what can be. Nothing leaves before backward has begun, so backward and exchange both bound that."""
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
        shares.append(hidden / limit)
    return min(shares)


def compare_buckets(link, arguments):
    """A line for each case and size: how long a step takes."""
    for case in arguments.cases:
        kinds = {f"{size} KiB": CASES[case] | {"distribute.bucket_kib": size} for size in arguments.buckets}
        print(f"\n{case}, {arguments.batch} samples of a rank")
        for name, times in in_turn(link, kinds, arguments).items():
            print(f"  {name:<30} {milliseconds(times.step)}", flush=True)
