"""What a signal sets, and work looks at between two of its steps."""

from __future__ import annotations

import os
import select
import time

_LOOK_S = 0.5
"""A signal that another thread took does not end the main thread's wait."""


class Stop:
    """An event that a signal's handler may set, whatever the thread that it interrupts is doing.

    `threading.Event` is none: its lock may be held by that very thread, which waits for it then.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def __del__(self) -> None:
        os.close(self._fd)

    def set(self) -> None:
        """End all waits, now and from now on."""
        self._is_set = True
        os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        """Have waits last again. Not while another thread waits or sets it."""
        if self._is_set:
            self._is_set = False
            os.eventfd_read(self._fd)

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return whether it is set."""
        until_s = time.monotonic() + seconds
        while not self._is_set and (left_s := until_s - time.monotonic()) > 0:
            self._poll.poll(min(left_s, _LOOK_S) * 1000)
        return self._is_set
