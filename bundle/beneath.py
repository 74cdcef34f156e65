"""The one door to a bundle's files: nothing that lies in a bundle leads out of it.

A bundle may come from anybody. A symbolic link in it is refused, wherever it leads, and so is what
is no regular file: each part of a way is opened by itself, without following links, as
`openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)` does, and on kernels that lack it. The directory
that the user names may be a link. What is written has a random name until it is whole, so two
writers of the same file both leave a whole one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wanlat.bundle.errors import BundleError

POINTS = "points"
"""The directory of a matrix that has the bundles of its points."""
RECORDS = "records"
"""The directory that a load's client, in the lab, writes its records into."""
INSIDE = ("charts", "logs", "capture", RECORDS)
"""Directories of a bundle that hold files of it."""
_FOR_TEMPORARY_NAMES = 100
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def opened(path: Path) -> BinaryIO:
    """Open a file of a bundle to read it. Raises BundleError for a link or a device, OSError."""
    with _directory_of(path) as (directory, name):
        try:
            # A pipe without a writer is not waited for.
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _OPEN, dir_fd=directory)
        except OSError:
            _refuse_link(directory, name, path)
            raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BundleError(f"{path} is no regular file, as every file of a bundle is.")
    return os.fdopen(descriptor, "rb")


def is_file(path: Path) -> bool:
    """Whether a bundle has that file. Raises BundleError for a link."""
    try:
        with _directory_of(path) as (directory, name):
            _refuse_link(directory, name, path)
            return stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no name of a file
        return False


def appended(path: Path) -> BinaryIO:
    """Open a file of a bundle to append to it, unbuffered. Raises BundleError, OSError."""
    with _directory_of(path) as (directory, name):
        try:
            how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _OPEN
            descriptor = os.open(name, how, 0o666, dir_fd=directory)
        except OSError:
            _refuse_link(directory, name, path)
            raise
    return os.fdopen(descriptor, "ab", buffering=0)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield the file that replaces `path` in one step at the end; its directory is made.

    A link of that name is replaced, not followed. Nothing changes where an exception ends it.
    Raises BundleError where a directory on the way is a link, OSError.
    """
    with _directory_of(path, make=True) as (directory, name):
        partial = partial_name(f".{name[:_FOR_TEMPORARY_NAMES]}")
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN
        made = os.open(partial, how, 0o666, dir_fd=directory)
        try:
            with os.fdopen(made, "wb") as file:
                yield file
            os.replace(partial, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial, dir_fd=directory)
            raise


def partial_name(beginning: str) -> str:
    """Return a random name that `is_partial`; ``beginning`` starts with a dot."""
    return f"{beginning}.{secrets.token_hex(8)}.partial"


def is_partial(name: str) -> bool:
    """Whether a file has such a name as those that `replacing` writes and a kill leaves."""
    return re.fullmatch(r"\..*\.[0-9a-f]{16}\.partial", name) is not None


def refuse_links(directory: Path) -> None:
    """Raise BundleError where anything below a directory that the user named is a link."""
    for place, directories, files in os.walk(directory):
        for name in (*directories, *files):
            if (path := Path(place, name)).is_symlink():
                raise _linked(path)


@contextmanager
def _directory_of(path: Path, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the directory of a file, open, and the file's name in it."""
    _refuse_climbing(path)
    root = _root_of(path)
    *way, name = path.relative_to(root).parts
    if make:
        root.mkdir(parents=True, exist_ok=True)
    directory = os.open(root, _DIRECTORY)
    try:
        for part in way:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=directory)
            _refuse_link(directory, part, path)
            inner = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = inner
        yield directory, name
    finally:
        os.close(directory)


def _root_of(path: Path) -> Path:
    """The bundle that a file is of: that of the matrix, of a file of one of its points."""
    place = path.parent
    # A point first: one that is named as a directory of files must not hide its matrix.
    if (matrix := _matrix_of(place)) is not None:
        return matrix
    root = place.parent if place.name in INSIDE else place
    return _matrix_of(root) or root


def _matrix_of(point: Path) -> Path | None:
    """The matrix that a directory is a point of, if it is one."""
    matrix = point.parent.parent
    is_point = point.parent.name == POINTS and os.path.lexists(matrix / "manifest.json")
    return matrix if is_point else None


def file_name(text: str) -> str:
    """The text as a part of a file's name: it leads nowhere, whatever words a bundle has."""
    return re.sub(r"[^\w.+=@-]+", "-", text.replace("/", ".")).lstrip(".-") or "none"


def _refuse_climbing(path: Path) -> None:
    """Raise BundleError for `..` below a directory of a bundle, or a name that is not printed."""
    inside = False
    for part in path.parts:
        if part == ".." and inside:
            raise BundleError(f"{path} may lead out of the bundle. Name it without `..`.")
        inside |= part in {POINTS, *INSIDE}
    if not path.name.isprintable():
        raise BundleError(f"{path!r} has a control character in its name.")


def _refuse_link(directory: int, name: str, path: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise _linked(path if path.name == name else f"{name}, on the way to {path},")


def _linked(path: Path | str) -> BundleError:
    return BundleError(
        f"{path} is a symbolic link, which may lead out of the bundle. If you trust it, put what "
        "it leads to in its place; a copy is `cp -rL`."
    )
