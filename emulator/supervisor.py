"""PID 1 of a lab: builds the network, starts processes in it, answers its owner.

One thread and one loop. Requests come over the channel as ``(number, operation, arguments)``
with descriptors beside them; answers go back as ``("reply", number, value)`` or
``("error", number, exception)``; which exception, wanlat.emulator.failures says. Ended processes
are told unasked, as ``("exit", pid, code, instant)``. When the channel closes, this process ends
and the kernel ends the lab with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wanlat.emulator import capacity, family, syscalls
from wanlat.emulator.backends import Backend, choice
from wanlat.emulator.backends.netem import NetemBackend
from wanlat.emulator.backends.netem import available as netem_available
from wanlat.emulator.backends.wire import WireBackend
from wanlat.emulator.capacity import Limits
from wanlat.emulator.capture import Request
from wanlat.emulator.channel import Channel, Closed
from wanlat.emulator.links import Direction, requested
from wanlat.emulator.namespaces import Namespaces
from wanlat.emulator.network import Network, wants_single_segments
from wanlat.emulator.sandbox import LAB_DIRECTORY
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment, Plan

Answer = tuple[Any, tuple[int, ...]]  # a value, and descriptors that go with it


_HOSTS = "/etc/hosts"


def _name_nodes(plan: Plan) -> None:
    """Have every node know the others by name, as users of Mininet and containerlab expect."""
    own = Path(LAB_DIRECTORY, "hosts")
    lines = ["127.0.0.1 localhost", "::1 localhost", f"127.0.1.1 {socket.gethostname()}"]
    lines += [f"{node.address} {node.name}" for node in plan.nodes]
    own.write_text("\n".join(lines) + "\n", encoding="ascii")
    with contextlib.suppress(FileNotFoundError):  # a host without that file: names do not resolve
        syscalls.mount(str(own), _HOSTS, flags=syscalls.MS_BIND)


_PACKAGES = {
    **dict.fromkeys(("ip", "ss", "tc", "bridge", "nstat"), "iproute2"),
    **dict.fromkeys(("nc", "netcat"), "netcat-openbsd"),
    **dict.fromkeys(("dig", "host", "nslookup"), "bind9-dnsutils"),
    "ping": "iputils-ping",
    "tracepath": "iputils-tracepath",
    **dict.fromkeys(
        ("curl", "fping", "hping3", "iperf", "iperf3", "mtr", "nmap", "socat", "tcpdump"), ""
    ),
    **dict.fromkeys(("ethtool", "netperf", "strace", "traceroute", "tshark", "wget"), ""),
}
"""Programs that people try networks with, and Debian's packages of them ("": of the same name)."""


def _package_hint(program: str, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError) or program not in _PACKAGES:
        return ""
    package = _PACKAGES[program] or program
    return f" Debian and Ubuntu have it in a package: apt-get install {package}"


