"""PID 1 of a lab: builds the network, starts processes in it, answers its owner.

One thread and one loop. Requests come as ``(number, operation, arguments)`` with descriptors
beside them; an operation is a method of `Supervisor`, or else of the lab's backend. Answers go
back as ``("reply", number, value)`` or ``("error", number, exception)``, as
wanlat.emulator.failures has it. Ended processes are reported, as ``("exit", pid, code,
instant)``. When the stream ends, this process ends and the kernel ends the lab with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - Supervisor has a method of the other name

from wanlat.emulator import family, imports, mounts, syscalls
from wanlat.emulator.backends import Backend, choice
from wanlat.emulator.backends.netem import NetemBackend
from wanlat.emulator.backends.netem import available as netem_available
from wanlat.emulator.backends.wire import WireBackend
from wanlat.emulator.capture import CaptureStatus
from wanlat.emulator.failures import for_owner
from wanlat.emulator.links import Direction, requested
from wanlat.emulator.machine import Limits, check_limits, explain_sandbox_failure
from wanlat.emulator.mounts import LAB_DIRECTORY
from wanlat.emulator.namespaces import Namespaces
from wanlat.emulator.network import Network
from wanlat.emulator.rpc import Closed, Stream
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment, Plan

_PACKAGES = {
    **dict.fromkeys(("ip", "ss", "tc", "bridge", "nstat"), "iproute2"),
    **dict.fromkeys(("nc", "netcat"), "netcat-openbsd"),
    **dict.fromkeys(("dig", "host", "nslookup"), "bind9-dnsutils"),
    **{name: f"iputils-{name}" for name in ("ping", "tracepath")},
    **{name: name for name in ("curl", "fping", "hping3", "iperf", "iperf3", "mtr", "nmap")},
    **{name: name for name in ("socat", "tcpdump", "ethtool", "netperf", "strace")},
    **{name: name for name in ("traceroute", "tshark", "wget")},
}
"""Programs that people try networks with, and Debian's packages of them."""

_CAPABILITIES = {
    *range(9),  # over the lab's own files, processes and users: CAP_CHOWN to CAP_SETPCAP
    *(10, 12, 13),  # CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW
    *(14, 15, 18),  # CAP_IPC_LOCK, CAP_IPC_OWNER, CAP_SYS_CHROOT
    *(21, 23, 24),  # CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE
    31,  # CAP_SETFCAP: a program in a user namespace of its own needs it
}
"""Of the lab's programs, in their user namespace (linux/capability.h).

Without CAP_SYS_PTRACE none can look into, or take over, a process that has more: the supervisor,
which its owner trusts, and wire, which the measurements do.
"""


