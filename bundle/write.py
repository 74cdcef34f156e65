"""Writing a bundle: as things happen, readable however the run ended."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle import beneath, tables
from wanlat.bundle.documents import (
    SCHEMA_VERSION,
    Document,
    Envelope,
    Envelopes,
    Manifest,
    Points,
    Prefill,
    Prefills,
    Reclaim,
    Reclaims,
)
from wanlat.bundle.lateness import with_network_error
from wanlat.bundle.read import read_document
from wanlat.topologies.errors import DiskFull, MachineError, UserError, way_out_of_machine

_WAIT_S = 3.0
"""Of a run that was killed, the processes are gone within moments, and the lock with them."""
_RESERVE = ".wanlat-reserve"
"""How the name of a file begins that keeps room; a killed run leaves it."""
_RESERVED_BYTES = 256 << 10
"""A manifest takes some tens of KiB, and there are two of them while it is replaced."""


def now_iso() -> str:
    """Return the present time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def default_directory(study: str) -> Path:
    """Return a name for a bundle of ``study`` under ``results/`` that is free now."""
    base = Path("results", f"{study}-{datetime.now():%Y%m%d-%H%M%S}")
    return next(name for name in _names(base) if not name.exists())


def claim_directory(wanted: Path) -> Path:
    """Make a directory of that name, or of the next one that is free: no other run has it then.

    Raises UserError when it cannot be made.
    """
    for directory in _names(wanted):
        try:
            directory.mkdir(parents=True)
        except FileExistsError:  # of a run that started in the same second
            continue
        except OSError as error:
            raise _no_directory(directory, error) from error
        return directory
    raise AssertionError("there is always another number")


def _names(base: Path) -> Iterator[Path]:
    yield base
    yield from (base.with_name(f"{base.name}-{number}") for number in count(2))


class BundleWriter:
    """Writes one bundle. ``close`` turns the raw rows into Parquet; a crash leaves them raw.

    Rows may be written from any thread; each is with the kernel when the call returns.
    """

    def __init__(self, directory: Path, manifest: Mapping[str, Any], hold: Hold) -> None:
        """Open the raw files, so that the first sample is on disk when it happens.

        ``hold`` is let go of by ``close``. Raises MachineError.
        """
        self.directory = directory
        self.manifest = {"schema_version": SCHEMA_VERSION, **manifest}
        self.make_room = hold.make_room
        self._hold = hold
        self._files: dict[str, Lines] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self.sample = self.table("samples", tables.SAMPLES)
        self.late_bin = self.table("lateness", tables.LATENESS)
        self._event = self.table("events", tables.EVENTS)

    @classmethod
    def create(cls, directory: Path, manifest: Mapping[str, Any]) -> BundleWriter:
        """Make the directory and write what is known at the start.

        Raises UserError when it cannot be written or already holds something: a run of an hour
        must not find that out at its end; or when another run has it.
        """
        hold = take_directory(directory, "Name a new one with --out.")
        writer = cls(directory, manifest, hold)
        writer.write_manifest()
        writer.logs.mkdir()
        return writer

    @property
    def logs(self) -> Path:
        """Return the directory of the stores' logs."""
        return self.directory / "logs"

    @property
    def records(self) -> Path:
        """Return the directory of the records of loads: the one that a lab's programs may write."""
        return self.directory / beneath.RECORDS

    def write_manifest(self, **changes: Any) -> None:
        """Write ``manifest.json`` anew, with changes; a reader sees the old or the new one."""
        write_manifest(self.directory, self.manifest | changes)
        self.manifest.update(changes)

    def write(self, document: Document) -> None:
        """Write a document of the bundle in one step. Raises DiskFull."""
        write_document(self.directory, document)

    def write_part(
        self, kind: type[Prefills | Reclaims | Envelopes], mine: Prefill | Reclaim | Envelope
    ) -> None:
        """Write a document of all systems anew, with one of them as it is now. Raises DiskFull."""
        known = read_document(self.directory, kind)
        others = [entry for entry in known.systems if entry.system != mine.system] if known else []
        self.write(kind.model_validate({"systems": [*others, mine]}))

    def with_network_error(self, rows: pa.Table) -> pa.Table:
        """Return requests with how late the network was during each, if that is not in them yet."""
        allowed_ms = self.manifest.get("max_network_error_ms")
        if allowed_ms is None:
            return with_network_error(rows, None, 0.0)
        with beneath.opened(self.directory / "lateness.jsonl") as lines:
            bins = tables.of_lines(lines.read(), tables.LATENESS)
        return with_network_error(rows, bins, 1e6 * allowed_ms)

    def lines(self, name: str) -> Callable[[Mapping[str, Any]], None]:
        """Open a file of JSON lines of the bundle; return what appends one."""
        if name not in self._files:
            self._files[name] = Lines(self.directory / name)
        return self._files[name].append

    def table(self, name: str, schema: pa.Schema) -> Callable[[Mapping[str, Any]], None]:
        """Return what appends a row to a table: NAME.jsonl, which becomes NAME.parquet."""
        self._schemas[name] = schema
        return self.lines(f"{name}.jsonl")

    def event(self, kind: str, subject: str, detail: str = "", t_ns: int | None = None) -> None:
        """Note something that happened now, or at ``t_ns`` (CLOCK_MONOTONIC)."""
        t_ns = t_ns or time.monotonic_ns()
        self._event({"t_ns": t_ns, "kind": kind, "subject": subject, "detail": detail})

    def close(self, status: str, reason: str | None, **changes: Any) -> None:
        """Turn rows into Parquet and write how the run ended, with changes of the manifest.

        On a full disk the rows stay lines, and how it ended takes the room that was kept for it.
        Raises DiskFull where that is not enough either.
        """
        try:
            for opened in self._files.values():
                opened.close()
            for name, schema in self._schemas.items():
                raw = self.directory / f"{name}.jsonl"
                with beneath.opened(raw) as lines:
                    rows = tables.of_lines(lines.read(), schema)
                if name == "samples":
                    rows = self.with_network_error(rows)
                if write_table(self.directory, name, schema, [rows]):
                    raw.unlink()
        finally:
            self.make_room()
            try:
                self.write_manifest(status=status, reason=reason, ended=now_iso(), **changes)
            finally:
                self._hold.close()


