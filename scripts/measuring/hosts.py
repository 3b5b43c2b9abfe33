"""Several hosts on this machine: network namespaces, each a host of its own to MPI, on one switch."""

import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys

SWITCH = "lockstep-switch"  # a namespace too, so that nothing is left on the machine
NETWORK = "10.213.77.0/24"
LOCK = pathlib.Path("/run/lock/lockstep-hosts")
ENTER = """#!/bin/sh
exec ip netns exec "$1" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
"""  # NAMESPACE COMMAND ...: runs it there, under the name of that host
# mpirun gives the address of a host and a command for its shell.
AGENT = """#!/bin/sh
host={name}$((${{1##*.}} - 1))
shift
exec {directory}/on $host sh -c "$*"
"""


def require_tools():
    if os.geteuid() != 0:
        raise SystemExit("error: network namespaces need root: start this as root")
    for tool in ("ip", "tc", "unshare", "taskset", "mpirun"):
        if shutil.which(tool) is None:
            raise SystemExit(f"error: {tool} is missing: install iproute2, util-linux and Open MPI")
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        raise SystemExit("error: the hosts are described to Open MPI's mpirun, but mpirun is another one")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)}: {done.stderr.strip()}")


def name(host):
    """Of the namespace, its network interface, and its port on the switch."""
    return f"lockstep-{host}"


def address(host):
    return f"10.213.77.{host + 1}"


class Hosts:
    """`count` hosts, while it is entered; `rate` shapes what each of them sends, `retries` is net.ipv4.tcp_retries2: how often they send again what nobody
    takes. One set at a time: what an earlier one that was killed left behind is removed."""

    MOST = 8

    def __init__(self, directory, count, rate=None, retries=None):
        self.directory = pathlib.Path(directory)
        self.count = count
        self.rate = rate
        self.retries = retries

    def __enter__(self):
        self.lock = LOCK.open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit("error: the hosts are in use by another program") from None
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
        """With a namespace go its interfaces, and the other ends of their links."""
        for namespace in (*map(name, range(self.MOST)), SWITCH):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)

    def make(self):
        call("ip", "netns", "add", SWITCH)
        call("ip", "-n", SWITCH, "link", "add", "switch", "type", "bridge")
        call("ip", "-n", SWITCH, "link", "set", "switch", "up")
        for host in range(self.count):
            self.plug_in(host)
        self.script("on", ENTER)
        self.script("agent", AGENT.format(name=name(""), directory=self.directory))

    def plug_in(self, host):
        own = name(host)
        call("ip", "netns", "add", own)
        call("ip", "link", "add", own, "netns", own, "type", "veth", "peer", "name", own, "netns", SWITCH)
        call("ip", "-n", SWITCH, "link", "set", own, "master", "switch", "up")
        call("ip", "-n", own, "address", "add", f"{address(host)}/24", "dev", own)
        call("ip", "-n", own, "link", "set", "lo", "up")
        call("ip", "-n", own, "link", "set", own, "up")
        if self.retries:
            call("ip", "netns", "exec", own, "sh", "-c", f"echo {self.retries} >/proc/sys/net/ipv4/tcp_retries2")
        if self.rate:
            call("tc", "-n", own, "qdisc", "add", "dev", own, "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "20ms")

    def cut(self, host):
        """Takes the cable out of the switch: nothing more arrives, and nobody is told."""
        call("ip", "-n", SWITCH, "link", "set", name(host), "down")

    def restore(self, host):
        call("ip", "-n", SWITCH, "link", "set", name(host), "up")

    def processes(self, host):
        """How many there are on it."""
        done = subprocess.run(["ip", "netns", "pids", name(host)], capture_output=True, text=True, check=True)
        return len(done.stdout.split())

    def script(self, file, text):
        path = self.directory / file
        path.write_text(text)
        path.chmod(0o755)

    def mpirun(self, hosts, parameters=None):
        """The command, to be started from here, that starts one rank on each of `hosts`, over TCP; mpirun is on the first. `parameters` are MCA's."""
        self.script("hostfile", "".join(f"{address(host)} slots=1\n" for host in hosts))
        command = [str(self.directory / "on"), name(hosts[0]), "mpirun", "--hostfile", str(self.directory / "hostfile"),
                   "-np", str(len(hosts)), "--map-by", "node", "--bind-to", "none"]  # fmt: skip
        own = {"plm_rsh_agent": str(self.directory / "agent"), "pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": NETWORK,
               "oob_tcp_if_include": NETWORK}  # fmt: skip
        for key, value in (own | (parameters or {})).items():
            command += ["--mca", key, str(value)]
        return command
