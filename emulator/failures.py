"""What goes wrong in a lab's own processes: does the machine refuse, or is it a mistake?

Who takes a refusal of the machine for a reason to skip a test, or to advise another machine, must
not get one where wanlat has a bug.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from wanlat.topologies.errors import MachineError, WanlatError

_REFUSALS = {
    getattr(errno, name)
    for names in (
        "EPERM EACCES EROFS",  # forbidden
        "ENOSPC EDQUOT ENOMEM ENOBUFS EMFILE ENFILE EUSERS EAGAIN",  # used up
        "ENOSYS EOPNOTSUPP EPROTONOSUPPORT ESOCKTNOSUPPORT EAFNOSUPPORT",  # absent
        "ENOPROTOOPT ENODEV ENOEXEC EIO",
    )
    for name in names.split()
}

REPORT_IT = (
    "That is a mistake in wanlat, unless an argument of yours explains it. Please report it to "
    "those you have wanlat from, with all that is printed here and with `wanlat --version`."
)


def is_refusal(error: BaseException) -> bool:
    """Whether the machine refuses: something is forbidden, used up, absent or broken."""
    if isinstance(error, MemoryError | TimeoutError):
        return True
    return isinstance(error, OSError) and error.errno in _REFUSALS


def for_owner(error: Exception, what: str) -> Exception:
    """Return what the owner of a lab is to raise because a process of the lab's could not ``what``.

    Errors of ours stay as they are, and refusals of the machine are put in words. Anything
    else, which may not be known to the other process, is a RuntimeError that names it, with a note
    of where it happened.
    """
    if isinstance(error, WanlatError):
        return error
    if is_refusal(error):
        return MachineError(f"The lab could not {what}: {type(error).__name__}: {error}")
    sent = RuntimeError(f"{type(error).__name__}: {error}")
    where = "\n".join(f"  {line}" for line in _where(error))
    sent.add_note(f"It happened in the lab's own process:\n{where}\n{REPORT_IT}")
    return sent


def _where(error: BaseException) -> Iterator[str]:
    """Yield where an error was raised, after what led to it.

    `traceback` would import modules and read source files, which may be others' in a lab.
    """
    before = error.__cause__ or error.__context__
    if before is not None:
        yield from _where(before)
    frames = error.__traceback__
    while frames is not None:
        code = frames.tb_frame.f_code
        yield f"{code.co_filename}:{frames.tb_lineno}, in {code.co_qualname}"
        frames = frames.tb_next
    yield f"{type(error).__name__}: {error}"
