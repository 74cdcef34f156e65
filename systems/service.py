"""A gRPC program of the user's own, one a node, so that its methods can be measured at a distance.

wanlat knows nothing about it but how it is started, where it listens and what its .proto files
say; a study then names methods as endpoints.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from wanlat.systems.ask import NoAnswer, ask
from wanlat.systems.base import Api, Binary, Cluster, GrpcTarget, NodeProcess, System
from wanlat.systems.errors import SystemMissing
from wanlat.systems.options import Options
from wanlat.systems.receipt import sha256_of
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, printable, show

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab, LabNode
    from wanlat.topologies.resolve import Plan

_PATIENCE_S = 2.0
# `{name}` stands for something; `{{name}}` for itself in braces. Other braces are left alone.
_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[a-z.]+)\}\}|\{(?P<name>[a-z.]+)\}")
_ONE = ("node", "address", "port", "data", "peers")
_EACH = ("peer.node", "peer.address")


class ServiceOptions(Options):
    """How the program is started and found ready.

    A study's loader takes relative paths from where the study is; here they start where wanlat
    is run.
    """

    command: tuple[str, ...] = ()
    """The program and its arguments. In them, {node}, {address} and {port} are the node's own,
    {data} is a directory of its own, and {peers} is every node's address:port, with commas. An
    argument with {peer.node} or {peer.address} is repeated for every node."""
    port: int = Field(default=50051, ge=1, le=65535)
    """Where it serves gRPC, on its node's address."""
    protos: tuple[Path, ...] = ()
    """The .proto files of its services."""
    includes: tuple[Path, ...] = ()
    """Where imports of those are looked for; default: the directories that they are in."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Added to the program's environment, with the placeholders of the command."""
    ready: str | None = Field(default=None, pattern=r"^/\S*$")
    """A path that answers HTTP 200 when it is ready; default: when its port is open."""
    ready_port: int | None = Field(default=None, ge=1, le=65535)
    """The port of that; default: the same."""
    ready_line: str | None = Field(default=None, min_length=1)
    """What a line that it prints contains once it is ready."""
    version: str | None = None
    """What charts and the bundle call its version; default: the program's file name."""


class Service(System[ServiceOptions]):
    """A user's own program as a system under test."""

    name = "service"
    title = "Service"
    origin = "a gRPC program of your own, as the study's options say"
    max_nodes = 256
    options_model = ServiceOptions

    @property
    def how_to_get(self) -> str:
        """It is the user's."""
        return "name your program in the study: options: {service: {command: [./program, ...]}}"

    def find(self) -> Binary:
        """There is none without options."""
        raise SystemMissing(f"System service is a program of your own. {self.how_to_get}.")

    def binary_for(self, options: ServiceOptions) -> Binary:
        """Return the first word of the command, as a path or found on PATH."""
        if not options.command:
            return self.find()
        given = options.command[0]
        found = shutil.which(given)
        if found is None:
            where = "is not a program" if "/" in given else "is not on PATH"
            raise SystemMissing(
                f"The program of system service, `{printable(given)}`, {where}. Name another one, "
                "or make it executable: options: {service: {command: [PROGRAM, ...]}}."
            )
        path = Path(found).absolute()
        return Binary(path, options.version or path.name, sha256_of(path))

    def api(self, options: ServiceOptions) -> Api:  # noqa: ARG002 - the same with all of them
        """Its own .proto files say."""
        return "grpc"

    def check_topology(self, plan: Plan, options: ServiceOptions) -> None:
        """The command must be there and mean something, and the files must exist."""
        super().check_topology(plan, options)
        if not options.command:
            raise UserError(f"System service has no command: {self.how_to_get}.")
        known = [*_ONE, *_EACH]
        for text in (*options.command, *options.environment.values()):
            for found in _PLACEHOLDER.finditer(text):
                name = found["name"]
                if name is not None and name not in known:
                    raise UserError(
                        f"System service: {show(text)} has an unknown placeholder "
                        f"{{{name}}}{did_you_mean(name, known)}; there are "
                        f"{listing(f'{{{each}}}' for each in known)}. If the braces are meant, "
                        f"write {{{{{name}}}}}."
                    )
        for proto in options.protos:
            if not proto.is_file():
                raise UserError(f"System service: there is no file {proto} (option protos).")
        for directory in options.includes:
            if not directory.is_dir():
                raise UserError(f"System service: there is no directory {directory} (includes).")

    def effective(self, plan: Plan, options: ServiceOptions) -> dict[str, Any]:  # noqa: ARG002
        """Leave out what was not said and has no value."""
        return options.model_dump(mode="json", exclude_none=True)

    def configure(
        self, lab: Lab, options: ServiceOptions, binary: Binary, log_dir: Path
    ) -> ServiceCluster:
        """Fill in each node's command and environment."""
        processes = []
        for node in lab.nodes:
            data, _ = self.home(node, "data")
            own = {
                "node": node.name,
                "address": node.address,
                "port": str(options.port),
                "data": str(data),
                "peers": ",".join(f"{peer.address}:{options.port}" for peer in lab.nodes),
            }
            argv = [str(binary.path), *fill(options.command[1:], own, lab.nodes)]
            env = {key: _fill(text, own) for key, text in options.environment.items()}
            log = self.log(log_dir, node.name)
            processes.append(NodeProcess(self.title, node.name, argv, env, log))
        effective = self.effective(lab.plan, options)
        return ServiceCluster(self.name, lab, binary, effective, processes, options)


