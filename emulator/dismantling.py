"""The end of a lab, awaited: the kernel takes network namespaces down after their last user."""

from __future__ import annotations

import errno
import time

from wanlat.emulator import syscalls

_LIMIT = "/proc/sys/user/max_net_namespaces"  # of the user namespace of whoever opens it
_PAUSE_S = 0.001


def wait_until_dismantled(timeout_s: float, unless: int | None = None) -> bool:
    """Wait until this process's own network namespace is the last of its user namespace.

    The kernel dismantles namespaces in the background, interface by interface, and counts one
    as gone only when nothing of it is left (cleanup_net() in net/core/net_namespace.c). With a
    limit of two on their number, one more can be had once all others are gone; this process
    then lives in that one. Returns whether it came to that in time, and before the descriptor
    ``unless`` became readable.

    Must be called as root of a user namespace of its own. Raises OSError.
    """
    with open(_LIMIT, "w", encoding="ascii") as file:
        file.write("2")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            syscalls.unshare(syscalls.CLONE_NEWNET)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        else:
            return True
        given_up = syscalls.wait_readable([] if unless is None else [unless], _PAUSE_S)
        if given_up or time.monotonic() > deadline:
            return False
