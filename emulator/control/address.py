"""Where a running lab listens: a socket that has a name and no file.

Linux keeps the names of such sockets (unix(7), "abstract") itself. They end with the process
that listens, however it dies, so none is ever stale; and they belong to the host's network
namespace, so nothing inside a lab reaches one. They have no permissions: both ends look at who
is on the other side instead, and talk to nobody but their own user.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def name_of(pid: int) -> str:
    """Return the name at which this user's process ``pid`` listens."""
    return f"wanlat-lab/{os.geteuid()}/{pid}"


def listening() -> list[int]:
    """Return the processes that listen under names of this user's labs, in order."""
    pattern = re.compile(rf"@wanlat-lab/{os.geteuid()}/([0-9]{{1,10}})")
    found = set()
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines():
        # Num RefCount Protocol Flags Type St Inode Path; the flag is __SO_ACCEPTCON.
        fields = line.split(maxsplit=7)
        match = pattern.fullmatch(fields[-1]) if len(fields) == 8 else None
        if match and int(fields[3], 16) & 0x10000:
            found.add(int(match[1]))
    return sorted(found)


def listen() -> socket.socket:
    """Return a socket that listens at this process's name. Raises OSError when it is taken."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(f"\0{name_of(os.getpid())}")
        made.listen()
    except BaseException:
        made.close()
        raise
    return made


def connect(pid: int, timeout_s: float) -> socket.socket:
    """Return a connection to a lab. Raises OSError, also when another user holds the name."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect(f"\0{name_of(pid)}")
        if not is_ours(made):
            raise PermissionError(f"process {pid} is another user's")
    except BaseException:
        made.close()
        raise
    return made


def is_ours(connection: socket.socket) -> bool:
    """Tell whether the other end is a process of this user."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _pid, uid, _gid = _CREDENTIALS.unpack(raw)
    return bool(uid == os.geteuid())
