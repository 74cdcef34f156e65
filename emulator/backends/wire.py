"""The ``wire`` backend: drives the Rust program that moves frames between splices."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from wanlat.emulator import syscalls
from wanlat.emulator.backends import Counters, LateBin, LatenessReport, cannot_be_changed
from wanlat.emulator.capture import CaptureStatus, status_of, wan_directions
from wanlat.emulator.links import Direction, Link
from wanlat.emulator.network import Network
from wanlat.emulator.process import how_it_ended
from wanlat.emulator.rpc import Closed, Stream
from wanlat.topologies import shapes
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment

_AS_THEY_ARE = ("delay_ns", "jitter_ns", "reorder", "overtake", "loss", "duplicate", "rate_bps")


def unsupported(impairment: Impairment) -> str | None:
    """Return what of an impairment this backend does not apply; None when it applies all of it."""
    return "corruption of packets" if impairment.corrupt else None


class Tables:
    """The tables of quantiles that impairments draw from: named, and sent only once each."""

    def __init__(self) -> None:
        self._sent: set[str] = set()
        self._new: dict[str, tuple[float, ...]] = {}

    def as_json(self, impairment: Impairment) -> dict[str, Any]:
        """Return an impairment as the program takes it, with its table by name."""
        return {name: getattr(impairment, name) for name in _AS_THEY_ARE} | {
            "queue_bytes": impairment.room_bytes,
            "table": self._name(impairment),
            "bursts": asdict(impairment.bursts) if impairment.bursts else None,
        }

    def unsent(self) -> dict[str, tuple[float, ...]]:
        """Return the tables that were named since the last :meth:`are_sent`."""
        return dict(self._new)

    def are_sent(self) -> None:
        """Take note that the program has them."""
        self._sent |= self._new.keys()
        self._new.clear()

    def _name(self, impairment: Impairment) -> str | None:
        values = shapes.shape(impairment.distribution, impairment.table)
        if values is None or not impairment.jitter_ns:
            return None
        name = impairment.distribution if not impairment.table else _name_of(impairment.table)
        if name not in self._sent:
            self._new[name] = values
        return name


@lru_cache(maxsize=1024)
def _name_of(table: tuple[float, ...]) -> str:
    return "table " + hashlib.sha256(repr(table).encode()).hexdigest()[:32]


_STOP_S = 5.0
_ANSWER_S = 60.0
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
_UNREQUESTED_DROPS = ("rx_drops", "memory_drops", "receive_errors", "send_errors")


class WireBackend:
    """Every spliced link of the lab in one process of one thread."""

    name = "wire"

    def __init__(self, program: Path, seed: int) -> None:
        self._program = program
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: Stream | None = None
        self._links: list[Link] = []
        self._place: dict[Direction, tuple[int, str]] = {}
        self._tables = Tables()

    @property
    def pid(self) -> int | None:
        """The process's id in the lab, for whoever reaps it; None when no link is spliced."""
        return self._process.pid if self._process else None

    def start(self, network: Network) -> None:
        """Start the program on every spliced link. Raises MachineError."""
        self._links = [link for link in network.links if network.is_spliced(link)]
        if not self._links:
            return
        for place, link in enumerate(self._links):
            ab, ba = link.directions
            self._place[ab], self._place[ba] = (place, "ab"), (place, "ba")
        # Its messages go to the supervisor's stderr, which the lab's owner keeps. No session of
        # its own: where the kernel groups processes by session (sched_autogroup), a session is
        # a group that waits for its turn, and packets would be late whenever others compute.
        self._process = subprocess.Popen(
            [str(self._program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stream = Stream(self._process.stdout, self._process.stdin)
        ends = [network.splice(link) for link in self._links]
        as_json = self._tables.as_json
        links = [
            {"a": a.name, "b": b.name, "ab": as_json(link.ab), "ba": as_json(link.ba)}
            for (a, b), link in zip(ends, self._links, strict=True)
        ]
        self._query({"op": "start", "seed": self._seed, "links": links})

    def stop(self) -> None:
        """Have the program end in good order. Returns when it has, or after a while."""
        if self._process is None or self._stream is None:
            return
        with contextlib.suppress(OSError):
            end = os.pidfd_open(self._process.pid)
            self._stream.finish()
            syscalls.wait_readable([end], _STOP_S)

    def change(self, changes: dict[Direction, Impairment]) -> tuple[int, int]:
        """Apply impairments to running links. Raises MachineError for a link that is cabled."""
        requests = []
        for direction, impairment in changes.items():
            if direction not in self._place:
                raise cannot_be_changed(direction)
            encoded = self._tables.as_json(impairment)
            requests.append(self._way(direction) | {"impairment": encoded})
        instant: int = self._query({"op": "set", "changes": requests})["t_ns"]
        return instant, instant

    def counters(self) -> dict[Direction, Counters]:
        """Return what the program counted."""
        if self._process is None:
            return {}
        answer = self._query({"op": "stats"})
        result: dict[Direction, Counters] = {}
        for link, sides in zip(self._links, answer["links"], strict=True):
            for direction, side in zip(link.directions, ("ab", "ba"), strict=True):
                raw = sides[side]
                result[direction] = Counters(
                    packets=raw["packets"],
                    bytes=raw["bytes"],
                    lost=raw["lost"],
                    queue_drops=raw["queue_drops"],
                    overflows=sum(raw[kind] for kind in _UNREQUESTED_DROPS),
                )
        return result

    def lateness(self, since: int) -> LatenessReport | None:
        """Return how late frames left, from bin ``since`` on; None where no link is spliced."""
        if self._process is None:
            return None
        answer = self._query({"op": "lateness", "since": since})
        ways = [direction for link in self._links for direction in link.directions]
        bins = [
            LateBin(**late | {"direction": None if way is None else ways[way]})
            for late in answer["late"]
            for way in [late["direction"]]
        ]
        return LatenessReport(bins, answer["next"])

    def plant_lateness(self, direction: Direction, late_ns: int, for_ns: int) -> int:
        """Be late in one direction for a while, for tests; return the instant it begins at."""
        planted = self._way(direction) | {"late_ns": late_ns, "for_ns": for_ns}
        instant: int = self._query({"op": "plant_lateness", **planted})["t_ns"]
        return instant

    def _way(self, direction: Direction) -> dict[str, Any]:
        """Return a direction as the program takes it."""
        place, side = self._place[direction]
        return {"link": place, "direction": side}

    def start_capture(
        self, pcapng: str, rows: str, limit_bytes: int, snap_bytes: int
    ) -> CaptureStatus:
        """Have the program record what crosses the WAN links. Raises MachineError.

        ``pcapng`` and ``rows`` are files as they can be opened in the lab.
        """
        directions = wan_directions(self._links)
        wanted = {
            "pcapng": pcapng,
            "rows": rows,
            "limit_bytes": limit_bytes,
            "snap_bytes": snap_bytes,
            "directions": [
                self._way(direction) | {"name": str(direction)} for direction in directions
            ],
        }
        return status_of(self._query({"op": "capture", "capture": wanted}), directions)

    def capture_status(self) -> CaptureStatus:
        """Return how the record stands."""
        return status_of(self._query({"op": "capture_status"}), wan_directions(self._links))

    def stop_capture(self) -> CaptureStatus:
        """Have the record completed."""
        return status_of(self._query({"op": "capture_stop"}), wan_directions(self._links))

    def _query(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._stream is not None
        if request["op"] in ("start", "set") and (tables := self._tables.unsent()):
            request = request | {"tables": tables}
        try:
            answer: dict[str, Any] = self._stream.query(request, _ANSWER_S)
        except Closed:
            raise self._gone(request["op"]) from None
        except TimeoutError:
            raise MachineError(
                f"wire has not answered {request['op']!r} within {_ANSWER_S:g} s."
            ) from None
        if not answer.get("ok"):
            raise MachineError(f"wire refused {request['op']!r}: {answer.get('error')}")
        if "tables" in request:
            self._tables.are_sent()
        return answer

    def _gone(self, operation: str) -> Exception:
        """Return what to raise when the program gives no answer: who kills it is the machine."""
        assert self._process is not None
        code = None
        with contextlib.suppress(ChildProcessError):  # it is reaped already
            # It is reaped elsewhere, where its end is reported.
            end = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            assert end is not None
            code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        message = f"The wire process ended without an answer to {operation!r}"
        if code is None or (code < 0 and -code not in _CRASHES):
            return MachineError(f"{message}; its last words are above.")
        return RuntimeError(f"{message}: it {how_it_ended(code)}; its last words are above.")
