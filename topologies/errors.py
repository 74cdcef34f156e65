"""The errors of wanlat: every one ends a command with an exit code and one readable paragraph.

Raise them where the fact is known, with what is wrong, where, and the way out. The command line
prints ``str(error)`` and leaves with ``error.exit_code``; no other code catches them to print them.
"""

import errno
from collections.abc import Iterator
from typing import ClassVar

_WAYS_OUT = {
    errno.ENOSPC: "Make room on that disk, or use another.",
    errno.EDQUOT: "Make room within your quota, or use another disk.",
    errno.EFBIG: "Raise the limit of a file's size (`ulimit -f`).",
    errno.EROFS: "That file system is read-only: use another.",
    errno.EIO: "The disk failed: the kernel's log (dmesg) has how. Use another.",
    errno.EMFILE: "Raise the limit of open files (`ulimit -n`).",
    errno.ENFILE: "Raise the limit of open files (`sysctl fs.file-max`).",
    errno.ENOMEM: "Free memory, or measure less.",
}
"""What helps where a fault is the machine's, whatever the command was."""


class WanlatError(Exception):
    """What every error of ours is. The message is a readable paragraph: what, where, way out."""

    exit_code: ClassVar[int] = 1


class UserError(WanlatError):
    """The user's input is wrong: a name, a file, an option. Found before anything slow starts."""

    exit_code: ClassVar[int] = 2


class MachineError(WanlatError):
    """The machine cannot do it: something is missing or forbidden; the message has what helps."""

    exit_code: ClassVar[int] = 3


class DiskFull(MachineError):
    """The disk that a bundle lies on is full. Nothing more can be written down, so a run ends."""


class RunFailed(WanlatError):
    """It ran, and something did not hold: a calibration, a store that died, a broken promise."""

    exit_code: ClassVar[int] = 1


class MachineLate(RunFailed):
    """This machine held packets up: of what was to be measured, nothing was learned."""


def way_out_of_machine(error: BaseException) -> str | None:
    """Return what helps where the machine's own fault is behind an error: a full disk, a limit.

    None: it is something else. Such an error ends a command with the machine's exit code, whatever
    its class is.
    """
    ways = (
        _WAYS_OUT.get(cause.errno or 0) for cause in _causes(error) if isinstance(cause, OSError)
    )
    return next(filter(None, ways), None)


def with_way_out(error: Exception) -> str:
    """Return an error's words, and what helps where the machine's own fault is behind it."""
    text, way_out = str(error), way_out_of_machine(error)
    return text if way_out is None or way_out in text else f"{text} {way_out}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
