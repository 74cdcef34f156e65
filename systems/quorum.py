"""Quorum: wanlat's reference store, whose round trips are known by construction.

Not a product and never compared with one: the instrument is calibrated with it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from emulator.binaries import binary as built_program
from systems.ask import ask
from systems.base import Binary, Cluster, NodeProcess, S3Target, System
from systems.binary import first_line, from_setting
from systems.errors import SystemMissing
from systems.options import Options
from systems.receipt import sha256_of
from systems.secrets import derive
from systems.wait import Wait
from topologies.errors import MachineError, UserError
from topologies.wording import did_you_mean

if TYPE_CHECKING:
    from emulator.lab import Lab
    from topologies.resolve import Plan

S3_PORT = 9000
PEER_PORT = 9001
HEALTH_PORT = 9002
REGION = "wanlat"

_ACCESS_KEY = "wanlat"
_SECRET_KEY = derive("quorum secret key", 40)

_MOST_ROUNDS = 16  # as the program allows


def _known_protocol(value: str) -> str:
    rounds = re.fullmatch(r"leaderless|leader|rounds:([1-9]\d?)", value)
    if rounds is None or int(rounds[1] or 1) > _MOST_ROUNDS:
        raise ValueError(
            f"must be leaderless, leader or rounds:K, K from 1 to {_MOST_ROUNDS}: the sequential "
            "round trips of a request"
        )
    return value


class QuorumOptions(Options):
    """Options of the reference store."""

    protocol: Annotated[str, AfterValidator(_known_protocol)] = "leaderless"
    """``leaderless``, ``leader``, or ``rounds:K``: what a request waits for."""
    leader: str | None = None
    """The leading node of protocol ``leader``; default: the topology's first."""


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

    def check_topology(self, plan: Plan, options: QuorumOptions) -> None:
        """A leader must be one of the nodes, and is of use to one protocol only."""
        super().check_topology(plan, options)
        if options.leader is None:
            return
        names = [node.name for node in plan.nodes]
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

    def effective(self, plan: Plan, options: QuorumOptions) -> dict[str, Any]:
        """Fill in the leader, where there is one."""
        if options.protocol != "leader":
            return {"protocol": options.protocol}
        return {"protocol": options.protocol, "leader": options.leader or plan.nodes[0].name}

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
        processes = []
        for node in lab.nodes:
            data, _ = self.home(node, "data")
            argv = [str(binary.path), "serve", "--name", node.name]
            argv += ["--data", str(data)]
            argv += ["--s3", f"{node.address}:{S3_PORT}"]
            argv += ["--peer-listen", f"{node.address}:{PEER_PORT}", *common]
            log = self.log(log_dir, node.name)
            processes.append(NodeProcess(self.title, node.name, argv, {}, log))
        return QuorumCluster(self.name, lab, binary, effective, processes)


class QuorumCluster(Cluster):
    """A running cluster of the reference store."""

    def s3(self, node: str) -> S3Target:
        """Every node serves S3 with the same key."""
        address = self.lab.node(node).address
        return S3Target(address, S3_PORT, REGION, _ACCESS_KEY, _SECRET_KEY)

    def make_ready(self, wait: Wait) -> None:
        """Wait until every node has reached all others, and serves requests."""
        wait.each("peers", self._reaches_peers)
        wait.each("S3", self.lists_buckets)

    def _reaches_peers(self, name: str) -> str | None:
        answer = ask(self.lab, name, HEALTH_PORT, "/healthz")
        if not answer.ok:
            return answer.brief()
        reached, wanted = answer.json()["peers_connected"], len(self.nodes) - 1
        return None if reached == wanted else f"it has reached {reached} of {wanted} peers"
