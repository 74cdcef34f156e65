"""Network namespaces of a lab, by name. Used inside the sandbox only.

Each is pinned by a mount under /run/netns and opened from there when it is needed: a lab of
1,000 nodes holds no more descriptors than one of ten.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from wanlat.emulator import rtnetlink, syscalls
from wanlat.emulator.addressing import CORE
from wanlat.emulator.mounts import LAB_DIRECTORY, NAMESPACE_DIRECTORY
from wanlat.emulator.rtnetlink import Request
from wanlat.topologies.errors import MachineError
from wanlat.topologies.wording import in_words

_OPERATING_S = 30.0

# Emulated hosts say only what their programs say: no IPv6 neighbour discovery or router
# solicitation of the kernel's own crosses a link and counts as traffic. (What is written to
# `all` goes for `default` too: addrconf_disable_ipv6(), net/ipv6/addrconf.c.)
_EVERY_NAMESPACE = {"net/ipv6/conf/all/disable_ipv6": "1"}
_ROUTER = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
}


# The kernel finds a namespace's settings by going through those of all namespaces that were
# looked up before (proc_sys_compare(), fs/proc/proc_sysctl.c), in each mounted /proc by itself.
# So that the thousandth takes no longer than the first, a new /proc is used after so many.
_NAMESPACES_A_PROC = 32


class Namespaces:
    """Every network namespace of the lab, the core included."""

    def __init__(self) -> None:
        self._count = 0
        self._proc = -1
        self._core = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._begin(CORE, _EVERY_NAMESPACE)

    def create(self, name: str, requests: Sequence[Request] = (), *, router: bool) -> None:
        """Make a namespace, carry ``requests`` out in it, and pin it under /run/netns.

        Raises MachineError.
        """
        try:
            syscalls.unshare(syscalls.CLONE_NEWNET)
        except OSError as error:
            hint = " Other labs count too: see user.max_net_namespaces."
            raise MachineError(
                f"The kernel refused the network namespace {name}, after {self._count} of "
                f"this lab: {in_words(error)}.{hint if error.errno == errno.ENOSPC else ''}"
            ) from error
        try:
            self._begin(name, _EVERY_NAMESPACE | _ROUTER if router else _EVERY_NAMESPACE, requests)
        finally:
            syscalls.setns(self._core, syscalls.CLONE_NEWNET)

    def _begin(
        self, name: str, settings: Mapping[str, str], requests: Sequence[Request] = ()
    ) -> None:
        """Make the namespace that the process is in ready, and pin it."""
        if self._count % _NAMESPACES_A_PROC == 0:
            self.finish()
            self._proc = syscalls.open_proc(LAB_DIRECTORY)
        for setting, value in settings.items():
            # A kernel without IPv6 has none of its settings.
            with suppress(FileNotFoundError):
                file = os.open(f"sys/{setting}", os.O_WRONLY, dir_fd=self._proc)
                os.write(file, value.encode())
                os.close(file)
        _send(name, [rtnetlink.link_up(1, "lo"), *requests])
        path = f"{NAMESPACE_DIRECTORY}/{name}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        syscalls.mount("/proc/self/ns/net", path, flags=syscalls.MS_BIND)
        self._count += 1

    def finish(self) -> None:
        """Note that all namespaces have been made."""
        if self._proc >= 0:
            os.close(self._proc)
        self._proc = -1

    @contextmanager
    def opened(self, names: Sequence[str]) -> Iterator[dict[str, int]]:
        """Yield descriptors of namespaces, for requests that refer to them."""
        descriptors: dict[str, int] = {}
        try:
            for name in names:
                descriptors[name] = _open(name)
            yield descriptors
        finally:
            for descriptor in descriptors.values():
                os.close(descriptor)

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Be in a namespace for a while."""
        descriptor = _open(name)
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        try:
            yield
        finally:
            syscalls.setns(self._core, syscalls.CLONE_NEWNET)

    def send(self, name: str, requests: Sequence[Request]) -> None:
        """Carry out requests in a namespace, many with one system call.

        Raises MachineError, which names the request that was refused, and why.
        """
        if requests:
            with self.entered(name):
                _send(name, requests)

    def await_operating(self, name: str, indexes: Sequence[int]) -> None:
        """Wait until interfaces of a namespace can send. Raises MachineError.

        An interface that came up before its peer drops what it is given until the kernel has
        taken note of the peer, which may be a second later (net/core/link_watch.c).
        """
        with self.entered(name), rtnetlink.Socket() as netlink:
            give_up = time.monotonic() + _OPERATING_S
            while not netlink.are_operating(indexes):
                if time.monotonic() > give_up:
                    raise MachineError(
                        f"The interfaces of the lab's namespace {name} did not come into "
                        f"operation within {_OPERATING_S:.0f} s."
                    )
                time.sleep(0.005)


def _open(name: str) -> int:
    return os.open(f"{NAMESPACE_DIRECTORY}/{name}", os.O_RDONLY)


def _send(name: str, requests: Sequence[Request]) -> None:
    try:
        with rtnetlink.Socket() as netlink:
            netlink.send(requests)
    except rtnetlink.Refusal as refusal:
        raise MachineError(
            f"The kernel would not {refusal} (in the lab's namespace {name})."
        ) from refusal