class Supervisor:
    """Serves the owner of the lab until it goes away."""

    _backend: Backend
    _namespaces: Namespaces
    _network: Network

    def __init__(self, stream: Stream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        """Serve until the stream ends, then end in good order."""
        try:
            with contextlib.suppress(Closed):
                self._serve_all()
        finally:
            if hasattr(self, "_backend"):
                self._backend.stop()

    def _serve_all(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if wake_read in ready:
                os.read(wake_read, 4096)
                self._reap()
            if self._stream.fileno() in ready:
                self._serve()
            while self._stream.has_message:
                self._serve()

    def _serve(self) -> None:
        (number, operation, arguments), fds = self._stream.receive()
        try:
            serve = getattr(self, operation, None) or getattr(self._backend, operation)
            value = serve(*arguments, **({"fds": fds} if fds else {}))
            if isinstance(value, Socket):
                with value:
                    self._stream.send(("reply", number, None), [value.fileno()])
            else:
                self._stream.send(("reply", number, value))
        except Closed:
            raise
        except Exception as error:
            self._stream.send(("error", number, for_owner(error, operation)))
        finally:
            for fd in fds:
                os.close(fd)

    def _reap(self) -> None:
        instant = time.monotonic_ns()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            child = self._children.pop(pid, None)
            if child is not None:
                child.returncode = code  # it is reaped; Popen must not try again
                self._stream.send(("exit", pid, code, instant))
            elif pid == getattr(getattr(self, "_backend", None), "pid", None):
                self._stream.send(("broken", f"the wire process ended with code {code}"))

    def build(
        self,
        plan: Plan,
        backend: str | None,
        wire_program: Path | None,
        seed: int,
        splice_every_lan: bool,
    ) -> str:
        """Make the network and start the emulation of its links; return the backend's name."""
        self._namespaces = Namespaces()
        chosen = choice.choose(
            backend, requested(plan), netem_available=backend is None and netem_available()
        )
        network = Network(
            self._namespaces, plan, splice_wan=chosen == "wire", splice_every_lan=splice_every_lan
        )
        spliced = sum(map(network.is_spliced, network.links))
        check_limits(
            self._limits,
            sites=len(plan.sites),
            nodes=len(plan.nodes),
            sockets=2 * spliced if chosen == "wire" else 0,
        )
        if chosen == "netem":
            self._backend = NetemBackend(seed)
        elif wire_program is not None:
            self._backend = WireBackend(wire_program, seed)
        else:
            raise MachineError(
                "The wire backend is needed, since this kernel has no netem, but the program "
                "`wire` is not built. Build it with `make build`."
            )
        self._network = network
        network.build()
        _name_nodes(plan)
        network.send_single_segments(
            link for link in network.links if link.ab.counts_packets or link.ba.counts_packets
        )
        try:
            mounts.seal()
        except OSError as error:
            raise MachineError(explain_sandbox_failure(error)) from error
        imports.forbid()
        self._backend.start(network)
        syscalls.limit_capabilities(_CAPABILITIES)
        return chosen

    def mount_volume(self, directory: str, size_bytes: int) -> None:
        """Put a file system of limited size on a directory; it ends with the lab's mounts."""
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
        syscalls.mount("volume", directory, "tmpfs", flags, f"mode=755,size={size_bytes}")

    def spawn(
        self,
        namespace: str,
        argv: list[str],
        environment: dict[str, str],
        directory: str,
        streams: tuple[bool, bool, bool],
        fds: Sequence[int] = (),
    ) -> int:
        """Start a program; return its pid. ``fds`` are those of its ``streams`` that are given."""
        given = iter(fds)
        stdin, stdout, stderr = (
            next(given) if is_given else subprocess.DEVNULL for is_given in streams
        )
        with self._namespaces.entered(namespace):
            try:
                Path(directory).mkdir(parents=True, exist_ok=True)
                child = subprocess.Popen(
                    argv,
                    env=environment,
                    cwd=directory,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                message = f"{argv[0]} could not be started on {namespace}: {error.strerror}."
                if isinstance(error, FileNotFoundError) and argv[0] in _PACKAGES:
                    message += " Debian and Ubuntu have it in a package: apt-get install "
                    message += _PACKAGES[argv[0]]
                raise MachineError(message) from error
        self._children[child.pid] = child
        return child.pid

    def signal(self, pid: int, number: int, to_family: bool, has_ended: bool) -> int:
        """Signal a process, or it and what it has started; return the instant.

        One that has ended gets none, since its number may be another's; its family, if the owner
        knows that it has ended.
        """
        if to_family and (pid in self._children) is not has_ended:
            family.send(Path("/proc"), pid, number)
        elif not to_family and pid in self._children:
            os.kill(pid, number)
        return time.monotonic_ns()

    def socket(self, namespace: str, family: int, kind: int, protocol: int) -> Socket:
        """Make a socket in a namespace."""
        with self._namespaces.entered(namespace):
            return Socket(family, kind, protocol)

    def change(self, changes: dict[Direction, Impairment]) -> tuple[int, int]:
        """Change links; return the instants (CLOCK_MONOTONIC, ns) between which it took effect."""
        choice.check(self._backend.name, changes)
        self._network.send_single_segments(
            link
            for link in self._network.links
            if any(
                direction in changes and changes[direction].counts_packets
                for direction in link.directions
            )
        )
        return self._backend.change(changes)

    def start_capture(self, limit_bytes: int, snap_bytes: int, fds: Sequence[int]) -> CaptureStatus:
        """Record packets to the files that are given: pcapng and rows."""
        # A file may lie where this mount namespace has something else; its descriptor leads
        # to it. Whoever writes it opens it before this request is answered.
        pcapng, rows = (f"/proc/{os.getpid()}/fd/{fd}" for fd in fds)
        assert isinstance(self._backend, WireBackend), "a lab with a record has this backend"
        return self._backend.start_capture(pcapng, rows, limit_bytes, snap_bytes)


def _name_nodes(plan: Plan) -> None:
    """Have every node know the others by name, as users of Mininet and containerlab expect."""
    own = Path(LAB_DIRECTORY, "hosts")
    lines = ["127.0.0.1 localhost", "::1 localhost", f"127.0.1.1 {socket.gethostname()}"]
    lines += [f"{node.address} {node.name}" for node in plan.nodes]
    own.write_text("\n".join(lines) + "\n", encoding="ascii")
    with contextlib.suppress(FileNotFoundError):  # a host without that file: names do not resolve
        syscalls.mount(str(own), "/etc/hosts", flags=syscalls.MS_BIND)
