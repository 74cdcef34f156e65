"""Quorum: wanlat's reference store, whose round trips are known by construction.

Not a product and never compared with one: the instrument is calibrated with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from wanlat.emulator.binaries import binary as built_program
from wanlat.systems import bob_api
from wanlat.systems.ask import ask
from wanlat.systems.ask_grpc import serves
from wanlat.systems.base import (
    Api,
    Binary,
    Cluster,
    GrpcTarget,
    NodeProcess,
    Replicas,
    S3Target,
    System,
)
from wanlat.systems.binary import first_line, from_setting
from wanlat.systems.errors import SystemMissing
from wanlat.systems.least import S3_READS, S3_WRITES, Answers, Least, near, to_meet
from wanlat.systems.placement import Layout, PlacedOptions
from wanlat.systems.quorum_messages import QuorumMessages
from wanlat.systems.receipt import sha256_of
from wanlat.systems.secrets import derive
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import did_you_mean, listing

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan

S3_PORT = 9000
PEER_PORT = 9001
HEALTH_PORT = 9002
REGION = "wanlat"

_ACCESS_KEY = "wanlat"
_SECRET_KEY = derive("quorum secret key", 40)

_MOST_ROUNDS = 16  # as the program allows


Defect = Literal["lose-acked", "drop-acked", "stale-reads", "flip-bits", "resurrect", "split-brain"]


_PROTOCOL = re.compile(
    r"leaderless|leader|rounds:([1-9]\d?)|mixture:[1-9]\d?:([1-9]\d?):([1-9]\d?)"
)


def _known_protocol(value: str) -> str:
    known = _PROTOCOL.fullmatch(value)
    if known is None or any(int(rounds or 1) > _MOST_ROUNDS for rounds in known.groups()):
        raise ValueError(
            f"must be leaderless, leader or rounds:K, K from 1 to {_MOST_ROUNDS}: the sequential "
            "round trips of a request; or mixture:PERCENT:J:K, where PERCENT of 100 requests "
            "cost J and the others K"
        )
    return value


class QuorumOptions(PlacedOptions):
    """Options of the reference store; the vdisks' are of use to Bob's API alone."""

    api: Literal["s3", "bob"] = "s3"
    """What is measured. With ``bob`` it serves Bob's API, its keys placed as Bob's, beside S3."""

    protocol: Annotated[str, AfterValidator(_known_protocol)] = "leaderless"
    """``leaderless``, ``leader``, ``rounds:K`` or ``mixture:PERCENT:J:K``: what a request waits
    for."""
    leader: str | None = None
    """The leading node of protocol ``leader``; default: the topology's first."""
    defects: tuple[Defect, ...] = ()
    """Planted, so that drills are seen to notice them; see systems/quorum/README.md."""
    defect_node: str | None = None
    """The one node that has them; default: all, but of ``stale-reads`` the topology's first."""
    delayed_ack: int | None = Field(default=None, ge=1)
    """Planted: of so many responses one waits 40 ms for the client's delayed acknowledgement."""
    heartbeat_ms: int | None = Field(default=None, ge=1)
    """Planted: so often every node hears of every other, and answers."""
    nagle: bool = False
    """Planted: between nodes, half of every message waits until the other is acknowledged."""


def read_version(binary: Path) -> str:
    """Ask the binary; it prints ``quorum 0.1.0``."""
    line = first_line(binary, "--version")
    name, _, version = line.partition(" ")
    if name != "quorum" or not version:
        raise SystemMissing(f"{binary} does not look like Quorum: its version is {line!r}.")
    return version


