"""Where programs that were installed on this machine are kept, and what is known of each.

The cache lies outside the checkout, so that a store is built once a machine and not once a clone:

    systems/NAME/KEY/…, receipt.json             finished; appears in one rename
    build/NAME-KEY/                              work in progress; removed when it is finished
    logs/NAME-KEY.log                            what the last build printed
    locks/NAME-KEY.lock                          one build at a time
    verified/NAME-KEY.json                       which files were the receipt's, when last seen

KEY is the version and a hash of all that decides what is built (`Install.key`), so that another
package of the same version is another build.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from wanlat.emulator.own_directories import MARKER, cache_home, is_marked
from wanlat.emulator.turns import is_stopped
from wanlat.systems.engine.definition import Install
from wanlat.topologies.errors import MachineError

RECEIPT, _FORMAT = "receipt.json", 2
WAY_OUT = "Built stores are kept there; set WANLAT_CACHE to a directory that may be written."
_TRY_EVERY_S = 0.2


_HASHES: dict[tuple[Path, tuple[int, ...]], str] = {}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits; it is read again once it may have changed.

    Raises OSError.
    """
    key = path, state_of(path)
    if key not in _HASHES:
        with path.open("rb") as file:
            _HASHES[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _HASHES[key]


def state_of(path: Path) -> tuple[int, ...]:
    """Return what changes with a file: where it lies, its size, and when it was changed last.

    No program can set `ctime`. Raises OSError.
    """
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def files_below(directory: Path) -> dict[str, Path]:
    """Return all files and links below a directory by their names there, in order.

    Without receipts, and without what Python compiled: that follows from its sources, and differs
    each time.
    """
    files = {}
    for place, directories, names in os.walk(directory):
        links = [name for name in directories if Path(place, name).is_symlink()]
        directories[:] = [name for name in directories if name != "__pycache__"]
        for name in (*names, *links):
            path = Path(place, name)
            files[str(path.relative_to(directory))] = path
    files.pop(RECEIPT, None)
    return dict(sorted(files.items()))


def contents_of(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a directory, and where each link points."""
    return {name: _content(path) for name, path in files_below(directory).items()}


def _content(path: Path) -> str:
    return f"-> {path.readlink()}" if path.is_symlink() else sha256_of(path)


@dataclass(frozen=True)
class Receipt:
    """Written beside every binary that was built here: what it is, how it was made, its hashes."""

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
    files: dict[str, str]  # `contents_of` all that was installed
    packages: dict[str, str]  # the versions of all that was installed, dependencies too

    @property
    def files_sha256(self) -> str:
        """One hash of all that was installed."""
        lines = (f"{name}\0{content}\n" for name, content in sorted(self.files.items()))
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def write(self, directory: Path) -> None:
        """Write it into a directory."""
        text = json.dumps({"format": _FORMAT, **asdict(self)}, indent=2)
        (directory / RECEIPT).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Receipt | None:
        """Return the receipt in a directory; None when there is none that can be read."""
        try:
            receipt = json.loads((directory / RECEIPT).read_text(encoding="utf-8"))
            return cls(**receipt) if receipt.pop("format") == _FORMAT else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class Cache:
    """The directory tree of built binaries. Nothing is created before it is needed."""

    root: Path

    @classmethod
    def from_environment(cls) -> Cache:
        """Read ``WANLAT_CACHE``, else ``$XDG_CACHE_HOME/wanlat``, else ``~/.cache/wanlat``.

        A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification requires.
        Raises MachineError when there is no home directory either.
        """
        own = os.environ.get("WANLAT_CACHE")
        if own:
            try:
                return cls(Path(own).expanduser().absolute())
            except RuntimeError as error:
                raise MachineError(f"There is no home directory. {WAY_OUT}") from error
        return cls(cache_home() / "wanlat")

    def installed(self, name: str, install: Install) -> Path:
        """Directory of a finished build."""
        return self.root / "systems" / name / install.key

    def build(self, name: str, install: Install) -> Path:
        """Directory of a build in progress, kept when it is interrupted."""
        return self.root / "build" / f"{name}-{install.key}"

    def log(self, name: str, install: Install) -> Path:
        """Log of the last build."""
        return self.root / "logs" / f"{name}-{install.key}.log"

    def lock(self, name: str, install: Install) -> Path:
        """Lock file of a build."""
        return self.root / "locks" / f"{name}-{install.key}.lock"

    def changed(self, name: str, install: Install, receipt: Receipt) -> str | None:
        """Return the first installed file that differs from its receipt; None: all are.

        A file is read again where the kernel shows that it may have changed (`state_of`). Raises
        OSError.
        """
        seen = self.root / "verified" / f"{name}-{install.key}.json"
        there = files_below(self.installed(name, install))
        if different := sorted(there.keys() ^ receipt.files.keys()):
            return different[0]
        stats = {file: list(state_of(path)) for file, path in there.items() if path.exists()}
        known = _read_states(seen)
        again = [file for file in there if file not in stats or known.get(file) != stats[file]]
        for file in again:
            if _content(there[file]) != receipt.files[file]:
                return file
        if again:
            with suppress(OSError):  # a cache that others may only read; or a full disk
                seen.parent.mkdir(exist_ok=True)
                fresh = seen.with_name(f"{seen.name}.{secrets.token_hex(4)}")
                fresh.write_text(json.dumps(stats), encoding="utf-8")
                fresh.replace(seen)
        return None

    def check_owners(self, file: Path) -> None:
        """Raise MachineError where somebody else could have put a program there.

        Trusted are this user, root, and whoever the cache belongs to.
        """
        trusted = {0, os.geteuid(), self.root.stat().st_uid}
        below = file.relative_to(self.root).parents
        for place in (file, *(self.root / parent for parent in below)):
            status = place.stat()
            is_open = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
            if status.st_uid not in trusted or is_open:
                why = "any user may change it" if is_open else f"it is {user_name(status.st_uid)}'s"
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


def _read_states(file: Path) -> dict[str, list[int]]:
    try:
        states = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return states if isinstance(states, dict) else {}


def user_name(uid: int) -> str:
    """Return what a user is called; one without an entry in passwd(5) by number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


@contextmanager
def exclusive(
    path: Path, on_wait: Callable[[str], None], patience_s: float = 10.0
) -> Iterator[int]:
    """Hold the lock file at ``path``; while another process holds it, wait.

    Yields its descriptor. flock(2): the lock lasts as long as any process has that open, so that a
    child which inherits it holds the lock too; and the kernel drops it when they have ended,
    however they end. ``on_wait`` gets the id of the process that took it as text ("?" when it
    cannot be read), once a wait. Raises MachineError where that is stopped for longer than
    ``patience_s``: it may be for ever.
    """
    # The file is never removed: removing it would let two processes lock two files of one name.
    # Where others may write, too, it may be a link to any file.
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        owner = f", which is {user_name(path.lstat().st_uid)}'s" if os.path.lexists(path) else ""
        raise MachineError(
            f"{path}{owner}, cannot be opened ({error.strerror}). {WAY_OUT}"
        ) from error
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
        yield file.fileno()
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


def demand_installed(directory: Path, name: str) -> None:
    """Raise MachineError where a directory of finished builds has no receipt of that program.

    It is about to be removed. A receipt of another format is one.
    """
    try:
        receipt = json.loads((directory / RECEIPT).read_text(encoding="utf-8"))
        is_ours = receipt["name"] == name and "format" in receipt
    except (OSError, ValueError, KeyError, TypeError):
        is_ours = False
    _demand(directory, is_ours, RECEIPT)


def demand_building(directory: Path) -> None:
    """Raise MachineError where a directory of a build is not wanlat's, or leads elsewhere."""
    leads_on = any((directory / name).is_symlink() for name in ("out", "work"))
    _demand(directory, is_marked(directory) and not leads_on, MARKER)


def _demand(directory: Path, is_ours: bool, proof: str) -> None:
    if directory.is_symlink() or (directory.is_dir() and any(directory.iterdir()) and not is_ours):
        raise MachineError(
            f"{directory} was not made by wanlat: its {proof} is missing, or not of this. Move it "
            "away, or set WANLAT_CACHE to another directory."
        )
