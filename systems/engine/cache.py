"""Where programs that were installed on this machine are kept, and what is known of each.

The cache lies outside the checkout, so that a store is built once a machine and not once a clone:

    systems/NAME/VERSION/…, receipt.json         finished; appears in one rename
    build/NAME-VERSION/                          work in progress; removed when it is finished
    logs/NAME-VERSION.log                        what the last build printed
    locks/NAME-VERSION.lock                      one build at a time
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from wanlat.emulator.own_directories import cache_home
from wanlat.emulator.turns import is_stopped
from wanlat.topologies.errors import MachineError

RECEIPT = "receipt.json"
_TRY_EVERY_S = 0.2
_WAY_OUT = "Built stores are kept there; set WANLAT_CACHE to a directory that may be written."


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Receipt:
    """Written beside every binary that was built here: what it is, how it was made, its hash."""

    name: str
    version: str
    binary: str  # path relative to the receipt
    sha256: str
    bytes: int
    built: str  # ISO 8601, UTC
    seconds: float  # of building, of the last attempt when it was interrupted before
    source: str
    command: list[str]
    toolchain: list[str]  # what each tool says of its version

    def write(self, directory: Path) -> None:
        """Write it into a directory."""
        text = json.dumps({"format": 1, **asdict(self)}, indent=2)
        (directory / RECEIPT).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Receipt | None:
        """Return the receipt in a directory; None when there is none that can be read."""
        try:
            found = json.loads((directory / RECEIPT).read_text(encoding="utf-8"))
            return cls(**found) if found.pop("format") == 1 else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


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
        return cls(cache_home() / "wanlat")

    def installed(self, name: str, version: str) -> Path:
        """Directory of a finished build."""
        # Lists of directories have colons between them.
        return self.root / "systems" / name / version.removesuffix(".*").replace(":", "-")

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
                f"Cannot create {directory} ({error.strerror}). {_WAY_OUT}"
            ) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise MachineError(f"{directory} may not be written. {_WAY_OUT}")
        return directory


@contextmanager
def exclusive(
    path: Path, on_wait: Callable[[str], None], patience_s: float = 10.0
) -> Iterator[None]:
    """Hold the lock file at ``path``; while another process holds it, wait.

    flock(2): the kernel drops the lock when its holder dies, however it dies. ``on_wait`` gets the
    holder's process id as text ("?" when it cannot be read), once a wait. Raises MachineError where
    the holder is stopped for longer than ``patience_s``: it may be for ever.
    """
    # The file is never removed: removing it would let two processes lock two files of one name.
    # Where others may write, too, it may be a link to any file.
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise MachineError(f"{path} cannot be locked: {error.strerror}. {_WAY_OUT}") from error
    with os.fdopen(fd, "r+") as file:
        if not _locked(file):
            on_wait(_holder(file))
            until_s = time.monotonic() + patience_s
            while not _locked(file):
                time.sleep(_TRY_EVERY_S)
                holder = _holder(file)
                if not (holder.isdecimal() and is_stopped(int(holder))):
                    until_s = time.monotonic() + patience_s
                elif time.monotonic() > until_s:
                    raise MachineError(
                        f"Process {holder} holds {path}, and is stopped. Continue it (kill -CONT "
                        f"{holder}), or end it."
                    )
        file.seek(0)
        file.truncate()
        print(os.getpid(), file=file, flush=True)
        yield
        file.truncate(0)


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: TextIO) -> str:
    file.seek(0)
    return file.read().strip() or "?"


def demand_ours(directory: Path, proof: str) -> None:
    """Raise MachineError where a directory of the cache was not made by wanlat.

    It is about to be removed, and ``proof`` is the file that wanlat leaves in it.
    """
    if directory.is_symlink() or (
        directory.is_dir() and any(directory.iterdir()) and not (directory / proof).is_file()
    ):
        raise MachineError(
            f"{directory} was not made by wanlat: it has no {proof}. Move it away, or set "
            "WANLAT_CACHE to another directory."
        )