class Supervisor:
    """Serves the owner of the lab until it goes away."""

    def __init__(self, channel: Channel, limits: Limits) -> None:
        self._channel = channel
        self._limits = limits
        self._namespaces: Namespaces | None = None
        self._network: Network | None = None
        self._backend: Backend | None = None
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._operations: dict[str, Callable[..., Answer]] = {
            "build": self._build,
            "mount_volume": self._mount_volume,
            "make_writable": self._make_writable,
            "spawn": self._spawn,
            "signal": self._signal,
            "signal_family": self._signal_family,
            "socket": self._socket,
            "change": self._change,
            "counters": self._counters,
            "start_capture": self._start_capture,
            "capture_status": self._capture_status,
            "stop_capture": self._stop_capture,
        }

    def run(self) -> None:
        """Serve until the channel closes, then end in good order."""
        try:
            self._serve_all()
        finally:
            if self._backend is not None:
                self._backend.stop()

    def _serve_all(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            try:
                if wake_read in ready:
                    os.read(wake_read, 4096)
                    self._reap()
                if self._channel.fileno() in ready:
                    self._serve()
            except Closed:
                return

    def _serve(self) -> None:
        (number, operation, arguments), fds = self._channel.receive()
        passed: tuple[int, ...] = ()
        try:
            value, passed = self._operations[operation](*arguments, fds)
            self._channel.send(("reply", number, value), passed)
        except Closed:
            raise
        except Exception as error:
            # Imported here: what a lab that comes up does not need costs it time.
            from wanlat.emulator.failures import told

            self._channel.send(("error", number, told(error, operation)))
        finally:
            for fd in (*fds, *passed):
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
                self._channel.send(("exit", pid, code, instant))
            elif isinstance(self._backend, WireBackend) and pid == self._backend.pid:
                self._channel.send(("broken", f"the wire process ended with code {code}"))

    def _build(
        self,
        plan: Plan,
        backend: str | None,
        wire_program: Path | None,
        seed: int,
        splice_every_lan: bool,
        _fds: list[int],
    ) -> Answer:
        self._namespaces = Namespaces()
        chosen = choice.choose(
            backend,
            requested(plan),
            netem_available=backend is None and netem_available(),
        )
        if chosen == "wire":
            if wire_program is None:
                raise MachineError(
                    "The wire backend is needed, since this kernel has no netem, but the program "
                    "`wire` is not built. Build it with `make build`."
                )
            self._backend = WireBackend(wire_program, seed)
        else:
            self._backend = NetemBackend(seed)
        self._network = Network(
            self._namespaces,
            plan,
            splice_wan=chosen == "wire",
            splice_every_lan=splice_every_lan,
        )
        spliced = sum(map(self._network.is_spliced, self._network.links))
        capacity.check(
            self._limits,
            sites=len(plan.sites),
            nodes=len(plan.nodes),
            sockets=2 * spliced if chosen == "wire" else 0,
        )
        self._network.build()
        _name_nodes(plan)
        self._network.send_single_segments(
            link
            for link in self._network.links
            if wants_single_segments(link.ab) or wants_single_segments(link.ba)
        )
        self._backend.start(self._network)
        return chosen, ()

    def _mount_volume(self, directory: str, size_bytes: int, _fds: list[int]) -> Answer:
        """Put a file system of limited size on a directory; it ends with the lab's mounts."""
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
        syscalls.mount("volume", directory, "tmpfs", flags, f"mode=755,size={size_bytes}")
        return None, ()

    def _make_writable(self, directory: str, _fds: list[int]) -> Answer:
        """Let the lab's programs write below a directory of the host's after all."""
        syscalls.mount(directory, directory, flags=syscalls.MS_BIND)
        syscalls.set_read_only(directory, False)
        return None, ()

    def _spawn(
        self,
        namespace: str,
        argv: list[str],
        environment: dict[str, str],
        directory: str,
        streams: tuple[bool, bool, bool],
        fds: list[int],
    ) -> Answer:
        given = iter(fds)
        stdin, stdout, stderr = (
            next(given) if is_given else subprocess.DEVNULL for is_given in streams
        )
        assert self._namespaces is not None
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
                raise MachineError(
                    f"{argv[0]} could not be started on {namespace}: {error.strerror}."
                    + _package_hint(argv[0], error)
                ) from error
        self._children[child.pid] = child
        return child.pid, ()

    def _signal(self, pid: int, number: int, _fds: list[int]) -> Answer:
        """Signal a process, or with a negative number the group that it leads."""
        if abs(pid) in self._children:  # else it has ended, and its number may be another's
            os.kill(pid, number)
        return time.monotonic_ns(), ()

    def _signal_family(self, pid: int, number: int, has_ended: bool, _fds: list[int]) -> Answer:
        """Signal a process and what it has started, or what is left of that when it has ended."""
        if (pid in self._children) is not has_ended:  # else its number may be another's
            family.send(Path("/proc"), pid, number)
        return time.monotonic_ns(), ()

    def _socket(
        self, namespace: str, family: int, kind: int, protocol: int, _fds: list[int]
    ) -> Answer:
        assert self._namespaces is not None
        with self._namespaces.entered(namespace):
            made = socket.socket(family, kind, protocol)
        return None, (made.detach(),)

    def _change(self, changes: dict[Direction, Impairment], _fds: list[int]) -> Answer:
        assert self._backend is not None and self._network is not None
        choice.check(self._backend.name, changes)
        self._network.send_single_segments(
            link
            for link in self._network.links
            if any(
                direction in changes and wants_single_segments(changes[direction])
                for direction in link.directions
            )
        )
        instant = self._backend.change(changes)
        # netem cannot tell the instant itself, but between which two it lies.
        return getattr(self._backend, "window_ns", (instant, instant)), ()

    def _counters(self, _fds: list[int]) -> Answer:
        assert self._backend is not None
        return self._backend.counters(), ()

    def _start_capture(
        self, program: Path, limit_bytes: int, snap_bytes: int, fds: list[int]
    ) -> Answer:
        assert self._backend is not None
        # The file may lie where this mount namespace has something else; its descriptor says
        # where it is. Whoever writes it opens it before this request is answered.
        path = f"/proc/{os.getpid()}/fd/{fds[0]}"
        request = Request(program, path, limit_bytes, snap_bytes)
        return self._backend.start_capture(request), ()

    def _capture_status(self, _fds: list[int]) -> Answer:
        assert self._backend is not None
        return self._backend.capture_status(), ()

    def _stop_capture(self, _fds: list[int]) -> Answer:
        assert self._backend is not None
        return self._backend.stop_capture(), ()
