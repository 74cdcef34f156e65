"""Bob: immutable blobs on virtual disks, replicated over nodes; asked over gRPC.

Sources: Bob's documentation (configuration files, HTTP API) and its code at 2.1: bob-common's
configs for what it refuses, bob/src/cluster and bob/src/link_manager.rs for what a request does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.systems.ask import Answer, NoAnswer, ask
from wanlat.systems.ask_grpc import serves
from wanlat.systems.base import Api, Binary, Cluster, GrpcTarget, NodeProcess, Replicas, System
from wanlat.systems.binary import first_line, from_path, from_setting, setting
from wanlat.systems.bob_api import PING, PORT, PROTO
from wanlat.systems.bob_files import ALIENS, DISK, HTTP_PORT, Member, files
from wanlat.systems.errors import SystemMissing
from wanlat.systems.least import Least
from wanlat.systems.placement import Layout, PlacedOptions
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan

_PROGRAM = "bobd"
_STARTED = 1  # the value of backend.backend_state


class BobOptions(PlacedOptions):
    """Options of Bob: the vdisks, and what its configuration calls operation_timeout."""

    operation_timeout: Duration = Duration(3 * 10**9)
    """What a node waits for another one, for a ping too; default: as in Bob's own example."""


def read_version(binary: Path) -> str:
    """Ask the binary; it prints ``bobd 2.1.0-alpha.12``, and more below."""
    line = first_line(binary, "--version")
    name, _, version = line.partition(" ")
    if name != _PROGRAM or not version:
        raise SystemMissing(f"{binary} does not look like Bob: its version is {line!r}.")
    return version


class Bob(System[BobOptions]):
    """Bob as a system under test."""

    name = "bob"
    title = "Bob"
    origin = "made by Qoollo, from github:qoollo/bob; in no package registry"
    max_nodes = 256
    options_model = BobOptions

    @property
    def how_to_get(self) -> str:
        """It is in no registry; its own repository says more."""
        return (
            f"bring a `{_PROGRAM}` from https://github.com/qoollo/bob, whose README says how to "
            f"get or build one; then put it on PATH, or name it with --{_PROGRAM} PATH or "
            f"{setting(self.name)}"
        )

    def find(self) -> Binary:
        """Return the binary that the environment names, else the one on PATH."""
        found = from_setting(self.name, read_version) or from_path(_PROGRAM, read_version)
        if found is None:
            raise SystemMissing(
                f"Bob is not on this machine: there is no `{_PROGRAM}` on PATH, and wanlat cannot "
                f"install it, because it is in no package registry. To get it: {self.how_to_get}."
            )
        return found

    def api(self, options: BobOptions) -> Api:  # noqa: ARG002 - the same with all of them
        """Its own."""
        return "bob"

    def replicas(self, plan: Plan, options: BobOptions) -> Replicas:
        """The vdisks are laid out here, so they are known."""
        return options.layout(self.title, plan).replicas

    def least_round_trips(
        self, plan: Plan, options: BobOptions, target: str, endpoint: str, placement: str
    ) -> Least | None:
        """That of the vdisks, whatever Bob asks for besides."""
        layout = options.layout(self.title, plan)
        return layout.least_round_trips(plan, target, endpoint, placement)

    def check_topology(self, plan: Plan, options: BobOptions) -> None:
        """There must be nodes and replicas enough, and a ping must come back in time."""
        super().check_topology(plan, options)
        options.layout(self.title, plan)
        names = [node.name for node in plan.nodes]
        longest_ms = max(plan.rtt_ms(a, b) + plan.jitter_ms(a, b) for a in names for b in names)
        if options.operation_timeout.ms <= longest_ms:
            raise UserError(
                f"Bob with operation_timeout {options.operation_timeout} would take its nodes on "
                f"topology {plan.name} for dead: a round trip takes up to {longest_ms:g} ms there. "
                "Raise it, or leave it out."
            )

    def check_machine(self, plan: Plan, storage: str) -> None:  # noqa: ARG002 - on all alike
        """Bob counts its open files with lsof."""
        if shutil.which("lsof") is None:
            raise MachineError(
                "Bob counts its open files with `lsof`, which is not on PATH. "
                "Install it: on Debian and Ubuntu `sudo apt install lsof`."
            )

    def effective(self, plan: Plan, options: BobOptions) -> dict[str, Any]:
        """Fill in what depends on the topology, and tell where the vdisks are."""
        given = options.model_dump(mode="json")
        return given | options.layout(self.title, plan).effective()

    def configure(self, lab: Lab, options: BobOptions, binary: Binary, log_dir: Path) -> BobCluster:
        """Write four files a node; which vdisk is where is the same on all."""
        layout = options.layout(self.title, lab.plan)
        homes = {node.name: self.home(node) for node in lab.nodes}
        members = [Member(node.name, node.address, homes[node.name][0]) for node in lab.nodes]
        processes = []
        for member in members:
            inside, outside = homes[member.name]
            (outside / DISK).mkdir(exist_ok=True)
            for name, text in files(members, member, layout, options.operation_timeout).items():
                (outside / name).write_text(text, encoding="utf-8")
            argv = [str(binary.path), "-c", str(inside / "cluster.yaml")]
            argv += ["-n", str(inside / "node.yaml"), "--init_folders"]
            log = self.log(log_dir, member.name)
            processes.append(NodeProcess(self.title, member.name, argv, {}, log))
        effective = self.effective(lab.plan, options)
        return BobCluster(self.name, lab, binary, effective, processes, layout)


