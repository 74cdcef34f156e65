"""The directory that a run leaves: written as things happen, readable however the run ended."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from wanlat.experiments.drill.lines import Lines, is_full
from wanlat.experiments.holding import Lock, Reserve
from wanlat.topologies.errors import DiskFull, MachineError, UserError

FORMAT = 1

_SAMPLE_SCHEMA = pa.schema(
    [
        ("system", pa.string()),
        ("version", pa.string()),
        ("topology", pa.string()),
        ("client", pa.string()),
        ("endpoint", pa.string()),
        ("seq", pa.int64()),
        ("start_ns", pa.int64()),
        ("connect_ns", pa.int64()),
        ("first_byte_ns", pa.int64()),
        ("total_ns", pa.int64()),
        ("outcome", pa.string()),
        ("error", pa.string()),
        ("object_bytes", pa.int64()),
        ("rtt_ms", pa.float64()),
        ("phase", pa.string()),
        ("retransmits", pa.int64()),
        ("status", pa.int64()),
        ("new_connection", pa.bool_()),
        ("sent_ns", pa.int64()),
        ("elapsed_ns", pa.int64()),
        ("longest_gap_ns", pa.int64()),
        ("reads", pa.int64()),
        ("acks_sent", pa.int64()),
        ("out_of_order", pa.int64()),
        ("rtt_us", pa.int64()),
        ("placement", pa.string()),
        ("grpc_status", pa.int64()),
        ("verify_ns", pa.int64()),
        ("make_ns", pa.int64()),
        # Of drills; null in studies.
        ("due_ns", pa.int64()),
        ("vantage", pa.string()),
        ("target", pa.string()),
        ("operation", pa.string()),
        ("key", pa.string()),
        # Of studies of round trips; null elsewhere.
        ("visit", pa.int64()),
    ]
)
_EVENT_SCHEMA = pa.schema(
    [("t_ns", pa.int64()), ("kind", pa.string()), ("subject", pa.string()), ("detail", pa.string())]
)


@dataclass(frozen=True)
class Event:
    """Something that happened during a run, on the samples' clock (CLOCK_MONOTONIC, ns)."""

    t_ns: int
    kind: str
    subject: str
    detail: str = ""


def now_iso() -> str:
    """Return the present time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def default_directory(study: str) -> Path:
    """Return a fresh name for a bundle of ``study`` under ``results/``."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    base = Path("results", f"{study}-{stamp}")
    candidate, number = base, 1
    while candidate.exists():
        number += 1
        candidate = base.with_name(f"{base.name}-{number}")
    return candidate