class Quorum(System[QuorumOptions]):
    """The reference store as a system under test."""

    name = "quorum"
    title = "Quorum"
    origin = "wanlat's reference store, built with the checkout"
    max_nodes = 64
    messages = QuorumMessages
    options_model = QuorumOptions

    @property
    def how_to_get(self) -> str:
        """It is one of the checkout's own programs."""
        return "make build"

    def find(self) -> Binary:
        """Return the binary that the environment names, else the checkout's."""
        named = from_setting(self.name, read_version)
        if named is not None:
            return named
        try:
            path = built_program("quorum")
        except MachineError as error:
            raise SystemMissing(str(error)) from error
        return Binary(path, read_version(path), sha256_of(path))

    def api(self, options: QuorumOptions) -> Api:
        """As the options say."""
        return options.api

    def replicas(self, plan: Plan, options: QuorumOptions) -> Replicas:
        """Known of Bob's keys; S3's objects are on every node."""
        if options.api == "s3":
            return super().replicas(plan, options)
        return options.layout(self.title, plan).replicas

    def least_round_trips(
        self, plan: Plan, options: QuorumOptions, target: str, endpoint: str, placement: str
    ) -> Least | None:
        """That of majorities, however many rounds the protocol takes; a leader reads by itself."""
        if options.api == "bob":
            layout = options.layout(self.title, plan)
            return layout.least_round_trips(plan, target, endpoint, placement)
        if endpoint not in S3_READS | S3_WRITES:
            return None
        nodes = [node.name for node in plan.nodes]
        majority = len(nodes) // 2 + 1
        leaders = self.roles(plan, options).get("leader", ())
        if endpoint in S3_READS and near(plan, target, leaders):
            return Least(0, "the leader answers reads alone, and it is in the asked node's site")
        needed = majority if endpoint in S3_WRITES else to_meet(majority, len(nodes))
        return Answers.among(plan, target, needed, [nodes]).least()

    def promised_round_trips(
        self, plan: Plan, options: QuorumOptions, target: str, endpoint: str, placement: str
    ) -> float | None:
        """That of the tables in systems/quorum/README.md; None of a mixture, or with a defect."""
        if options.defects:
            return None
        if options.api == "bob":
            layout = options.layout(self.title, plan)
            return layout.promised_round_trips(plan, target, endpoint, placement)
        if endpoint not in S3_READS | S3_WRITES:
            return None
        nodes = [node.name for node in plan.nodes]
        rounds = 1 if options.protocol == "leaderless" else None
        if options.protocol.startswith("rounds:"):
            rounds = int(options.protocol.removeprefix("rounds:"))
        if rounds is not None:
            return rounds * _majority_round(plan, nodes, target)
        for leader in self.roles(plan, options).get("leader", ()):
            forwarded = float(plan.node(leader).site != plan.node(target).site)
            reads = endpoint in S3_READS
            return forwarded + (0 if reads else _majority_round(plan, nodes, leader))
        return None

    def roles(self, plan: Plan, options: QuorumOptions) -> dict[str, tuple[str, ...]]:
        """The leader, in the protocol that has one."""
        return _roles(self.effective(plan, options))

    def check_topology(self, plan: Plan, options: QuorumOptions) -> None:
        """A leader, and vdisks, must fit the topology, and are of use only where they are used."""
        super().check_topology(plan, options)
        self._check_placement(plan, options)
        names = [node.name for node in plan.nodes]
        self._check_defects(plan, options, names)
        if options.leader is None:
            return
        if options.protocol != "leader":
            raise UserError(
                f"Quorum has a leader in protocol `leader` alone; with `{options.protocol}`, "
                f"leave out the option leader ({options.leader})."
            )
        if options.leader not in names:
            raise UserError(
                f"Quorum's leader `{options.leader}` is not a node of topology "
                f"{plan.name}{did_you_mean(options.leader, names)}."
            )

    def _check_placement(self, plan: Plan, options: QuorumOptions) -> None:
        if options.api == "bob":
            options.layout(self.title, plan)
            if options.protocol != "leaderless":
                raise UserError(
                    f"Quorum has protocol `{options.protocol}` over S3 alone: with the option api "
                    "`bob` every request goes straight to the key's vdisk. Leave out the one or "
                    "the other."
                )
            return
        idle = [name for name in PlacedOptions.model_fields if getattr(options, name) is not None]
        if idle:
            raise UserError(
                f"Quorum has vdisks for Bob's API alone: set the option api to bob, or leave out "
                f"{listing(idle)}. Over S3, every node holds every object."
            )

    def _check_defects(self, plan: Plan, options: QuorumOptions, names: Sequence[str]) -> None:
        node = options.defect_node
        if node is not None and not options.defects:
            raise UserError(
                f"Quorum's option defect_node ({node}) names a node for defects, and none is "
                "planted. Add defects: [lose-acked], or leave it out."
            )
        if node is not None and node not in names:
            raise UserError(
                f"Quorum's defect_node `{node}` is not a node of topology "
                f"{plan.name}{did_you_mean(node, names)}."
            )
        if "stale-reads" in options.defects and options.protocol == "leader":
            raise UserError(
                "Quorum's defect stale-reads means nothing with protocol `leader`, where every "
                "read is the leader's. Choose another protocol, or another defect."
            )

    def effective(self, plan: Plan, options: QuorumOptions) -> dict[str, Any]:
        """Fill in the vdisks, the leader where there is one, and who has which defect."""
        effective: dict[str, Any] = {"api": options.api}
        if options.api == "bob":
            effective |= options.layout(self.title, plan).effective()
        else:
            effective["protocol"] = options.protocol
            if options.protocol == "leader":
                effective["leader"] = options.leader or plan.nodes[0].name
        if options.defects:
            names = [node.name for node in plan.nodes]
            effective["defects"] = {
                defect: _defective(defect, options, names) for defect in options.defects
            }
        for disturbance in _DISTURBANCES:
            if value := getattr(options, disturbance):
                effective[disturbance] = value
        return effective

    def configure(
        self, lab: Lab, options: QuorumOptions, binary: Binary, log_dir: Path
    ) -> QuorumCluster:
        """Everything is on the command line; the peers are listed alike on every node."""
        effective = self.effective(lab.plan, options)
        common = ["--protocol", options.protocol, "--region", REGION]
        common += ["--access-key", _ACCESS_KEY, "--secret-key", _SECRET_KEY]
        for peer in lab.nodes:
            common += ["--peer", f"{peer.name}={peer.address}:{PEER_PORT}"]
        if "leader" in effective:
            common += ["--leader", effective["leader"]]
        for disturbance in _DISTURBANCES:
            if disturbance in effective:
                value = effective[disturbance]
                common.append(f"--{disturbance.replace('_', '-')}")
                common += [] if value is True else [str(value)]
        layout = options.layout(self.title, lab.plan) if options.api == "bob" else None
        if layout is not None:
            common += ["--bob-quorum", str(layout.quorum)]
            for replicas in layout.vdisks:
                common += ["--vdisk", ",".join(replicas)]
        processes = []
        for node in lab.nodes:
            data, _ = self.home(node, "data")
            argv = [str(binary.path), "serve", "--name", node.name]
            argv += ["--data", str(data)]
            argv += ["--s3", f"{node.address}:{S3_PORT}"]
            argv += ["--peer-listen", f"{node.address}:{PEER_PORT}"]
            if layout is not None:
                argv += ["--bob", f"{node.address}:{bob_api.PORT}"]
            argv += common
            having = effective.get("defects", {}).items()
            argv += [f"--{defect}" for defect, names in having if node.name in names]
            log = self.log(log_dir, node.name)
            processes.append(NodeProcess(self.title, node.name, argv, {}, log))
        return QuorumCluster(self.name, lab, binary, effective, processes, layout)


