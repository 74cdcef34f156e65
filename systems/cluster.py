"""A running cluster: its processes, where its nodes answer, whether it is well."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wanlat.systems.ask import Answer, ask
from wanlat.systems.binary import Binary
from wanlat.systems.nodes import NodeProcess
from wanlat.systems.sigv4 import encoded, sign
from wanlat.systems.space import what_is_full
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process


Api = Literal["s3", "bob", "grpc"]
"""What is measured: S3, Bob's gRPC service, or whatever gRPC service a user brings."""

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