def write_table(directory: Path, name: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> bool:
    """Write a table of a bundle in one step: a reader sees the old or the new one.

    False where there is no room for it, and nothing is changed.
    """
    try:
        with (
            beneath.replacing(directory / f"{name}.parquet") as file,
            pq.ParquetWriter(file, schema, **tables.compact(schema)) as writer,
        ):
            for part in parts:
                writer.write_table(part)
    except OSError as error:
        if not is_full(error):
            raise
        return False
    return True


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` in one step. Raises ValidationError, MachineError."""
    Manifest.model_validate(manifest)
    _write(directory / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False))


def write_document(directory: Path, document: Document) -> None:
    """Write a document of the bundle in ``directory`` in one step. Raises MachineError."""
    _write(directory / document.FILE, document.model_dump_json(indent=2))


def write_points(directory: Path, parameters: str, points: Iterable[str]) -> None:
    """Write `points.json` of JSON, a line for each point: of thousands, one has changed."""
    lines = ",\n".join(points)
    _write(directory / Points.FILE, f'{{"parameters": {parameters}, "points": [\n{lines}\n]}}')


def _write(target: Path, document: str) -> None:
    try:
        # Of a path that is no UTF-8 each such byte stands as JSON has it, \udcXX, and is read so.
        with beneath.replacing(target) as file:
            file.write(f"{document}\n".encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _unwritable(target, error) from error


def take_directory(
    directory: Path, way_out: str, *, is_new: bool = True, reserve_bytes: int = _RESERVED_BYTES
) -> Hold:
    """Make the directory of a bundle, and take it for this run alone.

    Raises UserError when it cannot be written, when another run has it, and where it ``is_new``
    and holds something; ``way_out`` is what to do then.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if is_new and not all(map(_is_of_killed_run, directory.iterdir())):
            raise UserError(
                f"The output directory {directory} is not empty, and a bundle never overwrites "
                f"another. {way_out}"
            )
        return Hold(directory, reserve_bytes)
    except OSError as error:
        raise _no_directory(directory, error) from error


def _is_of_killed_run(path: Path) -> bool:
    """Whether a run that was killed in its first moments left a file."""
    return beneath.is_partial(path.name)


def _no_directory(directory: Path, error: OSError) -> UserError:
    return UserError(
        f"The bundle cannot be written to {directory}: {error.strerror}. "
        f"{way_out_of_machine(error) or 'Name another directory with --out.'}"
    )


class Hold:
    """That no other process writes to a directory, and room on its disk for the last words.

    The lock is gone when the process is, however it ends.
    """

    def __init__(self, directory: Path, reserve_bytes: int) -> None:
        """Take both; no room where there is none. Raises OSError, and UserError when another
        process has the directory.
        """
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    os.close(self._fd)
                    raise UserError(
                        f"Another run is writing to {directory}. Wait for its end, or end it."
                    ) from None
                time.sleep(0.1)
        for left in directory.glob(f"{_RESERVE}.*"):
            if beneath.is_partial(left.name):
                left.unlink()
        self._reserve = directory / beneath.partial_name(_RESERVE)
        # Bytes that no file system makes smaller, in blocks that are really taken. In a file of its
        # own: a bundle may have come with a link of that name.
        with suppress(OSError), self._reserve.open("xb") as file:
            file.write(os.urandom(reserve_bytes))

    def make_room(self) -> None:
        """Give back the room that was kept, on a disk that is full. May be called again."""
        with suppress(OSError):
            self._reserve.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of both. May be called again."""
        self.make_room()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Lines:
    """A file that grows by whole lines; a context manager. Any thread may append.

    A line is one ``write`` to a file that is opened for appending: when ``append`` returns the
    kernel has it, and the end of this process, however sudden, takes nothing of it back. (The
    machine's end may: it is not synced.)
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises MachineError."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._file = beneath.appended(path)
        except OSError as error:
            raise _unwritable(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, document: Mapping[str, Any]) -> None:
        """Write one line. Raises MachineError when it cannot be written; no part of it stays.

        What comes after ``close`` is no part of the run, and left out.
        """
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        left = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            if self._file.closed:
                return
            size_bytes = os.fstat(self._file.fileno()).st_size  # a cut does not move the position
            try:
                while left:  # the kernel takes all of it at once, unless the disk is full
                    left = left[self._file.write(left) :]
            except OSError as error:
                with suppress(OSError):  # every line is a whole one
                    self._file.truncate(size_bytes)
                raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Let go of the file. May be called again."""
        with self._lock:
            self._file.close()


def is_full(error: OSError) -> bool:
    """Whether something could not be written because there is no room for it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_nearly_full(directory: Path) -> bool:
    """Whether the disk has no room for anything that is worth to be measured."""
    with suppress(OSError):
        space = os.statvfs(directory)
        return space.f_bavail * space.f_frsize < 4 * _RESERVED_BYTES
    return False


def _unwritable(path: Path, error: OSError) -> MachineError:
    kind = DiskFull if is_full(error) else MachineError
    way_out = way_out_of_machine(error) or "Name another directory with --out."
    return kind(f"{path} cannot be written: {error.strerror}. {way_out}")
