"""What a store under test is to the rest of wanlat: a system, and a running cluster of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal

from systems import options as checked
from systems.ask import Answer, ask
from systems.begun import Begun
from systems.binary import Binary, Companion
from systems.errors import SystemFailed, SystemMissing
from systems.least import Least
from systems.nodes import NodeProcess
from systems.options import O, Options
from systems.recipe import Recipe
from systems.sigv4 import encoded, sign
from systems.space import what_is_full
from systems.wait import Wait
from topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from emulator.lab import Lab, LabNode
    from emulator.process import Process
    from topologies.resolve import Plan

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


Api = Literal["s3", "bob", "grpc"]
"""What is measured: S3, Bob's gRPC service, or whatever gRPC service a user brings."""

Replicas = Callable[[bytes], tuple[str, ...] | None]
"""Takes a key; returns the nodes that hold it, the first one first; None when that is not known."""

_SPOKEN: dict[Api, str] = {
    "s3": "S3",
    "bob": "Bob's gRPC API",
    "grpc": "gRPC, as its own .proto files define it",
}


@dataclass(frozen=True)
class S3Target:
    """The S3 interface of one node, as seen from inside the lab."""

    host: str
    port: int
    region: str
    access_key: str
    secret_key: str


@dataclass(frozen=True)
class GrpcTarget:
    """The gRPC interface of one node, as seen from inside the lab.

    ``protos`` define its services; what they import is looked for in ``includes``.
    """

    host: str
    port: int
    protos: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()


class Cluster(ABC):
    """A cluster on a lab's nodes. It ends with its lab; nothing has to be closed."""

    api: Api = "s3"
    """What is measured of it, as `System.api` said beforehand."""

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: Mapping[str, Any],
        nodes: Iterable[NodeProcess],
    ) -> None:
        self.system = system
        self.lab = lab
        self.version = binary.version
        self.label = binary.label
        self.sha256 = binary.sha256
        self.options = dict(options)
        """As they are in effect: defaults filled in."""
        self.beside = binary.beside
        """What else runs: of `fronts`."""
        self.goes_on = False
        """Whether it was started on data that were there: see `System.start`."""
        self.nodes = {node.node: node for node in nodes}
        self.standing: dict[str, NodeProcess] = {}
        """The processes of `fronts`, by node, as they can be started again."""

    @property
    def processes(self) -> dict[str, Process]:
        """The process that was last started on each node, by node name."""
        return {name: node.process for name, node in self.nodes.items() if node.process}

    @property
    def fronts(self) -> dict[str, Process]:
        """What stands before the cluster, by the node it runs on: nginx, of `minio-nginx`."""
        return {name: front.process for name, front in self.standing.items() if front.process}

    def s3(self, node: str) -> S3Target:  # noqa: ARG002 - for subclasses
        """Return where and with which credentials a node answers S3.

        Raises UserError where the system does not speak it.
        """
        raise self._does_not_speak("S3")

    def own_s3(self, node: str) -> S3Target:
        """Return the same of a node's own port, where something stands before it."""
        return self.s3(node)

    def grpc(self, node: str) -> GrpcTarget:  # noqa: ARG002 - for subclasses
        """Return where a node answers gRPC. Raises UserError where the system does not speak it."""
        raise self._does_not_speak("gRPC")

    def replicas(self, key: bytes) -> tuple[str, ...] | None:  # noqa: ARG002 - for subclasses
        """Return the nodes that hold a key, the first one first; None when that is not known."""
        return None

    def _does_not_speak(self, what: str) -> UserError:
        return UserError(
            f"System {self.system} does not speak {what} as it is set up here; "
            f"it speaks {_SPOKEN[self.api]}. Ask it for endpoints that it has."
        )

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Nodes with a part of their own, by its name: ``{"leader": ("n1",)}``; mostly none."""
        return {}

    @abstractmethod
    def make_ready(self, wait: Wait) -> None:
        """Join the started processes to one cluster; return when every node serves requests."""

    @abstractmethod
    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until nodes that were started again serve as they did before, each other too.

        ``names`` are the nodes that are expected to; None: all. Of the others nothing is asked,
        they may be down: where too many are for the store to serve requests at all, it is waited
        only until the named ones have found each other. Nothing is set up that stays. Raises
        SystemFailed, as `make_ready` does.
        """

    def await_fronts(self, wait: Wait) -> None:  # noqa: B027 - mostly there are none
        """Wait until what stands before the cluster passes requests on."""

    def expected(self, names: Iterable[str] | None) -> list[str]:
        """Return the nodes that names stand for, in the order of the cluster; None: all."""
        return list(self.nodes) if names is None else [n for n in self.nodes if n in set(names)]

    def create_bucket(self, name: str) -> None:  # noqa: B027 - most stores leave it to S3
        """Make a bucket where its administrator has to; elsewhere S3's CreateBucket does."""

    def check(self) -> None:
        """Raise SystemFailed when a process ended that nobody stopped, a front's too."""
        for each in (*self.nodes.values(), *self.standing.values()):
            each.check()

    def when_one_died(self, tell: Callable[[str], object]) -> None:
        """Have ``tell`` called with what `check` would raise as soon as it would, from a thread.

        Of the processes that run now; it may abort the lab, and ask it nothing.
        """
        for each in (*self.nodes.values(), *self.standing.values()):
            each.when_died(tell)

    def full(self) -> str | None:
        """Return which node's disk is full, as a sentence; None when none is."""
        return what_is_full(node.home for node in self.nodes.values() if node.home)

    def check_space(self) -> None:
        """Raise SystemFailed when a node's disk is full: whoever goes on measures refusals."""
        for node in self.nodes.values():
            if node.home and what_is_full([node.home]):
                raise node.failure("it has no room left")

    def remarks(self) -> list[str]:
        """Return what of the cluster's state makes samples doubtful, for the bundle's warnings."""
        return []

    def stop(self) -> None:
        """End every process now."""
        with suppress(MachineError):  # the lab has ended, and they with it
            for each in (*self.standing.values(), *self.nodes.values()):
                each.stop()

    def ask_s3(
        self,
        node: str,
        path: str = "/",
        timeout_s: float = 10.0,
        *,
        method: str = "GET",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a signed request without a body to a node's own S3 port, from the node itself.

        ``headers`` are sent beside the signed ones. Raises NoAnswer.
        """
        at = self.own_s3(node)
        asked = encoded(query or {})
        signed = sign(
            method,
            f"{at.host}:{at.port}",
            path,
            region=at.region,
            access_key=at.access_key,
            secret_key=at.secret_key,
            query=asked,
        )
        return ask(
            self.lab,
            node,
            at.port,
            f"{path}?{asked}" if asked else path,
            method=method,
            headers={**(headers or {}), **signed},
            timeout_s=timeout_s,
        )

    def lists_buckets(self, node: str) -> str | None:
        """Return why a node does not serve ListBuckets, None when it does. Raises NoAnswer."""
        answer = self.ask_s3(node)
        return None if answer.ok else f"ListBuckets: {answer.brief()}"


class System(ABC, Generic[O]):
    """A store: how its cluster is configured, started and made ready.

    To add one: a module with a subclass and its cluster, and its line in `systems.registry`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    origin: ClassVar[str]
    """One line: who makes it and where it comes from."""
    min_nodes: ClassVar[int] = 1
    max_nodes: ClassVar[int]
    recipe: ClassVar[Recipe | None] = None
    """How `wanlat systems install` builds it; None when it does not."""
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
        return f"wanlat systems install {self.name}"

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
        fresh: bool = True,
        asked: Sequence[str] = (),
    ) -> Cluster:
        """Start one process a node and return once every node serves requests.

        ``binary`` is what to start; None looks for it. ``asked`` are the nodes that requests will
        be sent to, where what stands before a cluster stands; none: the first.

        ``fresh``: on empty directories, what is there of the system is removed. Not fresh: on
        those that a former start of the same cluster left, with identities, layout, keys and
        buckets as they were; where no start has ended well, a fresh one. `Cluster.goes_on` tells.

        What node NAME prints goes to ``log_dir/<system>-NAME.log``. Raises SystemMissing,
        UserError (topology; directories of another cluster), MachineError (what the store needs of
        the machine), and SystemFailed with the end of a log when a process dies or
        ``ready_timeout_s`` is over.
        """
        binary = binary or self.binary_for(options)
        self.check_topology(lab.plan, options)
        log_dir.mkdir(parents=True, exist_ok=True)
        begun = self._begun(lab, options, binary)
        goes_on = not fresh and begun.is_there()
        if not goes_on:
            begun.empty()
        cluster = self.configure(lab, options, binary, log_dir)
        cluster.goes_on = goes_on
        for node in cluster.nodes.values():
            node.home = begun.homes[node.node]
        try:
            wait = Wait(cluster.nodes, ready_timeout_s, on_progress)
            for node in cluster.nodes.values():
                node.start(lab)
            if goes_on:
                cluster.await_serving(wait)
            else:
                cluster.make_ready(wait)
                begun.mark()
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

    def _begun(self, lab: Lab, options: O, binary: Binary) -> Begun:
        identity = {
            "system": self.name,
            "version": binary.version,
            "options": self.effective(lab.plan, options),
            "nodes": {node.name: node.address for node in lab.nodes},
            "sites": {node.name: node.site for node in lab.nodes},
        }
        homes = {node.name: self.home_of(node) for node in lab.nodes}
        return Begun(homes, identity)

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
