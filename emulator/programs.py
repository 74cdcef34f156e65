"""Programs and sockets on the nodes of a running lab."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from socket import socket as Socket  # noqa: N812 - Programs has a method of the other name
from typing import IO, Any

from wanlat.emulator.addressing import router_namespace
from wanlat.emulator.process import Process
from wanlat.emulator.sandboxed import Sandboxed
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import listing

Stream = int | IO[Any] | None

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


class Programs(Sandboxed):
    """The part of a lab that starts programs and opens sockets on its nodes."""

    def __init__(self, plan: Plan) -> None:
        Sandboxed.__init__(self, plan)
        self._nodes: dict[str, LabNode] = {}

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

    def make_writable(self, directory: Path) -> None:
        """Let programs on the nodes write below a directory of yours; all others are read-only.

        Raises MachineError.
        """
        self._ask("make_writable", str(directory.absolute()))

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
        process = Process(value, name, self._signal, lambda: self.fate, self._signal_family)
        assert self._owner is not None
        self._owner.track(process)
        return process

    def _signal(self, pid: int, number: int) -> int:
        instant: int = self._ask("signal", pid, number)[0]
        return instant

    def _signal_family(self, pid: int, number: int, has_ended: bool) -> int:
        instant: int = self._ask("signal_family", pid, number, has_ended)[0]
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
        _, fds = self._ask("socket", namespace, int(family), int(kind), protocol)
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


def _descriptor(stream: Stream) -> int | None:
    if stream is None:
        return None
    descriptor = stream if isinstance(stream, int) else stream.fileno()
    if descriptor < 0:  # such as subprocess.PIPE
        raise UserError(
            f"A stream of a lab's process is a file or its descriptor, not {descriptor}. Open "
            "one and pass it; `None` is /dev/null, and `Lab.run` returns what is printed."
        )
    return descriptor
