"""The sandbox: namespaces around a lab, and the process that guards them.

Three processes stand between a user's command and a lab:

    caller ── guard ── supervisor (PID 1 of the lab) ── everything in the lab

The guard is this module run as a program. It makes the namespaces, forks the supervisor into
them and waits. Whichever of the three dies, however it dies, the lab is gone:

- the supervisor: the kernel kills every process of a PID namespace with its first;
- the guard: the kernel kills the supervisor with it (PR_SET_PDEATHSIG);
- the caller: the guard sees its pidfd become ready, or the lifeline close, and ends.

Interfaces, namespaces and mounts are the kernel's to free once no process is left in them. Data
kept on disk (``storage="disk"``) is removed by the guard, or by the caller when the guard died.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence

from wanlat.emulator import mounts, syscalls
from wanlat.emulator.machine import Limits, read_limits
from wanlat.emulator.rpc import PICKLE, Closed, Stream

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# How long the supervisor may take to end a lab in good order. When the caller has been killed,
# no order is needed any more, and what it left is to be gone within a second.
_ORDERLY_S = 5.0
_ORPHANED_S = 0.3
_DISMANTLING_S = 0.5  # a socket that the caller still holds keeps its namespace: not for long
_PAUSE_S = 0.001
_NAMESPACE_LIMIT = "/proc/sys/user/max_net_namespaces"  # of the user namespace of whoever opens it


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn a refusal of the machine into one with its reason and what to do about it."""
    try:
        yield
    except OSError as error:
        # Imported here: what a lab that comes up does not need costs it time.
        from wanlat.emulator.machine import explain_sandbox_failure
        from wanlat.topologies.errors import MachineError

        raise MachineError(explain_sandbox_failure(error)) from error


def _report(stream: Stream, error: Exception) -> None:
    """Send the owner why there is no lab; on stderr, which is the owner's, if it is gone.

    os._exit() skips the interpreter's own report.
    """
    from wanlat.emulator.failures import for_owner

    try:
        stream.send(("over", for_owner(error, "be kept up")))
    except Closed:
        sys.excepthook(*sys.exc_info())


def _enter_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(
        syscalls.CLONE_NEWUSER
        | syscalls.CLONE_NEWPID
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWUTS
        | syscalls.CLONE_NEWIPC
    )
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")


def _leave_guard() -> None:
    """Enter the lab's own mount and network namespaces, in which the guard has no part.

    What the guard shared would last as long as the guard, and it is to see the lab's end.
    """
    syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)


def _supervise(
    stream: Stream,
    limits: Limits,
    writable: Sequence[str],
    sockets: Sequence[str],
    go_read: int,
    go_write: int,
) -> None:
    os.close(go_write)
    syscalls.die_with_parent(signal.SIGKILL)
    # The guard may have died before the line above took effect; then no byte comes.
    if os.read(go_read, 1) != b"g":
        return
    os.close(go_read)
    syscalls.set_process_name("wanlat-lab")
    for interrupt in _INTERRUPTS:
        # An ignored signal stays ignored over exec(), and the lab's processes need theirs.
        signal.signal(interrupt, signal.SIG_DFL)
    with _explained():
        _leave_guard()
        mounts.make_private(writable, sockets)
        socket.sethostname("wanlat")
    # Imported here: the guard itself needs none of it.
    from wanlat.emulator.supervisor import Supervisor

    Supervisor(stream, limits).run()


def _guard(child: int, caller: int, lifeline: int, disk: str | None) -> None:
    """Wait until the supervisor or the caller ends, then see that nothing is left."""
    # Imported while the supervisor is at work, for the end.
    from pathlib import Path

    from wanlat.emulator.own_directories import remove_marked

    child_fd = os.pidfd_open(child)
    ready = syscalls.wait_readable([child_fd, caller, lifeline])
    if child_fd not in ready:
        # The supervisor has seen the same end and lets go in good order.
        ready = syscalls.wait_readable([child_fd, caller], _ORDERLY_S)
        if ready == {caller}:
            syscalls.wait_readable([child_fd], _ORPHANED_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    # Returns once the kernel has ended every process of the lab's PID namespace.
    _, status = os.waitpid(child, 0)
    if disk is not None:
        remove_marked(Path(disk))
    if status == 0:  # else it ends as soon as it can
        with contextlib.suppress(OSError):
            wait_until_dismantled(_DISMANTLING_S, unless=caller)


def wait_until_dismantled(timeout_s: float, unless: int | None = None) -> bool:
    """Wait until this process's own network namespace is the last of its user namespace.

    The kernel dismantles namespaces in the background, interface by interface, and counts one
    as gone only when nothing of it is left (cleanup_net() in net/core/net_namespace.c). With a
    limit of two on their number, one more can be had once all others are gone; this process
    then lives in that one. Returns whether it came to that in time, and before the descriptor
    ``unless`` became readable.

    Must be called as root of a user namespace of its own. Raises OSError.
    """
    _write(_NAMESPACE_LIMIT, "2")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            syscalls.unshare(syscalls.CLONE_NEWNET)
            return True
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        given_up = syscalls.wait_readable([] if unless is None else [unless], _PAUSE_S)
        if given_up or time.monotonic() > deadline:
            return False


def main() -> None:
    """Run the guard. Arguments: STREAM_FD LIFELINE_FD CALLER_PID DISK DIRECTORY...

    DISK (empty: none) is removed at the end. The lab's programs may write below every DIRECTORY.
    """
    stream_fd, lifeline, caller_pid = (int(text) for text in sys.argv[1:4])
    disk = sys.argv[4] or None
    writable = sys.argv[5:]
    stream = Stream(socket.socket(fileno=stream_fd), codec=PICKLE)
    for interrupt in _INTERRUPTS:
        signal.signal(interrupt, signal.SIG_IGN)
    syscalls.set_process_name("wanlat-guard")
    try:
        caller = os.pidfd_open(caller_pid)
    except OSError:
        return  # The caller is gone already.
    try:
        limits, sockets = read_limits(), mounts.host_sockets()
        with _explained():
            _enter_namespaces()
    except Exception as error:
        _report(stream, error)
        return
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(lifeline)
        os.close(caller)
        try:
            _supervise(stream, limits, writable, sockets, go_read, go_write)
        except Exception as error:
            _report(stream, error)
        finally:
            os._exit(0)
    with contextlib.suppress(Closed):
        stream.send(("reply", 0, child))
    stream.abandon()
    os.close(go_read)
    with contextlib.suppress(BrokenPipeError):
        os.write(go_write, b"g")
    os.close(go_write)
    _guard(child, caller, lifeline, disk)
