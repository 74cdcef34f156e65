"""The packet records of a run: two files for each of its labs, and one table of them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.emulator.capture import (
    DEFAULT_LIMIT_BYTES,
    DEFAULT_SNAP_BYTES,
    LEAST_LIMIT_BYTES,
    Capture,
    CaptureStatus,
    rows_of,
)
from wanlat.topologies.errors import UserError, WanlatError


@dataclass
class CaptureStore:
    """Where the labs of a run record. The limit is that of all their files together."""

    directory: Path
    table: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    snap_bytes: int = DEFAULT_SNAP_BYTES
    _records: dict[str | None, tuple[Path, CaptureStatus | None]] = field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Check the figures, before anything slow starts. Raises UserError."""
        Capture(self.directory, self.limit_bytes, self.snap_bytes)

    def prepare(self, system: str | None = None) -> Capture | None:
        """Return what to record of the next lab; None if earlier ones have used up the limit.

        Raises UserError when the directory cannot be written.
        """
        used = self._used_bytes()
        file = self.directory / f"{system or 'packets'}.pcapng"
        if self._records and self.limit_bytes - used < LEAST_LIMIT_BYTES:
            ended = CaptureStatus(ended="its limit was used up by the labs before it")
            self._records[system] = (file, ended)
            return None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"Packets cannot be recorded to {file}: {error.strerror}.") from error
        self._records[system] = (file, None)
        return Capture(file, self.limit_bytes - used, self.snap_bytes)

    def note(self, system: str | None, status: CaptureStatus | None) -> None:
        """Note how the record of a lab ended."""
        file, _ = self._records.get(system, (None, None))
        if file is not None and status is not None:
            self._records[system] = (file, status)

    def finish(self) -> dict[str, Any]:
        """Write the table; return the record's entry of the bundle's manifest.

        Never fails: the document has what could not be done.
        """
        error: str | None = None
        rows: int | None = None
        files = {system: file for system, (file, _) in self._records.items() if _size(file)}
        # Imported here: it takes longer than a lab takes to come up.
        from wanlat.emulator.capture.table import write_table

        known = [status for _, status in self._records.values() if status is not None]
        try:
            rows = write_table(files, self.table).packets
        except WanlatError as failure:
            error = str(failure)
        return {
            "limit_bytes": self.limit_bytes,
            "snap_bytes": self.snap_bytes,
            "table": self.table.name if error is None else None,
            "table_error": error,
            "rows": rows,
            "packets": sum(status.packets for status in known),
            "bytes": self._used_bytes(),
            "missing": sum(status.missed for status in known),
            "ended": next((status.ended for status in known if status.ended), None),
            "files": [
                {
                    "file": file.name,
                    "system": system,
                    "packets": status.packets if status else None,
                    "missing": status.missing if status else None,
                    "ended": status.ended if status else "the lab ended first",
                }
                for system, (file, status) in self._records.items()
            ],
        }

    def remarks(self) -> list[str]:
        """Return what a reader of the record must know, in sentences."""
        remarks = []
        for system, (file, status) in self._records.items():
            prefix = f"{system}: " if system else ""
            if status is None:
                remarks.append(
                    f"{prefix}the packet record {file.name} ended with its lab, unfinished."
                )
            elif status.ended:
                remarks.append(
                    f"{prefix}the packet record ended before the run: {status.ended}; "
                    f"{status.missed} packets are missing from it."
                )
            elif status.missed:
                remarks.append(
                    f"{prefix}{status.missed} packets are missing from the packet record, because "
                    "they came faster than they could be written."
                )
        return remarks

    def _used_bytes(self) -> int:
        return sum(_size(file) + _size(rows_of(file)) for file, _ in self._records.values())

    def has_started(self) -> bool:
        """Return whether any lab came so far that its record was started."""
        return any(_size(file) for file, _ in self._records.values())


def _size(file: Path) -> int:
    """Return the length of a file; 0 where there is none."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
