"""An error that no code of ours foresaw: which, where in ours, and what its reader is to do."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path

from wanlat.topologies.errors import way_out_of_machine

TRACEBACK = "WANLAT_TRACEBACK"
"""The environment variable that has the command line print tracebacks."""
FILE = "traceback.txt"
"""The file of a bundle that has the traceback."""
_PACKAGE = Path(__file__).parents[1]  # through which every room is imported


def paragraph(error: Exception) -> str:
    """Return what the user reads: the error, and the way out.

    That of memory, of a file or of a package is the machine's more often than ours.
    """
    if isinstance(error, MemoryError):
        return f"This machine is out of memory ({summary(error)}). Free some, or measure less."
    if isinstance(error, ImportError):
        return (
            f"This installation is not whole ({summary(error)}). Install wanlat with its "
            "dependencies again; in a checkout: make setup."
        )
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        return "The current directory was removed. Change to one that exists."
    if way_out := way_out_of_machine(error):
        return f"The machine could not ({summary(error)}). {way_out}"
    if isinstance(error, OSError):
        return (
            f"The machine refused something that wanlat needs ({summary(error)}). If neither its "
            "disk nor the permissions of the file explain it, please report it to those you have "
            "wanlat from, with all that is printed here and with `wanlat --version`."
        )
    return (
        f"A mistake in wanlat itself ({summary(error)}). Please report it to those you have wanlat "
        "from, with all that is printed here and with `wanlat --version`."
    )


def _is_nowhere() -> bool:
    """Whether the current directory was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def kept(error: BaseException, directory: Path) -> str:
    """Return why a bundle ends by an error, once the traceback is in its directory."""
    with suppress(OSError):
        text = "".join(traceback.format_exception(error))
        (directory / FILE).write_text(text, "utf-8", "backslashreplace")
    return f"an error in wanlat itself: {summary(error)}; the traceback is in {FILE}"


def summary(error: BaseException) -> str:
    """Return an error's kind, its words, and the innermost place in our own code."""
    kind, words = type(error).__name__, " ".join(str(error).split())
    place = _place(error)
    return f"{kind}{f': {words}' if words else ''}{f', in {place}' if place else ''}"


def _place(error: BaseException) -> str | None:
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            place = f"{path.relative_to(_PACKAGE)}:{line}"
    return place
