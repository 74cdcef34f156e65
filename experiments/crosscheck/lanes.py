"""Lanes: oneshot and each independent client, once at a distance and once on loopback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Literal, cast

from wanlat.emulator.lab import Lab
from wanlat.probes.independent.catalogue import Program
from wanlat.probes.independent.driver import Client
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import GrpcHeader, Header, PlanHeader, Request
from wanlat.probes.process import Process, Spawn
from wanlat.systems.base import Cluster
from wanlat.systems.bob_api import PROTO

ONESHOT = "oneshot"
Position = Literal["distance", "loopback"]


@dataclass(frozen=True)
class Times:
    """One request of a lane, on CLOCK_MONOTONIC."""

    start_ns: int
    end_ns: int
    error: str | None

    @property
    def ms(self) -> float:
        """Return how long it took."""
        return (self.end_ns - self.start_ns) / 1e6


@dataclass(frozen=True)
class Lane:
    """A running client at one position. ``ask`` sends one request and waits for it."""

    name: str
    position: Position
    version: str
    configured: str
    ask: Callable[[Request], Times]


def header_of(cluster: Cluster, node: str) -> Header:
    """Return where oneshot finds the node that is asked."""
    if cluster.api == "s3":
        s3 = cluster.s3(node)
        return PlanHeader(s3.host, s3.port, s3.region, s3.access_key, s3.secret_key)
    grpc = cluster.grpc(node)
    return GrpcHeader(grpc.host, grpc.port)


def in_lab(lab: Lab, node: str, env: dict[str, str] | None = None) -> Spawn:
    """Return what starts programs on a node."""

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


def oneshot_lane(
    stack: ExitStack, lab: Lab, cluster: Cluster, asked: str, node: str, position: Position
) -> Lane:
    """Start oneshot on a node."""
    oneshot = stack.enter_context(Oneshot(in_lab(lab, node), header_of(cluster, asked)))

    def ask(request: Request) -> Times:
        oneshot.send(request)
        sample = oneshot.receive()
        error = None if sample.outcome == "ok" else sample.error or sample.outcome
        took = sample.elapsed_ns if sample.total_ns is None else sample.total_ns
        return Times(sample.start_ns, sample.start_ns + took, error)

    return Lane(ONESHOT, position, "", "keep-alive", ask)


def client_lane(
    stack: ExitStack,
    lab: Lab,
    cluster: Cluster,
    asked: str,
    node: str,
    position: Position,
    program: Program,
) -> Lane:
    """Start an independent client on a node."""
    spawn = in_lab(lab, node, program.environment())
    at = _at(cluster, asked)
    client = stack.enter_context(Client(spawn, program.argv, program.name, at))

    def ask(request: Request) -> Times:
        timed = client.ask(request)
        return Times(timed.start_ns, timed.end_ns, timed.error)

    return Lane(program.name, position, client.version, client.configured, ask)


def _at(cluster: Cluster, node: str) -> dict[str, object]:
    """Return the first line of an independent client."""
    if cluster.api == "s3":
        return cast(dict[str, object], asdict(cluster.s3(node)))
    grpc = cluster.grpc(node)
    protos = grpc.protos or (PROTO,)
    includes = grpc.includes or (PROTO.parent,)
    return {
        "host": grpc.host,
        "port": grpc.port,
        "protos": [str(each) for each in protos],
        "includes": [str(each) for each in includes],
    }
