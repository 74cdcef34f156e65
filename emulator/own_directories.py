"""Directories that belong to this user alone, and the marker of those that may be removed.

Any local user may take a name in /tmp, and an environment variable may name a directory with the
user's own data. So a directory is used only where its owner and its mode are right, and removed
only where it has the marker with its own name: a copy under another name has none.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from wanlat.topologies.errors import MachineError

MARKER = ".wanlat"
"""The file in a directory that wanlat made; it holds the directory's name."""
_SHARED = Path("/tmp")
"""Where each user has a directory, if the system gives them none."""


def cache_home() -> Path:
    """Return ``$XDG_CACHE_HOME``, else ``~/.cache``.

    A relative one is ignored, as the XDG Base Directory Specification requires. Raises MachineError
    where there is no home directory either.
    """
    given = os.environ.get("XDG_CACHE_HOME")
    if given and Path(given).is_absolute():
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:
        raise MachineError(
            "There is no home directory. Set WANLAT_CACHE and WANLAT_LABS to directories that may "
            "be written."
        ) from error


def make_private(directory: Path) -> Path:
    """Make a directory that no other user may enter, unless it is there; return it.

    Raises OSError where it cannot be, is a link, or belongs to another user.
    """
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is no directory", str(directory))
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(directory))
    if status.st_mode & 0o077:
        directory.chmod(0o700)
    return directory


def runtime_directory() -> Path | None:
    """Return the private directory for what this user's runs share while they last.

    In ``$XDG_RUNTIME_DIR`` where that is this user's, else in /tmp. None where it can be in
    neither: another user, or something else of this user's, may have the name.
    """
    user = os.geteuid()
    given = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    name = f"wanlat-turns-{user}"
    with suppress(OSError):
        if given.is_absolute() and given.stat().st_uid == user:
            return _make_marked(given / name)
    with suppress(OSError):
        return _make_marked(_SHARED / name)
    return None


def _make_marked(directory: Path) -> Path:
    """Make a private directory with the marker, unless it is there; return it.

    Raises OSError where it cannot be, and where what is there has no marker.
    """
    if not os.path.lexists(directory):
        # It appears with its marker: another run may look for it at the same moment.
        fresh = directory.with_name(f".{directory.name}.{secrets.token_hex(8)}")
        fresh.mkdir(mode=0o700)
        try:
            (fresh / MARKER).write_text(f"{directory.name}\n", encoding="utf-8")
            fresh.rename(directory)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
    if not is_marked(directory):
        raise FileExistsError(errno.EEXIST, "wanlat did not make it", str(directory))
    return make_private(directory)


def mark(directory: Path) -> None:
    """Mark a directory as made by wanlat. Raises OSError."""
    (directory / MARKER).write_text(f"{directory.name}\n", encoding="utf-8")


def is_marked(directory: Path) -> bool:
    """Whether wanlat made a directory under its present name, and this user owns it."""
    marker = directory / MARKER
    with suppress(OSError, UnicodeDecodeError):
        kinds = (stat.S_ISDIR(directory.lstat().st_mode), stat.S_ISREG(marker.lstat().st_mode))
        is_ours = directory.lstat().st_uid == os.geteuid()
        return all(kinds) and is_ours and marker.read_text("utf-8") == f"{directory.name}\n"
    return False


def remove_marked(directory: Path) -> None:
    """Remove a directory that has the marker; the marker last, so that the rest is found again.

    Whatever has none stays, and so does what cannot be removed.
    """
    if not is_marked(directory):
        return
    with suppress(OSError):  # another process removes it, too
        for path in directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != MARKER:
                path.unlink()
        (directory / MARKER).unlink()
        directory.rmdir()
