"""The directory that a run leaves: written as things happen, readable however the run ended."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from experiments.drill.lines import Lines
from topologies.errors import UserError

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
    _samples: Lines = field(init=False)
    _events: Lines = field(init=False)
    _others: list[Lines] = field(init=False, default_factory=list)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _is_closed: bool = field(init=False, default=False)

    @classmethod
    def create(cls, directory: Path, manifest: Mapping[str, Any]) -> BundleWriter:
        """Make the directory and write what is known at the start.

        Raises UserError when it cannot be written or already holds something: a run of an hour
        must not find that out at its end.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise UserError(
                    f"The output directory {directory} is not empty, and a bundle never "
                    "overwrites another. Name a new one with --out."
                )
            writer = cls(directory, {"format": FORMAT, **manifest})
            writer.write_manifest()
            (directory / "logs").mkdir()
        except OSError as error:
            raise UserError(
                f"The bundle cannot be written to {directory}: {error.strerror}. "
                "Name another directory with --out."
            ) from error
        return writer

    def __post_init__(self) -> None:
        """Open the raw files, so that the first sample is on disk when it happens."""
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
        """Write a JSON file of the bundle in one step."""
        target = self.directory / name
        partial = target.with_name(f".{name}.partial")
        partial.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
        os.replace(partial, target)

    def lines(self, name: str) -> Callable[[Mapping[str, Any]], None]:
        """Open a file of JSON lines of the bundle; return what appends one."""
        opened = Lines(self.directory / name)
        self._others.append(opened)
        return opened.append

    def sample(self, row: Mapping[str, Any]) -> None:
        """Append one sample."""
        self._append(self._samples, row)

    def event(self, kind: str, subject: str, detail: str = "", t_ns: int | None = None) -> None:
        """Note something that happened now, or at ``t_ns``."""
        event = Event(t_ns or time.monotonic_ns(), kind, subject, detail)
        self._append(self._events, asdict(event))

    def close(self, status: str, reason: str | None) -> None:
        """Turn rows into Parquet and write how the run ended."""
        with self._lock:
            self._is_closed = True
            for opened in (self._samples, self._events, *self._others):
                opened.close()
        self._into_parquet("samples", _SAMPLE_SCHEMA)
        self._into_parquet("events", _EVENT_SCHEMA)
        self.write_manifest(status=status, reason=reason, ended=now_iso())

    def _append(self, lines: Lines, row: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._is_closed:  # what ends after that is no part of the run
                lines.append(row)

    def _into_parquet(self, name: str, schema: pa.Schema) -> None:
        """Put a table in the place of lines, in one step: a reader sees one or the other."""
        raw = self.directory / f"{name}.jsonl"
        partial = self.directory / f".{name}.parquet.partial"
        pq.write_table(_table(raw.read_bytes(), schema), partial)
        os.replace(partial, self.directory / f"{name}.parquet")
        raw.unlink()


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
