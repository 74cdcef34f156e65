"""Every change of a lab's links, with the instant from which it was in force."""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from wanlat.emulator.links import Direction
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Impairment
from wanlat.topologies.units import Duration, Fraction, Rate, Size

_NOTHING = Impairment()


@dataclass(frozen=True, slots=True)
class Entry:
    """One direction's change. Instants are CLOCK_MONOTONIC.

    A packet that arrives at the link at ``t_ns`` or later meets ``after``; one that arrived before
    ``not_before_ns``, ``before``. ``wire`` knows the instant: the two are the same, for all
    entries of a request. ``netem`` knows when the request was sent and when it was answered; in
    between, a packet may have met either. ``origin``: who requested it.
    """

    t_ns: int
    not_before_ns: int
    direction: Direction
    before: Impairment
    after: Impairment
    origin: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; impairments without what has its default."""
        return {
            "t_ns": self.t_ns,
            "not_before_ns": self.not_before_ns,
            **self.direction.to_dict(),
            "before": figures(self.before),
            "after": figures(self.after),
            "origin": self.origin,
        }


class Journal(list[Entry]):
    """The entries of a lab in the order of effect, and as lines of a file while they come.

    Safe to read from any thread. A path is opened at once, to append to; raises UserError when
    that fails.
    """

    def __init__(self, requested: Mapping[Direction, Impairment], path: Path | None) -> None:
        super().__init__()
        self._requested = dict(requested)
        self._listeners: list[Callable[[Entry], None]] = []
        self._lock = threading.Lock()
        self._file = _open(path) if path is not None else None

    def begin(self, t_ns: int, topology: str, backend: str) -> None:
        """Write the first line of a lab: what was in force from its beginning on."""
        self._write(
            {
                "t_ns": t_ns,
                "lab": topology,
                "backend": backend,
                "clock": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "in_force": [
                    direction.to_dict() | figures(value)
                    for direction, value in self._requested.items()
                    if not value.is_noop
                ],
            }
        )

    def record(self, entries: Sequence[Entry]) -> None:
        """Take in the entries of one request, and pass them to the listeners.

        Raises MachineError when the file cannot be written; they are in the journal all the same.
        """
        with self._lock:
            self.extend(entries)
            listeners = tuple(self._listeners)
        for entry in entries:
            for listener in listeners:
                listener(entry)
        self._write(*(entry.to_dict() for entry in entries))

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Have ``listener`` called with every entry from now on, in the thread of the change."""
        with self._lock:
            self._listeners.append(listener)

    def close(self) -> None:
        """Close the file. What has been recorded can still be read."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # a full disk has been reported
                file.close()

    def _write(self, *lines: Mapping[str, Any]) -> None:
        if self._file is None or not lines:
            return
        try:
            self._file.write("".join(json.dumps(line) + "\n" for line in lines))
            self._file.flush()
        except OSError as error:
            name = self._file.name
            self.close()
            raise MachineError(
                f"The change is in force, but the journal {name} could not be written: "
                f"{error.strerror}. The lab goes on without the file."
            ) from error


def _open(path: Path) -> IO[str]:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise UserError(f"The journal cannot be written to {path}: {error.strerror}.") from error


def figures(impairment: Impairment) -> dict[str, Any]:
    """Return what differs from no impairment, by the names and units of its fields.

    A table of quantiles is too long for a line: its length and a hash stand for it.
    """
    result: dict[str, Any] = {}
    for field in fields(Impairment):
        value = getattr(impairment, field.name)
        if value == getattr(_NOTHING, field.name):
            continue
        if field.name == "table":
            packed = struct.pack(f"!{len(value)}d", *value)
            value = {"quantiles": len(value), "sha256": hashlib.sha256(packed).hexdigest()}
        elif field.name == "bursts":
            value = asdict(value)
        result[field.name] = value
    return result


def words(impairment: Impairment) -> str:
    """Return one line: `50ms ± 10ms, loss 5%`."""
    delay = str(Duration(impairment.delay_ns))
    if impairment.jitter_ns:
        delay += f" ± {Duration(impairment.jitter_ns)}"
        if impairment.distribution != "uniform":
            delay += f" {impairment.distribution}"
    loss, in_bursts = impairment.loss_probability, " in bursts" if impairment.bursts else ""
    parts = {
        "cut (loss 100%)": loss >= 1,
        delay: impairment.delay_ns or impairment.jitter_ns,
        "reorder": impairment.reorder,
        f"reorder {_part(impairment.overtake)}": impairment.overtake,
        f"loss {_part(loss)}{in_bursts}": 0 < loss < 1,
        f"duplicate {_part(impairment.duplicate)}": impairment.duplicate,
        f"corrupt {_part(impairment.corrupt)}": impairment.corrupt,
        f"rate {Rate(impairment.rate_bps or 1)}": impairment.rate_bps is not None,
        f"queue {Size(impairment.queue_bytes or 0)}": impairment.queue_bytes is not None,
    }
    return ", ".join(part for part, is_there in parts.items() if is_there) or "nothing"


def _part(value: float) -> str:
    """Return a fraction in percent, short enough to read: of LAN links they are roots."""
    return str(Fraction(float(f"{value:.4g}")))
