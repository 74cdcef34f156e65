"""Removes a control group when the process that made it has ended, however it ended.

That process holds the other end of a pipe. Should it be killed, so is its lab, by whose end the
group becomes empty; the kernel removes only an empty one.
"""

from __future__ import annotations

import os
import signal
import sys
import time

_PATIENCE_S = 10.0


def main() -> None:
    """Wait, then remove. Arguments: PIPE_FD DIRECTORY."""
    for interrupt in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(interrupt, signal.SIG_IGN)
    lifeline, directory = int(sys.argv[1]), sys.argv[2]
    os.read(lifeline, 1)  # returns when its maker has let go of the pipe
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.rmdir(directory)  # noqa: PTH106 - pathlib takes longer to import than this to run
        except FileNotFoundError:
            return  # its maker has done so
        except OSError:  # somebody is in it
            time.sleep(0.05)
        else:
            return