@dataclass
class BundleWriter:
    """Writes one bundle. ``close`` turns the raw rows into Parquet; a crash leaves them raw.

    Samples, events and lines may be written from any thread; each is with the kernel when the call
    returns.
    """

    directory: Path
    manifest: dict[str, Any]
    lock: Lock | None = None
    """That no other run writes to it; let go of by ``close``."""
    _reserve: Reserve = field(init=False)
    _samples: Lines = field(init=False)
    _events: Lines = field(init=False)
    _others: list[Lines] = field(init=False, default_factory=list)
    _tables: dict[str, tuple[Lines, pa.Schema]] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _is_closed: bool = field(init=False, default=False)

    @classmethod
    def create(cls, directory: Path, manifest: Mapping[str, Any]) -> BundleWriter:
        """Make the directory and write what is known at the start.

        Raises UserError when it cannot be written or already holds something: a run of an hour
        must not find that out at its end; or when another run has it.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # What begins with a dot is of a run that was killed in its first moments.
            if any(not each.name.startswith(".") for each in directory.iterdir()):
                raise UserError(
                    f"The output directory {directory} is not empty, and a bundle never "
                    "overwrites another. Name a new one with --out."
                )
            lock = Lock(directory)
            writer = cls(directory, {"format": FORMAT, **manifest}, lock)
            writer.write_manifest()
            (directory / "logs").mkdir()
        except OSError as error:
            raise UserError(
                f"The bundle cannot be written to {directory}: {error.strerror}. "
                "Name another directory with --out."
            ) from error
        return writer

    @classmethod
    def reopen(cls, directory: Path, manifest: Mapping[str, Any], lock: Lock) -> BundleWriter:
        """Go on with a bundle: what is written is added to what it has. Raises UserError."""
        try:
            writer = cls(directory, {"format": FORMAT, **manifest}, lock)
            writer.write_manifest()
            (directory / "logs").mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(
                f"The bundle {directory} cannot be written: {error.strerror}."
            ) from error
        return writer

    def __post_init__(self) -> None:
        """Open the raw files, so that the first sample is on disk when it happens."""
        self._reserve = Reserve(self.directory)
        self._samples = Lines(self.directory / "samples.jsonl")
        self._events = Lines(self.directory / "events.jsonl")

    @property
    def logs(self) -> Path:
        """Return the directory of the stores' logs."""
        return self.directory / "logs"

    def write_manifest(self, **changes: Any) -> None:
        """Write ``manifest.json`` anew, with changes; a reader sees the old or the new one."""
        self.manifest.update(changes)
        self.write_json("manifest.json", self.manifest)

    def write_json(self, name: str, document: Any) -> None:
        """Write a JSON file of the bundle in one step. Raises DiskFull."""
        write_json(self.directory / name, document)

    def make_room(self) -> None:
        """Give back the room that was kept for the last words, on a disk that is full."""
        self._reserve.release()

    def lines(self, name: str) -> Callable[[Mapping[str, Any]], None]:
        """Open a file of JSON lines of the bundle; return what appends one."""
        opened = Lines(self.directory / name)
        self._others.append(opened)
        return opened.append

    def table(self, name: str, schema: pa.Schema) -> Callable[[Mapping[str, Any]], None]:
        """Return what appends a row to a table: NAME.jsonl, which becomes NAME.parquet."""
        if name not in self._tables:
            self._tables[name] = Lines(self.directory / f"{name}.jsonl"), schema
        return self._tables[name][0].append

    def sample(self, row: Mapping[str, Any]) -> None:
        """Append one sample."""
        self._append(self._samples, row)

    def event(self, kind: str, subject: str, detail: str = "", t_ns: int | None = None) -> None:
        """Note something that happened now, or at ``t_ns``."""
        event = Event(t_ns or time.monotonic_ns(), kind, subject, detail)
        self._append(self._events, asdict(event))

    def close(self, status: str, reason: str | None, **changes: Any) -> None:
        """Turn rows into Parquet and write how the run ended, with changes of the manifest.

        On a full disk the rows stay lines, and how it ended takes the room that was kept for it.
        Raises DiskFull where that is not enough either.
        """
        with self._lock:
            self._is_closed = True
            tables = [lines for lines, _ in self._tables.values()]
            for opened in (self._samples, self._events, *self._others, *tables):
                opened.close()
        schemas = {name: schema for name, (_, schema) in self._tables.items()}
        try:
            for name, schema in (
                {"samples": _SAMPLE_SCHEMA, "events": _EVENT_SCHEMA} | schemas
            ).items():
                self._into_parquet(name, schema)
        finally:
            self._reserve.release()
            try:
                self.write_manifest(status=status, reason=reason, ended=now_iso(), **changes)
            finally:
                if self.lock is not None:
                    self.lock.release()

    def _append(self, lines: Lines, row: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._is_closed:  # what ends after that is no part of the run
                lines.append(row)

    def _into_parquet(self, name: str, schema: pa.Schema) -> None:
        """Put a table in the place of lines, in one step: a reader sees one or the other.

        Where there is no room for it, the lines stay.
        """
        raw = self.directory / f"{name}.jsonl"
        partial = self.directory / f".{name}.parquet.partial"
        try:
            pq.write_table(_table(raw.read_bytes(), schema), partial)
        except OSError as error:
            partial.unlink(missing_ok=True)
            if not is_full(error):
                raise
            return
        os.replace(partial, self.directory / f"{name}.parquet")
        raw.unlink()


def write_json(target: Path, document: Any) -> None:
    """Write a JSON file in one step: a reader sees the old or the new one.

    Raises MachineError, of the kind DiskFull where there is no room.
    """
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
        os.replace(partial, target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        kind = DiskFull if is_full(error) else MachineError
        raise kind(f"{target} cannot be written: {error.strerror}.") from error


def _table(lines: bytes, schema: pa.Schema) -> pa.Table:
    """Return rows of JSON as a table; keys that the schema lacks are left out, others are null.

    Not through Python's lists: to convert those pyarrow imports pandas, half a second in which a
    run that was cut short would not end.
    """
    if not lines:
        return pa.Table.from_batches([], schema=schema)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(lines), parse_options=options)
    return table.select(schema.names)