class BobCluster(Cluster):
    """A running Bob cluster."""

    api = "bob"

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: dict[str, Any],
        nodes: list[NodeProcess],
        layout: Layout,
    ) -> None:
        super().__init__(system, lab, binary, options, nodes)
        self.layout = layout

    def grpc(self, node: str) -> GrpcTarget:
        """Every node answers for every key."""
        return GrpcTarget(self.lab.node(node).address, PORT, (PROTO,), (PROTO.parent,))

    def replicas(self, key: bytes) -> tuple[str, ...]:
        """The replicas of the key's vdisk."""
        return self.layout.replicas(key)

    def make_ready(self, wait: Wait) -> None:
        """The nodes find each other; wait until each says that it sees all, and answers."""
        self.await_serving(wait)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until each has read its blobs, sees as many nodes as are expected, and answers.

        Bob tells how many nodes it sees and not which, and counts one that went away until its
        next check, every 5 s.
        """
        expected = self.expected(names)
        wait.each("backend", self._backend_started, expected)
        wait.each("disks", self._disks_active, expected)
        # Bob's own pings, over gRPC, to every node: itself too.
        wait.each("peers", lambda name: self._sees(name, len(expected)), expected)
        wait.each("gRPC", self.pings, expected)

    def pings(self, name: str) -> str | None:
        """Return None when a node answers a Ping. Raises NoAnswer when not."""
        serves(self.lab, name, PORT, PING)
        return None

    def remarks(self) -> list[str]:
        """Tell of blobs that nodes keep for others which did not take them."""
        keepers = [node.name for node in self.lab.nodes if any(_aliens(self.lab, node.name))]
        if not keepers:
            return []
        return [
            "Replicas did not take some blobs within operation_timeout "
            f"({self.options['operation_timeout']}), so {listing(keepers)} kept them instead. "
            "Where that cost a Put its quorum, it was acknowledged all the same, but late. With "
            "large objects, raise the option operation_timeout."
        ]

    def ask_http(self, name: str, path: str) -> Answer:
        """Send a GET to a node's HTTP API, from the node itself. Raises NoAnswer."""
        return ask(self.lab, name, HTTP_PORT, path)

    def _metric(self, name: str, metric: str) -> int:
        answer = self.ask_http(name, "/metrics")
        if not answer.ok:
            raise NoAnswer(f"/metrics: {answer.brief()}")
        value: int = answer.json()["metrics"].get(metric, {}).get("value", 0)
        return value

    def _backend_started(self, name: str) -> str | None:
        state = self._metric(name, "backend.backend_state")
        return None if state == _STARTED else f"its backend_state is {state}, not {_STARTED}"

    def _disks_active(self, name: str) -> str | None:
        answer = self.ask_http(name, "/disks/list")
        if not answer.ok:
            return f"/disks/list: {answer.brief()}"
        idle = [disk["name"] for disk in answer.json() if not disk["is_active"]]
        return f"disk {idle[0]} is not active" if idle else None

    def _sees(self, name: str, count: int) -> str | None:
        seen = self._metric(name, "link_manager.nodes_number")
        return None if seen >= count else f"it sees {seen} of {count} nodes, itself among them"


def _aliens(lab: Lab, name: str) -> Iterator[Path]:
    """The files of what a node keeps for others; it makes none before there is something."""
    return (lab.node(name).host_directory / "bob" / DISK / ALIENS).rglob("*.blob")
