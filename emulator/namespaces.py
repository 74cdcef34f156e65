"""Network namespaces of a lab, by name. Used inside the sandbox only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from emulator import syscalls
from emulator.sandbox import NAMESPACE_DIRECTORY

CORE = "core"  # the sandbox's first namespace: splices and the wire process live there

# Emulated hosts say only what their programs say: no IPv6 neighbour discovery or router
# solicitation of the kernel's own crosses a link and counts as traffic.
_EVERY_NAMESPACE = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
_ROUTER = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
}


def _set_sysctls(values: dict[str, str]) -> None:
    for name, value in values.items():
        path = Path("/proc/sys", name)
        if path.exists():  # a kernel without IPv6 has none of its settings
            path.write_text(value)


class Namespaces:
    """Every network namespace of the lab, the core included."""

    def __init__(self) -> None:
        self._fds: dict[str, int] = {CORE: os.open("/proc/self/ns/net", os.O_RDONLY)}
        _set_sysctls(_EVERY_NAMESPACE)
        self._loopback_up()
        self._pin(CORE)

    def __contains__(self, name: str) -> bool:
        return name in self._fds

    def fd(self, name: str) -> int:
        """Return the descriptor of a namespace."""
        return self._fds[name]

    def create(self, name: str, *, router: bool) -> None:
        """Make a namespace with its loopback up, and pin it under /run/netns."""
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            self._fds[name] = os.open("/proc/self/ns/net", os.O_RDONLY)
            _set_sysctls(_EVERY_NAMESPACE | (_ROUTER if router else {}))
            self._loopback_up()
            self._pin(name)
        finally:
            syscalls.setns(self._fds[CORE], syscalls.CLONE_NEWNET)

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Be in a namespace for a while."""
        with syscalls.network_namespace(self._fds[name], self._fds[CORE]):
            yield

    @contextmanager
    def netlink(self, name: str) -> Iterator[Any]:
        """Yield an open rtnetlink socket of a namespace; its requests need no setns()."""
        with self.entered(name):
            socket = IPRoute()
        try:
            yield socket
        finally:
            socket.close()

    @staticmethod
    def _loopback_up() -> None:
        with IPRoute() as netlink:
            netlink.link("set", index=1, state="up")

    @staticmethod
    def _pin(name: str) -> None:
        path = Path(NAMESPACE_DIRECTORY, name)
        path.touch()
        syscalls.mount("/proc/self/ns/net", str(path), flags=syscalls.MS_BIND)
