"""Where binaries that were built on this machine are kept.

The cache lies outside the checkout, so that a store is built once a machine and not once a clone:

    systems/NAME/VERSION/bin/…, receipt.json     finished; appears in one rename
    build/NAME-VERSION/                          work in progress; removed when it is finished
    logs/NAME-VERSION.log                        what the last build printed
    locks/NAME-VERSION.lock                      one build at a time
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wanlat.topologies.errors import MachineError


@dataclass(frozen=True)
class Cache:
    """The directory tree of built binaries. Nothing is created before it is needed."""

    root: Path

    @classmethod
    def from_environment(cls) -> Cache:
        """Read ``WANLAT_CACHE``, else ``$XDG_CACHE_HOME/wanlat``, else ``~/.cache/wanlat``.

        A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification asks.
        Raises MachineError when there is no home directory either.
        """
        own = os.environ.get("WANLAT_CACHE")
        if own:
            return cls(Path(own).expanduser().absolute())
        xdg = os.environ.get("XDG_CACHE_HOME")
        if xdg and Path(xdg).is_absolute():
            return cls(Path(xdg) / "wanlat")
        try:
            return cls(Path.home() / ".cache" / "wanlat")
        except RuntimeError as error:
            raise MachineError(
                "There is no home directory to keep built stores in. "
                "Set WANLAT_CACHE to a directory that may be written."
            ) from error

    def installed(self, name: str, version: str) -> Path:
        """Directory of a finished build."""
        return self.root / "systems" / name / version

    def build(self, name: str, version: str) -> Path:
        """Directory of a build in progress, kept when it is interrupted."""
        return self.root / "build" / f"{name}-{version}"

    def log(self, name: str, version: str) -> Path:
        """Log of the last build."""
        return self.root / "logs" / f"{name}-{version}.log"

    def lock(self, name: str, version: str) -> Path:
        """Lock file of a build."""
        return self.root / "locks" / f"{name}-{version}.lock"

    def make(self, directory: Path) -> Path:
        """Create a directory of the cache; MachineError with the way out when that fails."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MachineError(
                f"Cannot create {directory} ({error.strerror}). Built stores are kept there; "
                "set WANLAT_CACHE to a directory that may be written."
            ) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise MachineError(
                f"{directory} may not be written. Built stores are kept there; "
                "set WANLAT_CACHE to a directory that may be written."
            )
        return directory
