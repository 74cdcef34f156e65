"""Pythons that wanlat starts: they import this wanlat, and nothing from where the user stands.

``python -c`` and ``python -m`` look for every module in the current directory first, so that a
``queue.py`` there would be run in place of Python's own.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from wanlat.emulator.binaries import SEARCH_PATH

_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "wanlat"
"""Any text turns it on: this one is known not to be the user's."""
_FIND_WANLAT = "import sys; sys.path.insert(0, sys.argv.pop(1)); import wanlat; del sys.path[0]"
"""Its modules are found by the package from then on; what else is beside it is not."""


def command(code: str, *arguments: str) -> list[str]:
    """Return the command that runs ``code`` with this wanlat."""
    return [sys.executable, "-P", "-c", f"{_FIND_WANLAT}; {code}", str(SEARCH_PATH), *arguments]


def bare_command(code: str, *arguments: str) -> list[str]:
    """Return the same of a Python that starts sooner: it knows no more than this one's path.

    Python's own modules come before all others.
    """
    here = os.getcwd()  # noqa: PTH109 - as a text, and as sys.path has it
    path = [entry for entry in sys.path if os.path.isabs(entry) and entry != here]  # noqa: PTH117
    find = "import sys; sys.path += sys.argv.pop(1).split(':')"
    known = os.pathsep.join([str(SEARCH_PATH), *path])
    return [sys.executable, "-P", "-S", "-c", f"{find}; {code}", known, *arguments]


def bare_environment() -> dict[str, str]:
    """Return this process's environment for `bare_command`, which has its path already."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def which(program: str) -> str | None:
    """Return where a program is, as PATH leads to it from anywhere; None where it does not."""
    return shutil.which(program, path=without_relative(os.environ.get("PATH", "")))


def without_relative(search_path: str) -> str:
    """Return a list of directories as of PATH without those that depend on where one stands.

    Where none remains it is the system's: an empty one would be the current directory.
    """
    named = filter(os.path.isabs, search_path.split(os.pathsep))
    return os.pathsep.join(named) or os.defpath


@contextmanager
def safe_path() -> Iterator[None]:
    """Have Pythons that others start meanwhile look for nothing in the current directory."""
    if not os.environ.get(_SAFE_PATH):
        os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        if os.environ[_SAFE_PATH] == _OURS:
            del os.environ[_SAFE_PATH]


def environment() -> dict[str, str]:
    """Return this process's environment for `command`: what is the user's of it.

    What they start is theirs: a program of a store may lie beside modules of its own.
    """
    own = {_SAFE_PATH: _OURS}
    return {name: value for name, value in os.environ.items() if own.get(name) != value}
