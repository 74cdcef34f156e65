"""What a store under test is to the rest of wanlat: how a cluster of it is made.

What a running one is: `wanlat.systems.cluster`.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

from wanlat.systems import options as checked
from wanlat.systems.binary import Binary, Companion
from wanlat.systems.cluster import Api, Cluster, GrpcTarget, S3Target
from wanlat.systems.errors import SystemFailed, SystemMissing
from wanlat.systems.least import Least
from wanlat.systems.nodes import NodeProcess
from wanlat.systems.options import O, Options
from wanlat.systems.recipe import Recipe
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab, LabNode
    from wanlat.topologies.resolve import Plan

__all__ = [
    "Api",
    "Binary",
    "Cluster",
    "Companion",
    "GrpcTarget",
    "Least",
    "NodeProcess",
    "Options",
    "Replicas",
    "S3Target",
    "System",
    "SystemFailed",
    "SystemMissing",
]


class Messages(Protocol):
    """Says what a store's nodes say to each other, from the first bytes of a packet's payload.

    Packets come in the order of time; ``connection`` is the same in both directions, and a request
    is what goes to the lower port. None: it is nothing that can be told.
    """

    def label(self, payload: bytes, connection: int, *, is_request: bool) -> str | None: ...


Replicas = Callable[[bytes], tuple[str, ...] | None]
"""Takes a key; returns the nodes that hold it, the first one first; None when that is not known."""


class System(ABC, Generic[O]):
    """A store: how its cluster is configured, started and made ready.

    To add one: a module with a subclass and its cluster, and its line in `wanlat.systems.registry`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    origin: ClassVar[str]
    """One line: who makes it and where it comes from."""
    messages: ClassVar[type[Messages] | None] = None
    """What labels its nodes' messages in traces, where they are of no standard protocol."""
    min_nodes: ClassVar[int] = 1
    max_nodes: ClassVar[int]
    recipe: ClassVar[Recipe | None] = None
    """How `wanlat system install` builds it; None when it does not."""
    options_model: type[O]

    @abstractmethod
    def find(self) -> Binary:
        """Return the binary on this machine. SystemMissing tells how to get it."""

    def binary_for(self, options: O) -> Binary:  # noqa: ARG002 - for subclasses
        """Return the binary to run with these options, which for most does not depend on them."""
        return self.find()

    @property
    def how_to_get(self) -> str:
        """The command, or what else to do, that brings the binary to this machine."""
        return f"wanlat system install {self.name}"

    @abstractmethod
    def configure(self, lab: Lab, options: O, binary: Binary, log_dir: Path) -> Cluster:
        """Write what the processes need into the nodes' directories; start nothing."""

    def api(self, options: O) -> Api:  # noqa: ARG002 - for subclasses
        """Return what is measured of the system with these options."""
        return "s3"

    def roles(self, plan: Plan, options: O) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return nodes with a part of their own, as `Cluster.roles` does, beforehand."""
        return {}

    def replicas(self, plan: Plan, options: O) -> Replicas:  # noqa: ARG002 - for subclasses
        """Return what tells the nodes that hold a key, as `Cluster.replicas` does, beforehand."""
        return lambda _: None

    def least_round_trips(
        self,
        plan: Plan,  # noqa: ARG002 - for subclasses
        options: O,  # noqa: ARG002
        target: str,  # noqa: ARG002
        endpoint: str,  # noqa: ARG002
        placement: str,  # noqa: ARG002
    ) -> Least | None:
        """Return the least round trips over WAN links that a request to a node can cost.

        That of the place of the replicas: what no store can beat that has as many, at these places,
        and keeps the promise this one makes of what was acknowledged. Not what this store costs.
        ``target`` is the node that is asked, by a client in the same site (another one:
        `Least.from_client`); ``placement`` says whether it holds the key, as samples do (local,
        remote, unknown). None where nothing can be said.
        """
        return None

    def promised_round_trips(
        self,
        plan: Plan,  # noqa: ARG002 - for subclasses
        options: O,  # noqa: ARG002
        target: str,  # noqa: ARG002
        endpoint: str,  # noqa: ARG002
        placement: str,  # noqa: ARG002
    ) -> float | None:
        """Return the round trips over WAN links that this store's own protocol takes.

        Arguments are those of `least_round_trips`. None where that is not known by construction.
        """
        return None

    def parse_options(self, given: Mapping[str, object] | None = None) -> O:
        """Check options as a study gives them. UserError lists every mistake."""
        return checked.parse(self.name, self.options_model, given or {})

    def effective(self, plan: Plan, options: O) -> dict[str, Any]:  # noqa: ARG002
        """Return the options as they are in effect on a topology, defaults filled in."""
        return options.model_dump(mode="json")

    def check_machine(self, plan: Plan, storage: str) -> None:
        """Raise MachineError when this machine cannot run the store on a lab of that storage."""

    def check_topology(self, plan: Plan, options: O) -> None:  # noqa: ARG002 - for subclasses
        """Raise UserError when the store cannot run on these nodes with these options."""
        count = len(plan.nodes)
        if not self.min_nodes <= count <= self.max_nodes:
            raise UserError(
                f"{self.title} runs on {self.min_nodes} to {self.max_nodes} nodes here, and "
                f"topology {plan.name} has {count}. Choose another topology or another system."
            )

    def start(
        self,
        lab: Lab,
        options: O,
        log_dir: Path,
        ready_timeout_s: float,
        on_progress: Callable[[str], None],
        binary: Binary | None = None,
        *,
        asked: Sequence[str] = (),
    ) -> Cluster:
        """Start one process a node and return once every node serves requests.

        ``binary`` is what to start; None looks for it. ``asked`` are the nodes that requests will
        be sent to, where what stands before a cluster stands; none: the first.

        What an earlier start left in the nodes' directories is removed.

        What node NAME prints goes to ``log_dir/<system>-NAME.log``. Raises SystemMissing,
        UserError (topology), MachineError (what the store needs of
        the machine), and SystemFailed with the end of a log when a process dies or
        ``ready_timeout_s`` is over.
        """
        binary = binary or self.binary_for(options)
        self.check_topology(lab.plan, options)
        log_dir.mkdir(parents=True, exist_ok=True)
        homes = {node.name: self.home_of(node) for node in lab.nodes}
        for home in homes.values():
            if home.exists():
                shutil.rmtree(home)
        cluster = self.configure(lab, options, binary, log_dir)
        for node in cluster.nodes.values():
            node.home = homes[node.node]
        try:
            wait = Wait(cluster.nodes, ready_timeout_s, on_progress)
            for node in cluster.nodes.values():
                node.start(lab)
            cluster.make_ready(wait)
            cluster.standing = self.stand_before(cluster, options, log_dir, asked)
            for front in cluster.standing.values():
                front.start(lab)
            cluster.await_fronts(Wait(cluster.standing, wait.remaining_s, on_progress))
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def stand_before(
        self,
        cluster: Cluster,  # noqa: ARG002 - for subclasses
        options: O,  # noqa: ARG002
        log_dir: Path,  # noqa: ARG002
        asked: Sequence[str],  # noqa: ARG002
    ) -> dict[str, NodeProcess]:
        """Return what is to stand before a cluster that serves, by node; start nothing."""
        return {}

    def home_of(self, node: LabNode) -> Path:
        """Return where a node keeps all that is this system's, as we see it from outside."""
        return node.host_directory / self.name

    def log(self, log_dir: Path, node: str) -> Path:
        """Return the log file of a node."""
        return log_dir / f"{self.name}-{node}.log"

    def home(self, node: LabNode, directory: str = "") -> tuple[PurePosixPath, Path]:
        """Make a directory of this system on a node: as the lab names it, and as we do here."""
        outside = self.home_of(node) / directory
        outside.mkdir(parents=True, exist_ok=True)
        return node.directory / self.name / directory, outside
