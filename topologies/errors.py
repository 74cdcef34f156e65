"""The errors of wanlat: every one ends a command with an exit code and one readable paragraph.

Raise them where the fact is known, with what is wrong, where, and the way out. The command line
prints ``str(error)`` and leaves with ``error.exit_code``; no other code catches them to print them.
"""

from typing import ClassVar


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
