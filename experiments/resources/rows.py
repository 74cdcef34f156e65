"""The rows of ``resources.parquet``: who, when, and what it used until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

NAME = "resources"

Kind = Literal["node", "front", "own", "link"]


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