_DISTURBANCES = ("delayed_ack", "heartbeat_ms", "nagle")


def _defective(defect: Defect, options: QuorumOptions, names: Sequence[str]) -> list[str]:
    if options.defect_node is not None:
        return [options.defect_node]
    return list(names[:1] if defect == "stale-reads" else names)


def _majority_round(plan: Plan, nodes: Sequence[str], asking: str) -> float:
    """Return the round trips that it takes a node to hear a majority, itself counted."""
    return Answers.among(plan, asking, len(nodes) // 2 + 1, [nodes]).least().round_trips


def _roles(effective: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {"leader": (effective["leader"],)} if "leader" in effective else {}


class QuorumCluster(Cluster):
    """A running cluster of the reference store; with a layout it serves Bob's API too."""

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: dict[str, Any],
        nodes: list[NodeProcess],
        layout: Layout | None = None,
    ) -> None:
        super().__init__(system, lab, binary, options, nodes)
        self.api: Api = "s3" if layout is None else "bob"
        self.layout = layout

    def s3(self, node: str) -> S3Target:
        """Every node serves S3 with the same key."""
        address = self.lab.node(node).address
        return S3Target(address, S3_PORT, REGION, _ACCESS_KEY, _SECRET_KEY)

    def grpc(self, node: str) -> GrpcTarget:
        """Every node answers for every key, where Bob's API is served."""
        if self.layout is None:
            return super().grpc(node)
        return GrpcTarget(
            self.lab.node(node).address, bob_api.PORT, (bob_api.PROTO,), (bob_api.PROTO.parent,)
        )

    def replicas(self, key: bytes) -> tuple[str, ...] | None:
        """The replicas of the vdisk of a key of Bob's."""
        return None if self.layout is None else self.layout.replicas(key)

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """The leader, in the protocol that has one."""
        return _roles(self.options)

    def make_ready(self, wait: Wait) -> None:
        """Wait until every node has reached all others, and serves requests."""
        self.await_serving(wait)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until each has reached the others; and serves, where there are enough of them."""
        expected = self.expected(names)
        wait.each("peers", lambda name: self._reaches(name, expected), expected)
        if self._are_enough(expected):
            wait.each("S3", self.lists_buckets, expected)
        if self.layout is not None:
            wait.each("gRPC", self._pings, expected)

    def _are_enough(self, expected: Sequence[str]) -> bool:
        leaders = self.roles.get("leader", ())
        return len(expected) > len(self.nodes) // 2 and set(leaders) <= set(expected)

    def _pings(self, name: str) -> str | None:
        serves(self.lab, name, bob_api.PORT, bob_api.PING)
        return None

    def _reaches(self, name: str, expected: Sequence[str]) -> str | None:
        answer = ask(self.lab, name, HEALTH_PORT, "/healthz")
        if not answer.ok:
            return answer.brief()
        stands = answer.json()["peers"]
        missing = [peer for peer in expected if peer != name and not stands[peer]]
        return f"it has not reached {listing(missing)}" if missing else None
