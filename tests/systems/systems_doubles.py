# ruff: noqa: ARG002 - stand-ins take what the real ones take
"""Stand-ins for what the systems' tests cannot have everywhere: a lab, a store, a build.

Run as a program, it installs the made-up recipe: ``systems_doubles.py CACHE [CRATES]``.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rich.console import Console

from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import Process
from wanlat.probes.protocols import header_to
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.systems.engine.cache import Cache
from wanlat.systems.engine.definition import Definition, Install
from wanlat.systems.engine.install import Recipe, install
from wanlat.systems.engine.kinds import Kind, Place
from wanlat.systems.engine.progress import Reporter
from wanlat.systems.engine.system import System
from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site, WanLink
from wanlat.topologies.units import Size

# -- a lab without namespaces ---------------------------------------------------------------


def plan_of(*sites: int, name: str = "stand-in", rtt_ms: int = 0) -> Plan:
    """A plan with so many nodes in each site, on loopback addresses, and that RTT between sites."""
    made: list[Site] = []
    count = 0
    for index, size in enumerate(sites, start=1):
        site = f"dc{index}"
        first = count
        count += size
        nodes = tuple(Node(f"n{k}", site, f"127.0.1.{k}") for k in range(first + 1, count + 1))
        made.append(Site(site, index, "127.0.0.0/8", "127.0.0.1", nodes))
    none, half = Impairment(), Impairment(delay_ns=rtt_ms * 10**6 // 2)
    lan = tuple(LanLink(n.name, site.name, none, none) for site in made for n in site.nodes)
    wan = tuple(WanLink(a.name, b.name, half, half) for a, b in combinations(made, 2))
    return Plan(name, tuple(made), tuple(n for s in made for n in s.nodes), lan, wan)


@dataclass(frozen=True)
class StandInNode:
    name: str
    site: str
    address: str
    directory: PurePosixPath
    host_directory: Path


class StandInProcess:
    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.pid = child.pid

    def poll(self) -> int | None:
        return self.child.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            raise TimeoutError from late

    def send_signal_to_family(self, number: int) -> int:
        self.child.send_signal(number)
        return time.monotonic_ns()


class StandInLab:
    """What a system needs of a lab, with ordinary processes on loopback addresses."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.spawned: list[StandInProcess] = []
        self.nodes = tuple(
            StandInNode(n.name, n.site, n.address, PurePosixPath(home), home)
            for n in plan.nodes
            for home in [directory / n.name]
        )
        for node in self.nodes:
            node.host_directory.mkdir(parents=True)

    def node(self, name: str) -> StandInNode:
        return next(node for node in self.nodes if node.name == name)

    def spawn(
        self,
        node: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
    ) -> StandInProcess:
        home = self.node(node).host_directory
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), **(env or {})}
        child = subprocess.Popen(argv, cwd=home, env=environment, stdout=stdout, stderr=stderr)
        process = StandInProcess(child)
        self.spawned.append(process)
        return process

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **(env or {})}
        home = self.node(node).host_directory
        return subprocess.run(
            argv,
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def connect(
        self, node: str, address: tuple[str, int], timeout_s: float = 10.0
    ) -> socket.socket:
        return socket.create_connection(address, timeout_s)

    def http(
        self, node: str, host: str, port: int, timeout_s: float = 10.0
    ) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection.connect()
        return connection

    def close(self) -> None:
        for process in self.spawned:
            process.child.kill()
            process.child.wait()


def send(cluster: Cluster, target: str, requests: Sequence[Request]) -> list[Sample]:
    """Send requests from a real cluster's first node, one after another; bodies are compared."""
    first, samples = next(iter(cluster.nodes)), list[Sample]()

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return cluster.lab.spawn(first, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    header = header_to(cluster.target(target), deadline_ms=30_000)
    run_requests(spawn, header, requests, lambda _, sample: samples.append(sample))
    return samples


# -- a store that does what its options say -------------------------------------------------

# Below the ports that the kernel gives away, and another in each process of a parallel test run.
TOY_PORT = 10_000 + os.getpid() % 20_000

TOY_PROGRAM = """
import http.server, sys, time
address, port, behaviour = sys.argv[1:4]
print("toy store starting on", address, flush=True)
if behaviour == "dies":
    time.sleep(0.3)
    print("toy store: drive on fire", flush=True)
    sys.exit(7)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if behaviour == "serves" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer((address, int(port)), Handler).serve_forever()
"""


TOY = {
    "schema": 1,
    "name": "toy",
    "title": "Toy",
    "origin": "the tests' own",
    "install": {"path": sys.executable, "program": "toy"},
    "nodes": {"min": 2, "max": 4},
    "ports": {"s3": TOY_PORT},
    "options": {
        "bad_node": {"type": "text", "default": ""},
        "bad_behaviour": {"type": "text", "default": "dies"},
    },
    "command": [
        *("toy", "-c", TOY_PROGRAM, "{node.address}", "{ports.s3}"),
        "{options.bad_behaviour if node.name == options.bad_node else 'serves'}",
    ],
    "s3": {"region": "toy", "access_key": "key", "secret_key": "secret"},
    "ready": [{"name": "serves", "http": {"port": "{ports.s3}", "path": "/"}}],
}


def toy(**changes: object) -> System:
    return System(Definition.model_validate({**TOY, **changes}), Path(), None)


# -- a recipe that builds in no time --------------------------------------------------------

FAKE_BUILD = """
import os, pathlib, sys, time
out, work, crates, seconds, fails = sys.argv[1:6]
work = pathlib.Path(work)
for crate in range(int(crates)):
    done = work / f"crate-{crate}"
    if not done.exists():
        time.sleep(float(seconds))
        done.touch()
        print(f"compiled crate {crate}", flush=True)
print("fake warning: unused variable", flush=True)
if fails == "fails":
    sys.exit("fake error: linker not happy")
part = pathlib.Path(out, "lib", "part")
part.parent.mkdir()
part.write_text("slow")
binary = pathlib.Path(out, "bin", "fake")
binary.write_text("#!/bin/sh\\necho fake 1.0\\n")
binary.chmod(0o755)
"""


STARTS_IT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
"""What compiles is mostly a child of what was started: `go build` of ours, rustc of cargo."""


def fake_version(binary: Path, _: dict[str, str] | None = None) -> str:
    said = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    return said.removeprefix("fake ").strip()


def fake_recipe(
    *,
    crates: int = 4,
    seconds_a_crate: float = 0.02,
    fails: bool = False,
    version: str = "1.0",
    tools: tuple[str, ...] = (),
    disk_bytes: int = 1,
    crate: str = "fake",
) -> Recipe:
    def commands(_: Install, place: Place) -> list[list[str]]:
        numbers = [str(crates), str(seconds_a_crate)]
        fate = "fails" if fails else "succeeds"
        python = [sys.executable, "-c"]
        build = [*python, STARTS_IT, *python, FAKE_BUILD, str(place.out), str(place.work)]
        return [[*build, *numbers, fate]]

    kind = Kind(tools, "fake crate {0.version}", commands)
    wanted = Install(cargo=crate, program="fake", version=version, disk=Size(disk_bytes))
    return Recipe("fake", wanted, fake_version, kind)


def plain_reporter() -> Reporter:
    return Reporter(Console(file=sys.stdout, width=1000), every_s=0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    slow = fake_recipe(crates=int(sys.argv[2]) if len(sys.argv) > 2 else 10, seconds_a_crate=0.1)
    install([slow], Cache(Path(sys.argv[1])), plain_reporter())
