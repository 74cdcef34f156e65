"""A directory that matplotlib may write to, where the user's own cannot be.

matplotlib keeps its font cache and looks for settings below HOME. Without a writable HOME (a
container, a service, a read-only file system) it prints warnings on every start.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path


def give_matplotlib_a_home() -> None:
    """Point MPLCONFIGDIR to a temporary directory if matplotlib's usual ones cannot be written.

    The directory goes when the process ends. Does nothing once matplotlib is imported, because
    by then it has chosen.
    """
    if "matplotlib" in sys.modules or all(_is_writable(path) for path in _usual_directories()):
        return
    directory = tempfile.mkdtemp(prefix="wanlat-matplotlib-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["MPLCONFIGDIR"] = directory


def _usual_directories() -> list[Path | None]:
    """Where matplotlib would write, by its own rules; None for a place that cannot be named."""
    if chosen := os.environ.get("MPLCONFIGDIR"):
        return [Path(chosen)]
    return [_below("XDG_CONFIG_HOME", ".config"), _below("XDG_CACHE_HOME", ".cache")]


def _below(variable: str, default: str) -> Path | None:
    if base := os.environ.get(variable):
        return Path(base, "matplotlib")
    try:
        return Path.home() / default / "matplotlib"
    except RuntimeError:
        return None


def _is_writable(path: Path | None) -> bool:
    """Whether `path` is, or could be made, a directory that we may write to."""
    if path is None:
        return False
    for candidate in (path, *path.parents):
        if candidate.exists():
            return candidate.is_dir() and os.access(candidate, os.W_OK | os.X_OK)
    return False
