"""A lab: a topology made real, for as long as a ``with`` block lasts.

with Lab(resolve(load("five-sites"))) as lab:
    lab.spawn("n1", ["/usr/bin/ping", "-c1", lab.node("n2").address]).wait(5)
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from socket import socket as Socket  # noqa: N812 - Lab has a method of the other name
from types import TracebackType
from typing import IO, Any, Literal, Self

from emulator import disk
from emulator.backends import Counters
from emulator.binaries import binary
from emulator.links import Direction, requested
from emulator.owner import Owner
from emulator.process import Process
from emulator.sandbox import LAB_DIRECTORY
from topologies.errors import MachineError, UserError
from topologies.resolve import Impairment, Plan

BackendName = Literal["netem", "wire"]
Storage = Literal["memory", "disk"]
Stream = int | IO[Any] | None


@dataclass(frozen=True)
class LabNode:
    """A node of a running lab.

    ``directory`` is its own, inside the lab; ``host_directory`` is the same one as its owner
    outside sees it. Both end with the lab.
    """

    name: str
    site: str
    address: str
    directory: PurePosixPath
    host_directory: Path


class Lab:
    """A running topology. Use as a context manager; everything in it ends with the block.

    Arguments: the resolved plan; ``backend`` (None: netem where the kernel has it, else wire);
    ``seed`` of the impairments' random draws; ``storage``, where nodes' directories are
    (``memory``: a tmpfs of the lab; ``disk``: the user's cache directory); ``splice="all"``
    puts LAN links without impairments through the backend too, so that they can be changed
    while the lab runs.

    Raises MachineError when the machine cannot hold a lab, UserError for unusable arguments.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        backend: BackendName | None = None,
        seed: int = 1,
        storage: Storage = "memory",
        splice: Literal["needed", "all"] = "needed",
    ) -> None:
        self.plan = plan
        self.seed = seed
        self.storage = storage
        self._requested_backend = backend
        self._backend: str | None = None
        self._splice = splice
        self._in_force = requested(plan)
        self._owner: Owner | None = None
        self._disk: tuple[Path, int] | None = None
        self._nodes: dict[str, LabNode] = {}

    # -- life ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        wire = None
        if self._requested_backend != "netem":
            try:
                wire = binary("wire")
            except MachineError:
                if self._requested_backend == "wire":
                    raise
        if self.storage == "disk":
            self._disk = disk.make_directory()
        try:
            self._owner = Owner(self._disk[0] if self._disk else None)
            self._backend = self._ask(
                "build",
                self.plan,
                self._requested_backend,
                wire,
                self.seed,
                self._splice == "all",
            )[0]
            self._make_nodes()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the lab and everything in it. Returns once the kernel has. Safe to repeat."""
        if self._owner is not None:
            self._owner.close()
        if self._disk is not None:
            directory, lock = self._disk
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)
            self._disk = None

    @property
    def fate(self) -> str:
        """Return how the lab ended; empty while it lives."""
        return self._owner.fate if self._owner else ""

    def abort(self, why: str) -> None:
        """End everything in the lab at once, from any thread, and say why from then on.

        Whatever waits for the lab or a process of it gets an error with ``why``. The lab must
        still be closed.
        """
        if self._owner is not None:
            self._owner.abort(why)

    def check(self) -> None:
        """Raise MachineError if the lab, or what emulates its links, has ended."""
        if self.fate:
            raise MachineError(f"The lab has ended. {self.fate}")

    def _make_nodes(self) -> None:
        inside = PurePosixPath(self._disk[0] if self._disk else LAB_DIRECTORY, "nodes")
        for node in self.plan.nodes:
            directory = inside / node.name
            outside = Path(f"/proc/{self.supervisor_pid}/root{directory}")
            if self._disk:
                outside = Path(directory)
            outside.mkdir(parents=True, exist_ok=True)
            self._nodes[node.name] = LabNode(node.name, node.site, node.address, directory, outside)

    # -- what it is ---------------------------------------------------------------------------

    @property
    def backend(self) -> str:
        """Return the name of the backend in use."""
        assert self._backend is not None, "the lab is not up"
        return self._backend

    @property
    def supervisor_pid(self) -> int:
        """Return the process id, on the host, of the lab's first process."""
        assert self._owner is not None, "the lab is not up"
        return self._owner.supervisor_pid

    @property
    def nodes(self) -> tuple[LabNode, ...]:
        """Return the nodes in the order of the topology."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> LabNode:
        """Return one node. Raises UserError for an unknown name."""
        try:
            return self._nodes[name]
        except KeyError:
            raise UserError(
                f"There is no node `{name}` in the topology {self.plan.name}; "
                f"it has {', '.join(self._nodes)}."
            ) from None

    # -- processes and sockets ----------------------------------------------------------------

    def spawn(
        self,
        node: str,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | str | None = None,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> Process:
        """Start a program on a node and return at once.

        ``env`` is added to a small environment of the lab's own (HOME and TMPDIR in the node's
        directory, PATH and LANG of the caller); nothing else is inherited. Streams are file
        descriptors or files; None is /dev/null. Raises MachineError when it cannot be started.
        """
        home = self.node(node).directory
        environment = {
            "HOME": str(home),
            "TMPDIR": str(home),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **(env or {}),
        }
        fds = [_descriptor(stream) for stream in (stdin, stdout, stderr)]
        arguments = [os.fspath(argument) for argument in argv]
        value, _ = self._ask(
            "spawn",
            node,
            arguments,
            environment,
            str(cwd or home),
            tuple(fd is not None for fd in fds),
            fds=tuple(fd for fd in fds if fd is not None),
        )
        name = f"{Path(arguments[0]).name} on {node}"
        process = Process(value, name, self._signal, lambda: self.fate)
        assert self._owner is not None
        self._owner.track(process)
        return process

    def _signal(self, pid: int, number: int) -> int:
        instant: int = self._ask("signal", pid, number)[0]
        return instant

    def run(
        self,
        node: str,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a node to its end and return what it printed.

        Raises TimeoutError, after which the program has been killed.
        """
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            process = self.spawn(node, argv, env=env, stdout=out, stderr=err)
            try:
                code = process.wait(timeout_s)
            except BaseException:
                with contextlib.suppress(MachineError):
                    process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(argv), code, out.read(), err.read())

    def socket(self, node: str, family: int, kind: int, protocol: int = 0) -> Socket:
        """Return a new socket that lives in a node's namespace and can be used from here."""
        self.node(node)
        _, fds = self._ask("socket", node, int(family), int(kind), protocol)
        return Socket(fileno=fds[0])

    def connect(self, node: str, address: tuple[str, int], timeout_s: float = 10.0) -> Socket:
        """Return a TCP connection from a node to ``address``. Raises OSError."""
        made = self.socket(node, socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.settimeout(timeout_s)
            made.connect(address)
        except BaseException:
            made.close()
            raise
        return made

    def http(
        self, node: str, host: str, port: int, timeout_s: float = 10.0
    ) -> http.client.HTTPConnection:
        """Return an HTTP connection from a node. Raises OSError when it is refused."""
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection.sock = self.connect(node, (host, port), timeout_s)
        return connection

    # -- impairments --------------------------------------------------------------------------

    @property
    def impairments(self) -> dict[Direction, Impairment]:
        """Return what is in force on every direction of every link."""
        return dict(self._in_force)

    def change(self, changes: Mapping[Direction, Impairment]) -> int:
        """Change impairments of running links, all at one instant.

        Packets on their way keep the due time they have. Returns the CLOCK_MONOTONIC instant
        (ns) of effect. Raises UserError for an unknown link, MachineError for a refusal.
        """
        for direction in changes:
            if direction not in self._in_force:
                known = ", ".join(str(each) for each in self._in_force)
                raise UserError(
                    f"There is no link {direction} in {self.plan.name}; it has {known}."
                )
        instant: int = self._ask("change", dict(changes))[0]
        self._in_force.update(changes)
        return instant

    def counters(self) -> dict[Direction, Counters]:
        """Return the backend's counters of every impaired direction."""
        value: dict[Direction, Counters] = self._ask("counters")[0]
        return value

    def _ask(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        if self._owner is None:
            raise MachineError("The lab is not up: use it in a `with` block.")
        return self._owner.ask(operation, *arguments, fds=fds)


def _descriptor(stream: Stream) -> int | None:
    if stream is None or isinstance(stream, int):
        return stream
    return stream.fileno()