def fill(arguments: Sequence[str], own: Mapping[str, str], peers: Sequence[LabNode]) -> list[str]:
    """Return arguments with their placeholders filled in, those about peers once for each."""
    filled = []
    for argument in arguments:
        names = {found["name"] for found in _PLACEHOLDER.finditer(argument)}
        if names.isdisjoint(_EACH):
            filled.append(_fill(argument, own))
            continue
        for peer in peers:
            about = {"peer.node": peer.name, "peer.address": peer.address}
            filled.append(_fill(argument, {**own, **about}))
    return filled


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(
        lambda found: values[found["name"]] if found["name"] else f"{{{found['literal']}}}", text
    )


class ServiceCluster(Cluster):
    """The program, running on every node."""

    api = "grpc"

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        effective: dict[str, Any],
        nodes: list[NodeProcess],
        options: ServiceOptions,
    ) -> None:
        super().__init__(system, lab, binary, effective, nodes)
        self._port = options.port
        self._ready = options.ready
        self._ready_line = options.ready_line
        self._ready_port = options.ready_port or options.port
        self._protos = tuple(proto.absolute() for proto in options.protos)
        directories = options.includes or dict.fromkeys(proto.parent for proto in self._protos)
        self._includes = tuple(directory.absolute() for directory in directories)

    def grpc(self, node: str) -> GrpcTarget:
        """Every node serves the same."""
        return GrpcTarget(self.lab.node(node).address, self._port, self._protos, self._includes)

    def make_ready(self, wait: Wait) -> None:
        """Wait until every node's port is open, and for what else the options name."""
        self.await_serving(wait)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """The same, of each node by itself: of what they are to each other nothing is known."""
        expected = self.expected(names)
        wait.each("port", self._accepts, expected)
        if self._ready is not None:
            wait.each("ready", self._answers, expected)
        if self._ready_line is not None:
            wait.each("line", self._prints, expected)

    def _accepts(self, name: str) -> str | None:
        try:
            self.lab.connect(name, (self.lab.node(name).address, self._port), _PATIENCE_S).close()
        except OSError as error:
            raise NoAnswer(f"port {self._port} is not open: {error}") from error
        return None

    def _answers(self, name: str) -> str | None:
        assert self._ready is not None
        answer = ask(self.lab, name, self._ready_port, self._ready)
        return None if answer.ok else f"{self._ready}: {answer.brief()}"

    def _prints(self, name: str) -> str | None:
        assert self._ready_line is not None
        if any(self._ready_line in line for line in self.nodes[name].printed().splitlines()):
            return None
        return f"it has not printed {show(self._ready_line)}"
