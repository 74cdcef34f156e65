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
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from wanlat.topologies.errors import MachineError

_RECEIPT = "receipt.json"
WAY_OUT = "Built stores are kept there; set WANLAT_CACHE to a directory that may be written."


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
        (directory / _RECEIPT).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Receipt | None:
        """Return the receipt in a directory; None when there is none that can be read."""
        try:
            found = json.loads((directory / _RECEIPT).read_text(encoding="utf-8"))
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
        try:
            return cls(cls._root())
        except RuntimeError as error:
            raise MachineError(f"There is no home directory. {WAY_OUT}") from error

    @staticmethod
    def _root() -> Path:
        own = os.environ.get("WANLAT_CACHE")
        if own:
            return Path(own).expanduser().absolute()
        xdg = os.environ.get("XDG_CACHE_HOME")
        if xdg and Path(xdg).is_absolute():
            return Path(xdg) / "wanlat"
        return Path.home() / ".cache" / "wanlat"

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

    def check_owners(self, file: Path) -> None:
        """Raise MachineError where somebody else could have put a program there.

        Trusted are this user, root, and whoever the cache belongs to.
        """
        trusted = {0, os.geteuid(), self.root.stat().st_uid}
        below = file.relative_to(self.root).parents
        for place in (file, *(self.root / each for each in below)):
            found = place.stat()
            is_open = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
            if found.st_uid not in trusted or is_open:
                why = "any user may change it" if is_open else f"it is {user_name(found.st_uid)}'s"
                raise MachineError(
                    f"{place} is not used: {why}, who may have put any program there. Have its "
                    "owner restrict it, or set WANLAT_CACHE to a cache of your own."
                )

    def make(self, directory: Path) -> Path:
        """Create a directory of the cache; MachineError with the way out when that fails."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MachineError(
                f"Cannot create {directory} ({error.strerror}). {WAY_OUT}"
            ) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise MachineError(f"{directory} may not be written. {WAY_OUT}")
        return directory


def user_name(uid: int) -> str:
    """Return what a user is called; one without an entry in passwd(5) by number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file at ``path``; while another process holds it, wait.

    flock(2): the kernel drops the lock when its holder dies, however it dies. ``on_wait`` gets the
    holder's process id as text ("?" when it cannot be read), once a wait.
    """
    # The file is never removed: removing it would let two processes lock two files of one name.
    try:
        opened = path.open("a+")
    except OSError as error:
        owner = f", which is {user_name(path.stat().st_uid)}'s" if path.exists() else ""
        raise MachineError(
            f"{path}{owner}, cannot be opened ({error.strerror}). {WAY_OUT}"
        ) from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            on_wait(file.read().strip() or "?")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        print(os.getpid(), file=file, flush=True)
        yield
        file.truncate(0)
