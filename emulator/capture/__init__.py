"""The packet record of a lab: every packet that crosses a WAN link, when it entered and left.

``wire`` writes what it moves itself; where the kernel moves the packets (netem), a watcher of
ours looks on. Both write the same pcapng file, which ``emulator.capture.table`` turns into rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.emulator.links import Direction, Link
from wanlat.topologies.errors import UserError

DEFAULT_LIMIT_BYTES = 256 << 20
DEFAULT_SNAP_BYTES = 256
FEWEST_SNAP_BYTES = 160  # headers are always whole; the same in emulator/wire/src/capture
MOST_SNAP_BYTES = 65_600
_LEAST_LIMIT_BYTES = 64 << 10


@dataclass(frozen=True)
class Capture:
    """Where a lab records its packets: a pcapng file of at most ``limit_bytes``, with the first
    ``snap_bytes`` of every packet. Raises UserError for figures that cannot be.
    """

    file: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    snap_bytes: int = DEFAULT_SNAP_BYTES

    def __post_init__(self) -> None:
        """Check the figures."""
        if self.limit_bytes < _LEAST_LIMIT_BYTES:
            raise UserError(
                f"A packet record of at most {self.limit_bytes} bytes has no room for packets; "
                f"allow at least {_LEAST_LIMIT_BYTES >> 10}KiB."
            )
        if not FEWEST_SNAP_BYTES <= self.snap_bytes <= MOST_SNAP_BYTES:
            raise UserError(
                f"{self.snap_bytes} bytes of each packet cannot be recorded: "
                f"{FEWEST_SNAP_BYTES} (the headers) to {MOST_SNAP_BYTES} (all) can."
            )


@dataclass(frozen=True)
class CaptureStatus:
    """How a record stands. ``missing``: packets that crossed a direction and are not in the file.

    ``ended`` says why it ended before the lab did; None while it goes on or ended with the lab.
    """

    packets: int = 0
    bytes: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    ended: str | None = None

    @property
    def missed(self) -> int:
        """How many packets are missing on all directions."""
        return sum(self.missing.values())


@dataclass(frozen=True)
class Request:
    """What a backend is asked to record; ``path`` is the file as it can be opened in the lab."""

    program: Path
    path: str
    limit_bytes: int
    snap_bytes: int

    def settings(self, directions: list[Direction]) -> dict[str, Any]:
        """Return the part of the request to the Rust program that both modes share."""
        return {
            "file": self.path,
            "limit_bytes": self.limit_bytes,
            "snap_bytes": self.snap_bytes,
            "names": [str(direction) for direction in directions],
        }


def wan_directions(links: tuple[Link, ...] | list[Link]) -> list[Direction]:
    """Return both directions of every WAN link, in the order of the record's interfaces."""
    return [direction for link in links if link.kind == "wan" for direction in link.directions]


def status_of(answer: Mapping[str, Any], directions: list[Direction]) -> CaptureStatus:
    """Return how a record stands from what the Rust program answers."""
    raw = answer["capture"]
    return CaptureStatus(
        packets=raw["packets"],
        bytes=raw["bytes"],
        missing={
            str(direction): count
            for direction, count in zip(directions, raw["missing"], strict=True)
            if count
        },
        ended=raw["ended"],
    )
