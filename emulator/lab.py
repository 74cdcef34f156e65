"""A lab: a topology made real, for as long as a ``with`` block lasts.

with Lab(resolve(load("five-sites"))) as lab:
    lab.spawn("n1", ["/usr/bin/ping", "-c1", lab.node("n2").address]).wait(5)
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from socket import socket as Socket  # noqa: N812 - Lab has a method of the other name
from typing import IO, Any, Literal, Self

from wanlat.emulator import disk
from wanlat.emulator.addressing import router_namespace
from wanlat.emulator.backends import realtime
from wanlat.emulator.binaries import binary
from wanlat.emulator.capture import Capture, Captures, CaptureStatus, backend_of_record
from wanlat.emulator.impairments import Impairments
from wanlat.emulator.interpreter import without_relative
from wanlat.emulator.lateness import LatenessLog
from wanlat.emulator.mounts import LAB_DIRECTORY
from wanlat.emulator.owner import Owner
from wanlat.emulator.process import Process
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Size
from wanlat.topologies.wording import listing

__all__ = ["BackendName", "Lab", "LabNode", "Storage"]

BackendName = Literal["netem", "wire"]
Storage = Literal["memory", "disk"]
Stream = int | IO[Any] | None

_SMALLEST_VOLUME_BYTES = 1 << 20
_NULL = os.makedev(1, 3)  # Documentation/admin-guide/devices.txt
_DYING_S = 10.0  # of a program that was killed, on a machine that is very busy


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


class Lab(Impairments):
    """A running topology. Use as a context manager; everything in it ends with the block.

    Arguments: the resolved plan; ``backend`` (None: netem where the kernel has it, else wire);
    ``seed`` of the impairments' random draws; ``storage``, where nodes' directories are
    (``memory``: a tmpfs of the lab; ``disk``: the user's cache directory); ``splice="all"`` puts
     LAN links without impairments through the backend too, so that they can be changed
    while the lab runs; ``journal``, a file to which every change of a link is written as a line
    of JSON, besides ``lab.journal``; ``capture`` records every packet that crosses a WAN link;
    ``volumes``, the size in bytes of some nodes' directories, each a file system of its own then
    (a tmpfs, whatever ``storage`` is), which can be full; ``writable``, directories of yours
    below which programs on the nodes may write: all others are read-only.

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
        journal: str | os.PathLike[str] | None = None,
        capture: Capture | None = None,
        volumes: Mapping[str, int] | None = None,
        writable: Sequence[Path] = (),
    ) -> None:
        super().__init__(plan, Path(journal) if journal is not None else None)
        self.seed = seed
        self.storage = storage
        self.volumes = dict(volumes or {})
        self._check_volumes()
        self.lateness = LatenessLog(lambda since: self._call("lateness", since)[0])
        """How late packets were, as the backend reports."""
        self._record = Captures(plan, self._call, capture)
        self._nodes: dict[str, LabNode] = {}
        self._owner: Owner | None = None
        self._requested_backend = backend if capture is None else backend_of_record(backend)
        self._backend: str | None = None
        self._splice = splice
        self._writable = tuple(writable)
        self._disk: disk.LabDirectory | None = None
        """The lab's own directory on disk."""
        self.foreign_files: tuple[Path, ...] = ()
        """What lies among the labs' data on disk and is not of a lab: it stays."""
        self._real_time: realtime.RealTime | None = None

    # -- up and down --------------------------------------------------------------------------

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
            self.foreign_files = self._disk.foreign
        try:
            on_disk = (self._disk.nodes,) if self._disk else ()
            self._owner = Owner(
                self._disk.path if self._disk else None, (*on_disk, *self._writable)
            )
            self._backend = self._call(
                "build", self.plan, self._requested_backend, wire, self.seed, self._splice == "all"
            )[0]
            if self._backend == "wire":
                self._real_time = realtime.for_wire(self.supervisor_pid)
            self._make_nodes()
            self._record.start()
            self.journal.begin(time.monotonic_ns(), self.plan.name, self.backend)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the lab and everything in it. Safe to repeat.

        Returns once every process has ended and the kernel has removed every interface and
        namespace; the latter it waits for half a second at most, since a socket of the lab's
        that is still open keeps its namespace.
        """
        try:
            # The record is completed if it can still be done; else it ends where it is.
            with contextlib.suppress(MachineError):
                self.stop_capture()
        finally:
            if self._real_time is not None:
                self._real_time.close()
            if self._owner is not None:
                self._owner.close()
            self.journal.close()
            if self._disk is not None:
                self._disk.remove()
                self._disk = None

    def abort(self, why: str) -> None:
        """End everything in the lab at once, from any thread; ``fate`` is why from then on.

        Whatever waits for the lab or a process of it gets an error with ``why``. The lab must
        still be closed.
        """
        if self._owner is not None:
            self._owner.abort(why)

    def check(self) -> None:
        """Raise MachineError if the lab, or what emulates its links, has ended."""
        if self.fate:
            raise MachineError(f"The lab has ended. {self.fate}")

    @property
    def fate(self) -> str:
        """Return how the lab ended; empty while it lives."""
        return self._owner.fate if self._owner else ""

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

    def _call(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        if self._owner is None:
            raise MachineError("The lab is not up: use it in a `with` block.")
        return self._owner.call(operation, *arguments, fds=fds)

    # -- nodes --------------------------------------------------------------------------------

    def _check_volumes(self) -> None:
        for name, size_bytes in self.volumes.items():
            self.plan.node(name)
            if size_bytes < _SMALLEST_VOLUME_BYTES:
                raise UserError(
                    f"The volume of node {name} is to have {size_bytes} bytes; no store fits into "
                    f"less than {Size(_SMALLEST_VOLUME_BYTES)}."
                )

    def _make_nodes(self) -> None:
        inside = PurePosixPath(self._disk.nodes if self._disk else f"{LAB_DIRECTORY}/nodes")
        for node in self.plan.nodes:
            directory = inside / node.name
            outside = Path(f"/proc/{self.supervisor_pid}/root{directory}")
            if node.name not in self.volumes and self._disk:
                outside = Path(directory)
            outside.mkdir(parents=True, exist_ok=True)
            if node.name in self.volumes:
                self._call("mount_volume", str(directory), self.volumes[node.name])
            self._nodes[node.name] = LabNode(node.name, node.site, node.address, directory, outside)

    @property
    def nodes(self) -> tuple[LabNode, ...]:
        """Return the nodes in the order of the topology."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> LabNode:
        """Return one node. Raises UserError for an unknown name."""
        try:
            return self._nodes[name]
        except KeyError:
            known = listing(self._nodes, at_most=20)
            raise UserError(
                f"There is no node `{name}` in the topology {self.plan.name}; it has {known}."
            ) from None

    # -- programs and sockets -----------------------------------------------------------------

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
            "PATH": without_relative(os.environ.get("PATH", "")),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **(env or {}),
        }
        fds = [_descriptor(stream) for stream in (stdin, stdout, stderr)]
        arguments = [os.fspath(argument) for argument in argv]
        value, _ = self._call(
            "spawn",
            node,
            arguments,
            environment,
            str(cwd or home),
            tuple(fd is not None for fd in fds),
            fds=tuple(fd for fd in fds if fd is not None),
        )
        assert self._owner is not None
        name = f"{Path(arguments[0]).name} on {node}"
        return Process(value, name, self._owner.exit_of(value), self._signal, lambda: self.fate)

    def _signal(self, pid: int, number: int, to_family: bool, has_ended: bool) -> int:
        instant: int = self._call("signal", pid, number, to_family, has_ended)[0]
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

        Raises TimeoutError, after which the program has been killed and is gone.
        """
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            process = self.spawn(node, argv, env=env, stdout=out, stderr=err)
            try:
                code = process.wait(timeout_s)
            except BaseException:
                with contextlib.suppress(MachineError, TimeoutError):
                    process.kill()
                    process.wait(_DYING_S)
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(argv), code, out.read(), err.read())

    def socket(self, node: str, family: int, kind: int, protocol: int = 0) -> Socket:
        """Return a new socket that lives in a node's namespace and can be used from here."""
        self.node(node)
        return self._socket_in(node, family, kind, protocol)

    def site_socket(self, site: str, family: int, kind: int, protocol: int = 0) -> Socket:
        """Return the same in the namespace of a site's router."""
        return self._socket_in(router_namespace(site), family, kind, protocol)

    def _socket_in(self, namespace: str, family: int, kind: int, protocol: int) -> Socket:
        _, fds = self._call("socket", namespace, int(family), int(kind), protocol)
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

    # -- links, as Impairments has them, and the record of their packets -----------------------

    @property
    def capture(self) -> CaptureStatus | None:
        """Return how the packet record stands, or ended; None where there is none.

        None also when the lab ended otherwise than by its block: such a record has no end.
        """
        return self._record.last if self.fate else self._record.status()

    def stop_capture(self) -> CaptureStatus | None:
        """Complete the packet record now instead of with the lab; return how it ended.

        Packets that are on their way are in it as held. Raises MachineError.
        """
        return self._record.stop()


def _descriptor(stream: Stream) -> int | None:
    if stream is None:
        return None
    descriptor = stream if isinstance(stream, int) else stream.fileno()
    if descriptor < 0:  # such as subprocess.PIPE
        raise UserError(
            f"A stream of a lab's process is a file or its descriptor, not {descriptor}. Open "
            "one and pass it; `None` is /dev/null, and `Lab.run` returns what is printed."
        )
    return None if _is_null(descriptor) else descriptor


def _is_null(descriptor: int) -> bool:
    """Whether it is /dev/null: a program that has the host's can change its mode."""
    status = os.fstat(descriptor)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL
