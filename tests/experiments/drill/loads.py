"""Clusters to put load on, and loads."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.clients import Client, Load, Way
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.drill.timeline import Span
from wanlat.experiments.requests import Row, Schedule, Workers
from wanlat.probes.objects import ObjectApi
from wanlat.probes.process import Process, spawn_here
from wanlat.systems import registry
from wanlat.systems.base import Cluster, S3Target
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve

MS = 1_000_000
SEED = 7
OBJECT_BYTES = 1024


@contextmanager
def quorum(logs: Path, **options: str) -> Iterator[Cluster]:
    """Three nodes in one site that keep every object three times."""
    system = registry.get("quorum")
    with Lab(resolve(load_topology("one-site"))) as lab:
        chosen = system.parse_options(options)
        yield system.start(lab, chosen, logs, 30, lambda _: None)


class LoopbackStore:
    """A null server on this machine, dressed as a lab and its cluster; no namespaces.

    It gives the answers in their order, and the last one from then on.
    """

    api = "s3"
    nodes = ("n1",)

    def __init__(self, *answers: str) -> None:
        argv = [binary("null-server"), *(word for each in answers for word in ("--answer", each))]
        self.server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.server.stdout is not None
        self._port = int(json.loads(self.server.stdout.readline())["listening"].split(":")[1])
        self.oneshots: list[Process] = []

    def spawn(self, _: str, argv: list[str], *, stdin: int, stdout: int, stderr: int) -> Process:
        self.oneshots.append(spawn_here(argv, stdin, stdout, stderr))
        return self.oneshots[-1]

    def own_target(self, node: str) -> S3Target:
        return self.target(node)

    def target(self, _: str) -> S3Target:
        return S3Target("127.0.0.1", self._port, "garage", "ACCESS", "SECRET")

    def create_bucket(self, _: str) -> None:
        pass

    def replicas(self, _: bytes) -> None:
        pass

    def __enter__(self) -> LoopbackStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        self.server.communicate()


def load_on(
    where: Cluster | LoopbackStore, directory: Path, rows: list[Row], **changes: Any
) -> Load:
    """A load with a ledger of its own."""
    seed = changes.pop("seed", SEED)
    cluster = cast(Cluster, where)
    lab = cast(Lab, where) if isinstance(where, LoopbackStore) else cluster.lab
    return Load(
        lab=lab,
        cluster=cluster,
        api=cast(ObjectApi, ObjectApi.over(cluster.api)),
        ledger=Ledger(directory / "ledger.jsonl", seed),
        seed=seed,
        object_bytes=OBJECT_BYTES,
        constant={"system": "quorum"},
        on_row=rows.append,
        **changes,
    )


def client(
    load: Load,
    way: Way,
    node: str = "n1",
    *,
    interval_ms: int,
    deadline_ms: int = 60_000,
    name: str = "here",
    in_flight: int = 1,
) -> Client:
    """A client on a node that asks this node; no stall of the machine comes near its deadline."""
    schedule = Schedule(interval_ms * MS, 0, deadline_ms * MS)
    return Client(load, Place(name, node, node), way, schedule, in_flight)


def start(clients: Sequence[Client], seconds: float, stop: threading.Event) -> tuple[Workers, int]:
    """Start clients that run for so long; return them, and when the first request may be due."""
    origin_ns = time.monotonic_ns() + 300 * MS
    spans = [Span("during", 0, round(seconds * 1e9))]

    def work(each: Client) -> Callable[[], None]:
        return lambda: each.run(origin_ns, spans, stop)

    together = Workers({each.name: work(each) for each in clients}, stop)
    together.start()
    return together, origin_ns


@contextmanager
def running(
    clients: Sequence[Client], seconds: float, stop: threading.Event | None = None
) -> Iterator[Callable[[float], None]]:
    """Run clients for so long beside the block; all are done after it.

    The block gets what waits until so many seconds after the first request may be due.
    """
    stop = stop or threading.Event()
    together, origin_ns = start(clients, seconds, stop)

    def until(offset_s: float) -> None:
        time.sleep(max(0.0, offset_s + (origin_ns - time.monotonic_ns()) / 1e9))

    try:
        yield until
    except BaseException:
        stop.set()
        raise
    finally:
        assert together.join(120)
        together.check()


def from_due_ms(row: Row) -> float:
    """How long after it was due a request was done."""
    return float(row["start_ns"] + row["elapsed_ns"] - row["due_ns"]) / MS


def ended_ns(row: Row) -> int:
    return int(row["start_ns"] + row["elapsed_ns"])
