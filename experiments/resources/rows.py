"""The rows of ``resources.parquet``: who, when, and what it used until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

NAME = "resources"

Kind = Literal["node", "front", "own", "link"]

SCHEMA = pa.schema(
    [
        ("t_ns", pa.int64()),
        ("system", pa.string()),
        ("kind", pa.string()),
        ("subject", pa.string()),
        ("rss_bytes", pa.int64()),
        ("cpu_ns", pa.int64()),
        ("threads", pa.int64()),
        ("open_files", pa.int64()),
        ("read_bytes", pa.int64()),
        ("written_bytes", pa.int64()),
        ("space_bytes", pa.int64()),
        ("files", pa.int64()),
        ("trash_bytes", pa.int64()),
        ("space_began_ns", pa.int64()),
        ("rx_bytes", pa.int64()),
        ("tx_bytes", pa.int64()),
        ("rx_packets", pa.int64()),
        ("tx_packets", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes use: at this instant (memory, threads, files), and until now (the rest).

    ``read_bytes`` and ``written_bytes`` are of disks, and None where the kernel does not tell.
    """

    rss_bytes: int = 0
    cpu_ns: int = 0
    threads: int = 0
    open_files: int | None = 0
    read_bytes: int | None = None
    written_bytes: int | None = None

    def columns(self) -> Mapping[str, Any]:
        """Return its part of a row."""
        return {
            "rss_bytes": self.rss_bytes,
            "cpu_ns": self.cpu_ns,
            "threads": self.threads,
            "open_files": self.open_files,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
        }
