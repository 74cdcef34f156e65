"""Turns of labs that are beside each other: as many at a time as this machine has processors.

Building a lab and calibrating it keep a processor busy, and a calibration that meets others finds
packets late that are none of its network's fault. So the labs of a user's runs, whichever processes
they belong to, take turns in that. A turn is a name in the kernel (unix(7), "abstract"), which ends
with the process that has it, however it dies.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable

from wanlat.emulator.machine import cores

_TRY_EVERY_S = 0.1


def take(waiting: Callable[[], object]) -> socket.socket:
    """Wait for a turn, calling ``waiting`` meanwhile; it lasts until what is returned is closed."""
    while True:
        for place in range(cores()):
            turn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                turn.bind(f"\0wanlat-turn/{os.geteuid()}/{place}")
            except OSError as error:
                turn.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return turn
        waiting()
        time.sleep(_TRY_EVERY_S)
