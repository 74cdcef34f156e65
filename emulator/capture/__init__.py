"""The packet record of a lab: every packet that crosses a WAN link, when it entered and left.

``wire`` writes what it moves: a pcapng file for people, and beside it the same packets as rows,
of which ``emulator.capture.table`` makes a table.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wanlat.emulator.links import Direction, Link
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan

DEFAULT_LIMIT_BYTES = 256 << 20
DEFAULT_SNAP_BYTES = 256
FEWEST_SNAP_BYTES = 160  # headers are always whole; the same in emulator/wire/src/capture
MOST_SNAP_BYTES = 65_600
LEAST_LIMIT_BYTES = 64 << 10


@dataclass(frozen=True)
class Capture:
    """Where a lab records its packets: a pcapng file with the first ``snap_bytes`` of every packet,
    and rows beside it, together at most ``limit_bytes``. Raises UserError for figures that cannot
    be.
    """

    file: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    snap_bytes: int = DEFAULT_SNAP_BYTES

    def __post_init__(self) -> None:
        """Check the figures."""
        if self.limit_bytes < LEAST_LIMIT_BYTES:
            raise UserError(
                f"A packet record of at most {self.limit_bytes} bytes has no room for packets; "
                f"allow at least {LEAST_LIMIT_BYTES >> 10}KiB."
            )
        if not FEWEST_SNAP_BYTES <= self.snap_bytes <= MOST_SNAP_BYTES:
            raise UserError(
                f"{self.snap_bytes} bytes of each packet cannot be recorded: "
                f"{FEWEST_SNAP_BYTES} (the headers) to {MOST_SNAP_BYTES} (all) can."
            )


def rows_of(pcapng: Path) -> Path:
    """Return the file that has the packets of a pcapng file as rows."""
    return pcapng.with_suffix(".rows")


def backend_of_record(backend: Literal["netem", "wire"] | None) -> Literal["wire"]:
    """Return the backend of a lab with a packet record. Raises UserError for netem."""
    if backend == "netem":
        raise UserError(
            "The backend netem cannot record packets: the kernel does not report what becomes of "
            "each. Use --backend wire, or record none."
        )
    return "wire"


@dataclass(frozen=True)
class CaptureStatus:
    """How a record stands. ``missing``: packets that crossed a direction and are not in the files.

    ``ended``: why it ended before the lab did; None while it goes on or ended with the lab.
    """

    packets: int = 0
    bytes: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    ended: str | None = None

    @property
    def missed(self) -> int:
        """How many packets are missing on all directions."""
        return sum(self.missing.values())


def wan_directions(links: Iterable[Link]) -> list[Direction]:
    """Return both directions of every WAN link, in the order of the record's interfaces."""
    return [direction for link in links if link.kind == "wan" for direction in link.directions]


def status_of(answer: Mapping[str, Any], directions: Iterable[Direction]) -> CaptureStatus:
    """Return how a record stands from what the Rust program answers."""
    raw = answer["capture"]
    missing = zip(map(str, directions), raw["missing"], strict=True)
    return CaptureStatus(
        packets=raw["packets"],
        bytes=raw["bytes"],
        missing={name: count for name, count in missing if count},
        ended=raw["ended"],
    )


class Captures:
    """Records what crosses a lab's WAN links. ``call`` is the lab's way to its supervisor."""

    def __init__(self, plan: Plan, call: Callable[..., Any], wanted: Capture | None) -> None:
        self.last: CaptureStatus | None = None
        """How the record ended; None while it goes on, and where there is none."""
        self._plan = plan
        self._call = call
        self._wanted = wanted
        self._is_going_on = False

    def status(self) -> CaptureStatus | None:
        """Return how the record stands, or ended; None where there is none."""
        if self._is_going_on:
            status: CaptureStatus = self._call("capture_status")[0]
            return status
        return self.last

    def stop(self) -> CaptureStatus | None:
        """Complete the record; return how it ended. Raises MachineError."""
        if self._is_going_on:
            self._is_going_on = False
            self.last = self._call("stop_capture")[0]
        return self.last

    def start(self) -> None:
        """Begin the record, where one is wanted. Raises UserError, MachineError."""
        wanted = self._wanted
        if wanted is None:
            return
        if not self._plan.wan_links:
            raise UserError(
                f"{self._plan.name} has one site and no WAN link, so there is nothing to record."
            )
        with contextlib.ExitStack() as opened:
            files = []
            for path in (wanted.file, rows_of(wanted.file)):
                try:
                    files.append(
                        os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                    )
                except OSError as error:
                    raise UserError(
                        f"Packets cannot be recorded to {path}: {error.strerror}."
                    ) from error
                opened.callback(os.close, files[-1])
            self._call("start_capture", wanted.limit_bytes, wanted.snap_bytes, fds=tuple(files))
        self._is_going_on = True
